"""How turns end: what is still owed is written, the end is said, and what waits goes on."""

from msgspec.structs import replace

from tenure.actors.turn_budget import timer_of
from tenure.actors.turn_entries import stopped
from tenure.actors.turn_fates import (
    armed_first,
    kept_first,
    note_returned,
    refuse_adding,
    waited,
)
from tenure.actors.turn_ledger import Ledger
from tenure.actors.turn_start import go_on
from tenure.actors.turn_state import (
    CallsWereSettled,
    Drained,
    Drainer,
    End,
    Ending,
    EndSaved,
    Finished,
    Recovering,
    Run,
    State,
    Stopped,
)
from tenure.actors.turn_waiting import Kept, Queue
from tenure.messages.base import Reply
from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
)
from tenure.messages.entries import CustomEntry, EntryBody, MessageEntry
from tenure.messages.queue import PromptReturned, PromptSuspended, QueuedText
from tenure.messages.session import AppendEntries, SettleCalls
from tenure.messages.turn import INTERRUPTING, StopCause, TurnDrained, TurnEnded, TurnNotStarted
from tenure.runtime.step import AskId, Step, Taken


def end_with(
    run: Run,
    end: End,
    entries: tuple[MessageEntry | CustomEntry, ...],
    drainers: tuple[Drainer, ...],
) -> Step[State]:
    """Write the turn's last entries, then end it."""
    last: tuple[EntryBody, ...] = (*entries, *_end_mark(run, end, entries))
    if not last:
        return finish(run, end, drainers)
    append = AppendEntries(token=run.token, entries=last, turn_id=run.turn_id)
    ending = Ending(run, end, drainers)
    return Step[State](ending).ask("session", append, re=EndSaved(turn_id=run.turn_id))


def finish(run: Run, end: End, drainers: tuple[Drainer, ...]) -> Step[State]:
    """The turn is over, and all of it is durable: say so, and go on with what waits."""
    if isinstance(end, Finished) and end.stop_reason == "error":
        return _after_failure(run, end, drainers)
    then = _next(run, drainers)
    return after(_timeless(run, then.state).emit(ended_of(run, end, "")), then)


def finish_unsaved(run: Run, end: End, drainers: tuple[Drainer, ...], why: str) -> Step[State]:
    """The turn is over, and not all of it is durable: calls may stand without a result.

    Before anything else starts they are settled; behind a drain, when the session
    is opened again.
    """
    then = _next(run, drainers) if drainers else recover(run.ledger, run.queue)
    return after(_timeless(run, then.state).emit(ended_of(run, end, why)), then)


def never_began(
    run: Run, asker: AskId | None, refusal: Reply, ended: TurnEnded, drainers: tuple[Drainer, ...]
) -> Step[State]:
    """Nothing of the turn was written: whoever waits for its start is told why.

    A prompt that had waited is not lost with it: a stop gives it back, a drain keeps it
    where it was, and what failed holds it.
    """
    prompt = waited(run.prompt)
    if prompt is None:
        then = _next(run, drainers)
        return after(_timeless(run, then.state).emit(ended).answer(asker, refusal), then)
    if not isinstance(refusal, TurnNotStarted):
        then = _next(replace(run, queue=kept_first(run, prompt)), drainers)
        held = PromptSuspended(item_id=prompt.item_id, text=prompt.text, reason=ended.error)
        return after(_timeless(run, then.state).emit(held, ended).answer(asker, refusal), then)
    if drainers:
        then = _next(replace(run, queue=armed_first(run, prompt)), drainers)
        return after(_timeless(run, then.state).answer(asker, refusal), then)
    then = _next(run, drainers)
    back = PromptReturned(item_id=prompt.item_id, text=prompt.text, cause=refusal.cause)
    first = _timeless(run, then.state).emit(back, ended).answer(asker, refusal)
    return after(note_returned(first, (prompt.item_id,), run.token), then)


def _timeless(run: Run, state: State) -> Step[State]:
    """A state in which the turn is over: its timer, where it has one, is cancelled."""
    step = Step[State](state)
    for timer in timer_of(run):
        step = step.cancel(timer.key)
    return step


def recover(ledger: Ledger, queue: Queue) -> Step[State]:
    """Have every call without a result settled before anything starts (TURN-7)."""
    recovering = Step[State](Recovering(ledger, queue))
    return recovering.ask("session", SettleCalls(), re=CallsWereSettled())


def after(first: Step[State], then: Step[State]) -> Step[State]:
    """The state of `then`, with what both send: what `first` sends leaves first."""
    return Step(
        then.state,
        first.replies + then.replies,
        first.events + then.events,
        first.mail + then.mail,
        first.effects + then.effects,
    )


