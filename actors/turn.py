"""TurnActor: one turn at a time, from the prompt to its end, and every way to stop it.

    Idle -> Preparing -> SavingPrompt -> Calling <-> Retrying
    Calling -> SavingAnswer -> Acting -> Calling ... -> Ending -> Idle
    any of these -> Stopping... -> Ending -> Idle      a stop, or a lost session
    ... -> Drained -> Idle                             a drain, before a swap
    Recovering -> Idle                                 a restart, or a save that failed

ARCHITECTURE.md, section TurnActor.
"""

from msgspec.structs import replace

from tenure.actors.turn_drain import attach, detach, drain
from tenure.actors.turn_end import after, ended_of, never_began, recover
from tenure.actors.turn_limits import on_prepared, on_time_not_kept, on_time_up
from tenure.actors.turn_model import delta, on_model_done, on_model_failed
from tenure.actors.turn_room import call_again, on_room_made, on_too_long
from tenure.actors.turn_saves import Saved, on_saved
from tenure.actors.turn_start import (
    begin,
    counted,
    early_stop,
    go_on,
    has_come,
    prompt_of,
    unfit,
    with_early_stop,
)
from tenure.actors.turn_state import (
    Acting,
    AnswerSaved,
    CallDecided,
    Calling,
    CallsWereSettled,
    Drained,
    EndSaved,
    Finished,
    Idle,
    Ledger,
    MakingRoom,
    Overflown,
    Preparing,
    PromptSaved,
    Ready,
    Recovering,
    Resting,
    ResultsSaved,
    Retrying,
    RoomMade,
    Run,
    Running,
    State,
    StoppingModel,
    StoppingRoom,
    StoppingTools,
    Undecided,
    ledger_of,
)
from tenure.actors.turn_stop import stop
from tenure.actors.turn_tools import applied, find, on_decided, on_tool_ended, superseded
from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    CallStopped,
    RevokeSeatApprovals,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.content import Usage
