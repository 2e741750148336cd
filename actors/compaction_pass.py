"""The stages of a pass: plan, start of the audit, summary, entry and end of the audit.

Persist first, replace second: nothing is said to be compacted before the entry
is durable, and every reader takes the conversation from the transcript.
"""

from tenure.actors.compaction_audit import end_of, entry_of, start_of, tokens_after
from tenure.actors.compaction_state import (
    Ending,
    EndSaved,
    Idle,
    Pass,
    Planning,
    Request,
    SavingEnd,
    SavingStart,
    SavingSummary,
    StartSaved,
    State,
    Stoppable,
    StoppingPlan,
    StoppingStart,
    StoppingSummary,
    Summarising,
    SummarySaved,
)
from tenure.messages.base import Refusal, Reply
from tenure.messages.compaction import (
    Compacted,
    CompactionEnded,
    CompactionFailed,
    CompactionNotPlanned,
    CompactionPlan,
    CompactionStarted,
    CompactionStopped,
    NothingToCompact,
    PlanCompaction,
    SummariseConversation,
    Summary,
)
from tenure.messages.session import Appended, AppendEntries, AppendFailed
from tenure.runtime.step import Step

NO_GAIN = "a summary would be as long as what it stands for"


def go_on(waiting: tuple[Request, ...]) -> Step[State]:
    """Begin with what waits."""
    if not waiting:
        return Step(Idle())
    request = waiting[0]
    plan = PlanCompaction(
        pass_id=request.pass_id,
        session_id=request.token.session_id,
        trigger=request.trigger,
        model=request.model,
        window=request.window,
    )
    return Step[State](Planning(request, waiting[1:])).do(plan)


def save_start(state: Planning, plan: CompactionPlan) -> Step[State]:
    """Before the summary is made the token shows whether anybody wants it."""
    request = state.request
    saving = SavingStart(Pass(request, plan), state.waiting)
    append = AppendEntries(token=request.token, entries=(start_of(request, plan),))
    return Step[State](saving).ask("session", append, re=StartSaved(pass_id=request.pass_id))


def on_not_planned(state: Planning, outcome: CompactionNotPlanned) -> Step[State]:
    """There is nothing to do.  A wish is noted all the same; a turn's question is not."""
    request = state.request
    nothing = NothingToCompact(reason=outcome.reason, said=outcome.said)
    if request.trigger != "manual":
        return go_on(state.waiting).answer(request.asker, nothing)
    ending = Ending("skipped", outcome.reason, nothing)
    entries = (start_of(request, None), end_of(request, ending))
    append = AppendEntries(token=request.token, entries=entries)
    saving = SavingEnd(request, ending, state.waiting)
    return Step[State](saving).ask("session", append, re=EndSaved(pass_id=request.pass_id))


def on_start_saved(state: SavingStart | StoppingStart, reply: Reply) -> Step[State]:
    """The token was current and the start is durable, or nothing was written and it ends here."""
    run = state.run
    if not isinstance(reply, Appended):  # guard: COMPACT-2
        return _over(run.request, state.waiting, _not_written(run.request, reply))
    started = CompactionStarted(
        pass_id=run.pass_id,
        token=run.request.token,
        trigger=run.request.trigger,
        turn_id=run.request.turn_id,
        tokens_before=run.plan.tokens_before,
        messages=run.plan.messages,
    )
    if isinstance(state, StoppingStart):
        step = end(run.request, state.waiting, stopped(run.request))
        return Step(step.state, step.replies, (started, *step.events), step.mail, step.effects)
    summarise = SummariseConversation(
        pass_id=run.pass_id,
        session_id=run.request.token.session_id,
        plan=run.plan,
        instructions=run.request.instructions,
    )
    return Step[State](Summarising(run, state.waiting)).emit(started).do(summarise)


def on_summarised(state: Summarising, summary: Summary) -> Step[State]:
    """One append holds the entry and the end of the audit."""
    run = state.run
    if summary.tokens >= run.plan.tokens_folded:
        nothing = NothingToCompact(reason="no_gain", said=NO_GAIN)
        return end(run.request, state.waiting, Ending("skipped", "no_gain", nothing))
    done = end_of(run.request, Ending("compacted", "", CompactionStopped(pass_id=run.pass_id)))
    append = AppendEntries(token=run.request.token, entries=(entry_of(run, summary), done))
    saving = SavingSummary(run, summary, state.waiting)
    return Step[State](saving).ask("session", append, re=SummarySaved(pass_id=run.pass_id))