def ended_of(run: Run, end: End, why: str) -> TurnEnded:
    """The last event of a turn.

    Args:
        why: what could not be made durable; empty for nothing.
    """
    match end:
        case Finished(stop_reason, error):
            return TurnEnded(
                turn_id=run.turn_id,
                stop_reason=stop_reason,
                error=error or why,
                usage=run.usage.plus(run.by_children.usage),
            )
        case Stopped(cause, said):
            return TurnEnded(
                turn_id=run.turn_id,
                stop_reason="stopped",
                cause=cause,
                error=said or why,
                usage=run.usage.plus(run.by_children.usage),
            )


# --- what stands for what did not happen ---------------------------------------------------

WHY: dict[StopCause, str] = {
    "user": "the user stopped the turn",
    "approval": "the user stopped the turn when asked for approval",
    "budget": "the turn's budget was used up",
    "swap": "the seat changed to another session",
    "handover": "the session was handed over to another process",
    "shutdown": "the host shut down",
    "loop_guard": "the turn repeated itself",
    "redirect": "the user said something else instead",
}


def not_run(block: ToolCallBlock, end: End, taken: Taken) -> ToolResultMessage:
    why = WHY[end.cause] if isinstance(end, Stopped) else "the turn could not go on"
    return error_result(block, f"Not run: {why}.", taken)


def error_result(block: ToolCallBlock, text: str, taken: Taken) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=block.id,
        tool_name=block.name,
        content=(TextBlock(text=text),),
        is_error=True,
        timestamp=taken.now_ms,
    )


def aborted(run: Run, partial: tuple[AssistantBlock, ...], taken: Taken) -> AssistantMessage:
    """What the model had said when it was stopped."""
    return AssistantMessage(
        content=partial,
        model=run.model,
        stop_reason="aborted",
        error_message="stopped",
        timestamp=taken.now_ms,
    )


# --- pure helpers ------------------------------------------------------------------------


def _after_failure(run: Run, end: Finished, drainers: tuple[Drainer, ...]) -> Step[State]:
    """What was to be said to the turn that failed is held: its sender meant that turn."""
    meant = tuple(
        item for item in run.queue.armed if item.prompt.delivery in ("next_step", "turn_end")
    )
    items = tuple(Kept(item.prompt) if item in meant else item for item in run.queue.items)
    then = _next(replace(run, queue=replace(run.queue, items=items)), drainers)
    step = _timeless(run, then.state).emit(ended_of(run, end, ""))
    for item in meant:
        prompt = item.prompt
        step = step.emit(
            PromptSuspended(item_id=prompt.item_id, text=prompt.text, reason=end.error)
        )
    return after(step, then)


def _next(run: Run, drainers: tuple[Drainer, ...]) -> Step[State]:
    """What comes after a turn: the drain, the queue, or nothing."""
    if not drainers:
        return go_on(run.ledger, run.queue)
    causes = {drainer.cause for drainer in drainers}
    cause = "shutdown" if "shutdown" in causes else drainers[0].cause
    step, held = drained(run.ledger, run.queue, cause)
    for drainer in drainers:
        step = step.answer(drainer.asker, TurnDrained(queued=held))
    return step


def drained(
    ledger: Ledger, queue: Queue, cause: StopCause
) -> tuple[Step[State], tuple[QueuedText, ...]]:
    """Nothing runs, and what was due waits for the drain's end; with what that would give back.

    What is on its way to the disk is refused: its asker has no receipt yet.
    """
    adding = tuple(each.item for each in queue.adding)
    step = Step[State](Drained(ledger, replace(queue, adding=()), cause))
    step = refuse_adding(step, queue.adding, cause)
    if adding:
        ids = tuple(item.prompt.item_id for item in adding)
        step = note_returned(step, ids, adding[0].token)
    held = tuple(
        QueuedText(item_id=item.prompt.item_id, text=item.prompt.text)
        for item in (*queue.armed, *adding)
    )
    return step, held


def _end_mark(
    run: Run, end: End, entries: tuple[MessageEntry | CustomEntry, ...]
) -> tuple[EntryBody, ...]:
    """A stop by intent is told from a crash where no last word of the model tells it."""
    if not isinstance(end, Stopped) or end.cause in INTERRUPTING:
        return ()
    last = entries[-1] if entries else None
    if isinstance(last, MessageEntry) and isinstance(last.message, AssistantMessage):
        return ()
    return (stopped(run.turn_id, end.cause),)