from tenure.messages.handover import DetachSession
from tenure.messages.session import CallsSettled
from tenure.messages.tokens import CallId, TurnId, turn_number, turn_session
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    ModelUnavailable,
    RunTurn,
    StopActiveTurn,
    StopCause,
    StopTurn,
    TurnBusy,
    TurnEnded,
    TurnNotRunning,
    TurnNotStarted,
    TurnQueued,
    TurnStopping,
    TurnView,
)
from tenure.messages.turn_effects import (
    ModelCallDone,
    ModelCallFailed,
    ModelDelta,
    TimeNotKept,
    TimeUp,
    ToolCallDone,
    ToolCallFailed,
    TurnNotPrepared,
    TurnPrepared,
    WaitOver,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import Held, Step, Taken

QUEUED_MAX = 100
"""Prompts that wait behind a running turn; a further one is refused."""

TurnCommand = (
    RunTurn | StopTurn | StopActiveTurn | DrainTurn | AbandonDrain | AttachSession | DetachSession
)
RunOutcome = (
    TurnPrepared
    | TurnNotPrepared
    | ModelDelta
    | ModelCallDone
    | ModelCallFailed
    | ToolCallDone
    | ToolCallFailed
    | WaitOver
    | TimeUp
    | TimeNotKept
)


def turn_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message.  Starts and stops first, then what the run waits for."""
    match message:
        case (
            RunTurn()
            | StopTurn()
            | StopActiveTurn()
            | DrainTurn()
            | AbandonDrain()
            | AttachSession()
            | DetachSession()
        ):
            return on_command(state, message, taken)
        case GetTurn():
            return on_get(state, taken)
        case OwnerStarted(incarnation=incarnation):
            return on_started(state, incarnation)
        case (
            TurnPrepared()
            | TurnNotPrepared()
            | ModelDelta()
            | ModelCallDone()
            | ModelCallFailed()
            | ToolCallDone()
            | ToolCallFailed()
            | WaitOver()
            | TimeUp()
            | TimeNotKept()
        ):
            return on_outcome(state, message, taken)
        case Answered(re=CallDecided() as decided, reply=reply):
            return on_call_decided(state, decided, reply, taken)
        case Answered(re=PromptSaved() | AnswerSaved() | ResultsSaved() | EndSaved() as saved):
            return on_append_answered(state, saved, message.reply, taken)
        case Answered(re=RoomMade(turn_id=turn_id)):
            return on_room(state, turn_id, message.reply, taken)
        case Answered(re=CallsWereSettled(), reply=reply):
            return on_settled(state, reply)
        case _:
            return Step[State](state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_command(state: State, message: TurnCommand, taken: Taken) -> Step[State]:
    if isinstance(state, Recovering):
        return Step(replace(state, held=(*state.held, Held(message, taken))))
    match message:
        case RunTurn():
            return on_run(state, message, taken)
        case StopTurn():
            return on_stop(state, message, taken)
        case StopActiveTurn(cause=cause):
            if isinstance(state, Idle | Drained):
                return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=None))
            return stop(state, cause, taken.asker, taken)
        case DrainTurn(cause=cause):
            return drain(state, cause, taken)
        case AbandonDrain():
            if isinstance(state, Drained) and state.cause != "shutdown":
                return go_on(state.ledger, state.queue)
            return Step(state)
        case AttachSession():
            return attach(state, message, taken)
        case DetachSession():
            return detach(state, taken)


# --- starts and stops --------------------------------------------------------------------


def on_run(state: Ready, message: RunTurn, taken: Taken) -> Step[State]:
    """A start whose token the SessionActor has checked."""
    turn = message.turn_id
    ledger = ledger_of(state)
    early = early_stop(ledger, turn)
    here = counted(ledger, turn_session(turn), turn_number(turn))
    if early is not None:
        return _refuse_stopped(_with_ledger(state, here), turn, early.cause, taken)
    refusal = unfit(message)
    if refusal is not None:
        return Step[State](_with_ledger(state, here)).answer(taken.asker, refusal)
    match state:
        case Idle():
            return begin(prompt_of(message), taken.asker, here, ())
        case Drained(cause=cause):
            # The SessionActor holds starts during a swap: this came while the seat closed.
            return _refuse_stopped(state, turn, cause, taken)
        case _:
            run = state.run
            if message.when_busy == "refuse" or len(run.queue) >= QUEUED_MAX:  # guard: TURN-1
                busy = TurnBusy(turn_id=run.turn_id)
                return Step[State](_with_ledger(state, here)).answer(taken.asker, busy)
            queue = (*run.queue, prompt_of(message))
            queued = replace(state, run=replace(run, queue=queue, ledger=here))
            position = TurnQueued(turn_id=turn, position=len(queue))
            return Step[State](queued).answer(taken.asker, position)


def on_stop(state: Ready, message: StopTurn, taken: Taken) -> Step[State]:
    """A stop hits the turn that it names, or none."""
    if isinstance(state, Idle | Drained):
        return _stop_other(state, message, None, taken)
    run = state.run
    if message.turn_id != run.turn_id:  # guard: TURN-2
        return _stop_queued(state, run, message, taken)
    return stop(state, message.cause, taken.asker, taken)


def on_get(state: State, taken: Taken) -> Step[State]:
    name = type(state).__name__
    match state:
        case Idle():
            view = TurnView(state=name, turn_id=None, queued=(), usage=Usage())
        case Drained(queue=queue) | Recovering(queue=queue):
            texts = tuple(prompt.text for prompt in queue)
            view = TurnView(state=name, turn_id=None, queued=texts, usage=Usage())
        case _:
            run = state.run
            view = TurnView(
                state=name,
                turn_id=run.turn_id,
                queued=tuple(prompt.text for prompt in run.queue),
                usage=run.usage,
                calls=_running(state),
            )
    return Step[State](state).answer(taken.asker, view)


# --- a restarted owner -------------------------------------------------------------------


def on_started(state: State, incarnation: int) -> Step[State]:
    """The first incarnation has nothing to mend; a later one ends what the dead one left."""
    if incarnation == 1:
        return Step(state)
    return recover(Ledger(), ()).tell("approval", RevokeSeatApprovals())


def on_settled(state: State, reply: Reply) -> Step[State]:
    """Every call has its result, or gets it when the session is opened: what waited goes on."""
    if not isinstance(state, Recovering):
        return Step(state)
    ledger = state.ledger
    if isinstance(reply, CallsSettled):
        ledger = counted(ledger, reply.token.session_id, reply.last_turn)
    step = go_on(ledger, state.queue)
    for held in state.held:
        step = step.then(turn_step, held.message, held.taken)
    return step


# --- what the run waits for ----------------------------------------------------------------


def on_outcome(state: State, outcome: RunOutcome, taken: Taken) -> Step[State]:
    """Only the current turn's outcomes count."""
    if isinstance(state, Resting):
        return Step(state)
    if outcome.turn_id != state.run.turn_id:  # guard: TURN-4
        return Step(state)
    match state, outcome:
        case Preparing(run, asker), TurnPrepared():
            return on_prepared(run, asker, outcome, taken)
        case _, TimeUp():
            return on_time_up(state, taken)
        case Preparing(run, asker), TurnNotPrepared(model=model, reason=reason):
            refusal = ModelUnavailable(model=model, reason=reason)
            ended = ended_of(run, Finished("error"), refusal.remedy)
            return never_began(run, asker, refusal, ended, ())
        case Calling(run), ModelCallFailed(call=call, failure=failure) if (
            call == run.calls and failure.kind == "context_exceeded"
        ):
            return on_too_long(state, outcome, taken)
        case Calling(run), ModelDelta(call=call) if call == run.calls:
            return Step[State](state).emit(delta(outcome))
        case ((Calling(run) | StoppingModel(run)), ModelCallDone(call=call)) if call == run.calls:
            return on_model_done(state, outcome.message, taken)
        case ((Calling(run) | StoppingModel(run)), ModelCallFailed(call=call)) if call == run.calls:
            return on_model_failed(state, outcome, taken)
        case Retrying(run), WaitOver(call=call) if call == run.calls:
            return call_again(state, taken)
        case _, TimeNotKept(reason=reason):
            return on_time_not_kept(state, reason, taken)
        case Acting() | StoppingTools(), ToolCallDone() | ToolCallFailed():
            return on_tool_ended(state, outcome, taken)
        case _:
            return Step(state)


def on_call_decided(state: State, decided: CallDecided, reply: Reply, taken: Taken) -> Step[State]:
    """A decision takes effect on its own call of the current turn, or is superseded."""
    if isinstance(state, Acting) and state.run.turn_id == decided.turn_id:
        call = find(state.calls, decided.call_id)
        if call is not None and isinstance(call.status, Undecided):
            if isinstance(reply, CallStopped):
                # Said first: the stop revokes what is still open of the turn.
                said = applied(Step[State](state), reply.request_id)
                return after(said, stop(state, "approval", None, taken))
            return on_decided(state, call, reply, taken)
    if isinstance(reply, CallAllowed | CallDenied | CallStopped):
        return superseded(Step(state), reply.request_id)
    return Step(state)


def on_room(state: State, turn_id: TurnId, reply: Reply, taken: Taken) -> Step[State]:
    """The compaction that the current turn asked for is over, or was none."""
    if isinstance(state, MakingRoom | Overflown | StoppingRoom) and state.run.turn_id == turn_id:
        return on_room_made(state, reply, taken)
    return Step(state)


def on_append_answered(state: State, saved: Saved, reply: Reply, taken: Taken) -> Step[State]:
    if isinstance(state, Resting) or state.run.turn_id != saved.turn_id:
        return Step(state)
    return on_saved(state, saved, reply, taken)


# --- pure helpers ------------------------------------------------------------------------


def _running(state: State) -> tuple[CallId, ...]:
    if not isinstance(state, Acting | StoppingTools):
        return ()
    return tuple(call.call_id for call in state.calls if isinstance(call.status, Running))


def _with_ledger(state: Ready, ledger: Ledger) -> Ready:
    if isinstance(state, Idle | Drained):
        return replace(state, ledger=ledger)
    return replace(state, run=replace(state.run, ledger=ledger))


def _refuse_stopped(state: Ready, turn: TurnId, cause: StopCause, taken: Taken) -> Step[State]:
    """A start that was stopped before it came: it ends as if it had begun."""
    ended = TurnEnded(turn_id=turn, stop_reason="stopped", cause=cause)
    refused = TurnNotStarted(turn_id=turn, cause=cause)
    return Step[State](state).emit(ended).answer(taken.asker, refused)


def _stop_queued(state: Ready, run: Run, message: StopTurn, taken: Taken) -> Step[State]:
    """A stop for a prompt that waits takes it out of the queue; the running turn goes on."""
    turn = message.turn_id
    named = tuple(prompt for prompt in run.queue if prompt.turn_id == turn)
    if not named or isinstance(state, Idle | Drained):
        return _stop_other(state, message, run.turn_id, taken)
    rest = tuple(prompt for prompt in run.queue if prompt.turn_id != turn)
    step = Step[State](replace(state, run=replace(run, queue=rest)))
    ended = TurnEnded(turn_id=turn, stop_reason="stopped", cause=message.cause)
    dropped = tuple(prompt.text for prompt in named)
    return step.emit(ended).answer(taken.asker, TurnStopping(turn_id=turn, dropped=dropped))


def _stop_other(
    state: Ready, message: StopTurn, running: TurnId | None, taken: Taken
) -> Step[State]:
    """Too late, or too early: an early stop is remembered and answers its start."""
    ledger = ledger_of(state)
    turn = message.turn_id
    if has_come(ledger, turn):
        return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=running))
    early = with_early_stop(ledger, turn, message.cause)
    stopping = TurnStopping(turn_id=turn)
    return Step[State](_with_ledger(state, early)).answer(taken.asker, stopping)


class TurnActor(Owner):
    step = staticmethod(turn_step)
    first = Idle
