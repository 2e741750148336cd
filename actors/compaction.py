"""CompactionActor: one pass at a time, from the plan to a summary that is durable, or to its end.

    Idle -> Planning -> SavingStart -> Summarising -> SavingSummary -> Idle     a pass
    Planning -> Idle | SavingEnd -> Idle                                        nothing to do
    Planning | SavingStart | Summarising -> Stopping... -> SavingEnd -> Idle    a stop
    Recovering -> Idle                                                          a restart

ARCHITECTURE.md, section CompactionActor.
"""

from msgspec.structs import replace

from tenure.actors.compaction_pass import (
    ended_of,
    go_on,
    on_end_saved,
    on_not_planned,
    on_not_summarised,
    on_start_saved,
    on_stopped,
    on_summarised,
    on_summary_saved,
    save_start,
    stop,
    stopped,
)
from tenure.actors.compaction_state import (
    Busy,
    EndSaved,
    Idle,
    PassesWereSettled,
    Planning,
    Recovering,
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
    request_of,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.compaction import (
    CompactionBusy,
    CompactionNotPlanned,
    CompactionNotRunning,
    CompactionPlanned,
    CompactionQueued,
    CompactionStopping,
    CompactionView,
    ConversationNotSummarised,
    ConversationSummarised,
    DropPass,
    DropPasses,
    GetCompaction,
    PassId,
    RunCompaction,
    SettlePasses,
    StopCompaction,
)
from tenure.messages.tokens import TurnId
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, Taken

WAITING_MAX = 16
"""Passes that wait; a further wish is refused."""

Saved = StartSaved | SummarySaved | EndSaved
PassOutcome = (
    CompactionPlanned | CompactionNotPlanned | ConversationSummarised | ConversationNotSummarised
)


def compaction_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message.  Wishes and stops first, then what the pass waits for."""
    match message:
        case RunCompaction():
            return on_run(state, message, taken)
        case StopCompaction(pass_id=pass_id):
            return on_stop(state, pass_id, taken)
        case DropPass(turn_id=turn_id):
            return on_drop(state, turn_id)
        case DropPasses():
            return on_drop_all(state)
        case GetCompaction():
            return on_get(state, taken)
        case OwnerStarted(incarnation=incarnation):
            return on_started(state, incarnation)
        case (
            CompactionPlanned()
            | CompactionNotPlanned()
            | ConversationSummarised()
            | ConversationNotSummarised()
        ):
            return on_outcome(state, message)
        case Answered(re=StartSaved() | SummarySaved() | EndSaved() as saved):
            return on_saved(state, saved, message.reply)
        case Answered(re=PassesWereSettled()):
            return go_on(state.waiting) if isinstance(state, Recovering) else Step(state)
        case _:
            return Step[State](state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- wishes and stops ------------------------------------------------------------------------


def on_run(state: State, message: RunCompaction, taken: Taken) -> Step[State]:
    """One pass at a time.  A turn's need waits; a wish is refused, or waits where it asked to."""
    request = _request(message, taken)
    if isinstance(state, Idle):
        return go_on((request,))
    if isinstance(state, Recovering) or _only_asks(state):
        # Whether there will be a pass is not known yet.
        return Step(replace(state, waiting=(*state.waiting, request)))
    return _behind(state, request)


def on_stop(state: State, pass_id: PassId, taken: Taken) -> Step[State]:
    """A stop hits the pass that it names, or none."""
    if isinstance(state, Idle):
        return Step[State](state).answer(taken.asker, CompactionNotRunning(pass_id=pass_id))
    stopping = CompactionStopping(pass_id=pass_id)
    if isinstance(state, Stoppable) and request_of(state).pass_id == pass_id:
        return stop(state).answer(taken.asker, stopping)
    named = tuple(each for each in state.waiting if each.pass_id == pass_id)
    if named:
        return _without(state, named).answer(taken.asker, stopping)
    return Step[State](state).answer(taken.asker, CompactionNotRunning(pass_id=pass_id))


def on_drop(state: State, turn_id: TurnId) -> Step[State]:
    """The turn is being stopped: what it needed room for will not be called."""
    if isinstance(state, Idle):
        return Step(state)
    step = _without(state, tuple(each for each in state.waiting if each.turn_id == turn_id))
    left = step.state
    if isinstance(left, Stoppable) and request_of(left).turn_id == turn_id:
        return _after(step, stop(left))
    return step


def on_drop_all(state: State) -> Step[State]:
    """The session changed hands: what is under way could no longer be written."""
    if isinstance(state, Idle):
        return Step(state)
    step = _without(state, state.waiting)
    left = step.state
    return _after(step, stop(left)) if isinstance(left, Stoppable) else step


def on_get(state: State, taken: Taken) -> Step[State]:
    name = type(state).__name__
    match state:
        case Idle():
            view = CompactionView(state=name, pass_id=None, waiting=0)
        case Recovering(waiting):
            view = CompactionView(state=name, pass_id=None, waiting=len(waiting))
        case _:
            running = request_of(state).pass_id
            view = CompactionView(state=name, pass_id=running, waiting=len(state.waiting))
    return Step[State](state).answer(taken.asker, view)


# --- a restarted owner -------------------------------------------------------------------------


def on_started(state: State, incarnation: int) -> Step[State]:
    """The pass of a dead incarnation is never taken up again; its audit gets its end.

    It goes through the SessionActor, behind what the dead one had sent, and ends
    up in the session where it began.
    """
    if incarnation > 1:  # guard: COMPACT-7
        recovering = Step[State](Recovering())
        return recovering.ask("session", SettlePasses(), re=PassesWereSettled())
    return Step(state)


# --- what the pass waits for ---------------------------------------------------------------------


def on_outcome(state: State, outcome: PassOutcome) -> Step[State]:
    """Only outcomes of the pass that is under way count."""
    if isinstance(state, Idle | Recovering) or request_of(state).pass_id != outcome.pass_id:
        return Step(state)
    match state, outcome:
        case Planning(), CompactionPlanned(plan=plan):
            return _decided(save_start(state, plan))
        case Planning(), CompactionNotPlanned():
            return _decided(on_not_planned(state, outcome))
        case Summarising(), ConversationSummarised(summary=summary):
            return on_summarised(state, summary)
        case Summarising(), ConversationNotSummarised(reason=reason):
            return on_not_summarised(state, reason)
        case StoppingPlan(), CompactionPlanned() | CompactionNotPlanned():
            return on_stopped(state)
        case StoppingSummary(), ConversationSummarised() | ConversationNotSummarised():
            return on_stopped(state)
        case _:
            return Step(state)


def on_saved(state: State, saved: Saved, reply: Reply) -> Step[State]:
    if isinstance(state, Idle | Recovering) or request_of(state).pass_id != saved.pass_id:
        return Step(state)
    match state, saved:
        case SavingStart() | StoppingStart(), StartSaved():
            return on_start_saved(state, reply)
        case SavingSummary(), SummarySaved():
            return on_summary_saved(state, reply)
        case SavingEnd(), EndSaved():
            return on_end_saved(state)
        case _:
            return Step(state)


# --- pure helpers --------------------------------------------------------------------------------


def _request(message: RunCompaction, taken: Taken) -> Request:
    return Request(
        pass_id=PassId(taken.fresh),
        token=message.token,
        trigger=message.trigger,
        turn_id=message.turn_id,
        model=message.model,
        window=message.window,
        instructions=message.instructions,
        when_busy=message.when_busy,
        asker=taken.asker,
    )


def _only_asks(state: Busy) -> bool:
    """A turn asks whether there is anything to do, which mostly there is not."""
    return isinstance(state, Planning) and state.request.trigger != "manual"


def _behind(state: Busy, request: Request) -> Step[State]:
    """A pass is under way: wait behind it, or be refused with what was asked given back."""
    wish = request.trigger == "manual"
    full = len(state.waiting) >= WAITING_MAX
    if wish and (full or request.when_busy == "refuse"):  # guard: COMPACT-4
        running = request_of(state).pass_id
        busy = CompactionBusy(pass_id=running, instructions=request.instructions)
        return Step[State](state).answer(request.asker, busy)
    if not wish:
        return Step(replace(state, waiting=(*state.waiting, request)))
    told = replace(request, asker=None)
    queued = CompactionQueued(pass_id=request.pass_id, position=len(state.waiting) + 1)
    waiting = replace(state, waiting=(*state.waiting, told))
    return Step[State](waiting).answer(request.asker, queued)


def _decided(step: Step[State]) -> Step[State]:
    """A turn's question became a pass: wishes that came meanwhile are refused, or queued, now."""
    state = step.state
    if not isinstance(state, SavingStart):
        return step
    waiting = state.waiting
    step = step.to(replace(state, waiting=()))
    for request in waiting:
        assert isinstance(step.state, SavingStart)
        step = _after(step, _behind(step.state, request))
    return step


def _without(state: State, gone: tuple[Request, ...]) -> Step[State]:
    """Whoever waits in vain is told."""
    if isinstance(state, Idle) or not gone:
        return Step(state)
    rest = tuple(each for each in state.waiting if each not in gone)
    step = Step[State](replace(state, waiting=rest))
    for each in gone:
        ending = stopped(each)
        step = step.answer(each.asker, ending.reply)
        if each.asker is None:
            step = step.emit(ended_of(each, ending))
    return step


def _after(first: Step[State], then: Step[State]) -> Step[State]:
    """The state of `then`, with what both send: what `first` sends leaves first."""
    return Step(
        then.state,
        first.replies + then.replies,
        first.events + then.events,
        first.mail + then.mail,
        first.effects + then.effects,
    )


class CompactionActor(Owner):
    step = staticmethod(compaction_step)
    first = Idle