def on_not_summarised(state: Summarising, reason: str) -> Step[State]:
    return end(state.run.request, state.waiting, failed(state.run.request, reason))


def on_summary_saved(state: SavingSummary, reply: Reply) -> Step[State]:
    """Only what is durable has replaced anything."""
    run, request = state.run, state.run.request
    if isinstance(reply, AppendFailed):
        # The file is as it was, with a start that has no end yet.
        return end(request, state.waiting, failed(request, reply.reason))
    if not isinstance(reply, Appended):  # guard: COMPACT-1
        return on_end_saved(SavingEnd(request, lost(reply), state.waiting))
    compacted = Compacted(
        pass_id=run.pass_id,
        entry_id=reply.entry_ids[0],
        tokens_before=run.plan.tokens_before,
        tokens_after=tokens_after(run.plan, state.summary),
        messages=run.plan.messages,
        summariser=state.summary.summariser,
        model=state.summary.model,
        problem=state.summary.problem,
    )
    return on_end_saved(SavingEnd(request, Ending("compacted", "", compacted), state.waiting))


def end(request: Request, waiting: tuple[Request, ...], ending: Ending) -> Step[State]:
    """Nothing is replaced: the audit gets its end, and then the asker is told."""
    append = AppendEntries(token=request.token, entries=(end_of(request, ending),))
    saving = SavingEnd(request, ending, waiting)
    return Step[State](saving).ask("session", append, re=EndSaved(pass_id=request.pass_id))


def on_end_saved(state: SavingEnd) -> Step[State]:
    """The pass is over.  An end that could not be written is written when the session is opened."""
    return _over(state.request, state.waiting, state.ending)


def stop(state: Stoppable) -> Step[State]:
    """Cancel what runs; its last word is awaited, and the audit gets its end."""
    match state:
        case Planning(request, waiting):
            return Step[State](StoppingPlan(request, waiting)).cancel(f"plan {request.pass_id}")
        case SavingStart(run, waiting):
            return Step(StoppingStart(run, waiting))
        case Summarising(run, waiting):
            return Step[State](StoppingSummary(run, waiting)).cancel(f"summary {run.pass_id}")


def on_stopped(state: StoppingPlan | StoppingSummary) -> Step[State]:
    """The last word of what was cancelled, whatever it is."""
    if isinstance(state, StoppingPlan):
        return _over(state.request, state.waiting, stopped(state.request))
    return end(state.run.request, state.waiting, stopped(state.run.request))


# --- how a pass ends ---------------------------------------------------------------------------


def stopped(request: Request) -> Ending:
    reply = CompactionStopped(pass_id=request.pass_id, instructions=request.instructions)
    return Ending("stopped", "", reply)


def failed(request: Request, reason: str) -> Ending:
    reply = CompactionFailed(
        pass_id=request.pass_id, reason=reason, instructions=request.instructions
    )
    return Ending("failed", reason, reply)


def lost(reply: Reply) -> Ending:
    """The session is another one, or nobody knows what its disk holds."""
    reason = reply.remedy if isinstance(reply, Refusal) else type(reply).__name__
    return Ending("session_lost", reason, reply)


def _not_written(request: Request, reply: Reply) -> Ending:
    if isinstance(reply, AppendFailed):
        return failed(request, reply.reason)
    return lost(reply)


def ended_of(request: Request, ending: Ending) -> CompactionEnded:
    return CompactionEnded(
        pass_id=request.pass_id,
        token=request.token,
        status=ending.status,
        turn_id=request.turn_id,
        reason=ending.reason,
        compacted=ending.reply if isinstance(ending.reply, Compacted) else None,
    )


def _over(request: Request, waiting: tuple[Request, ...], ending: Ending) -> Step[State]:
    """The last word about a pass comes before what the next one says."""
    step = go_on(waiting)
    ended = ended_of(request, ending)
    replies = Step(step.state).answer(request.asker, ending.reply).replies
    return Step(step.state, replies + step.replies, (ended, *step.events), step.mail, step.effects)
