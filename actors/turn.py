"""TurnActor: one turn at a time, from the prompt to its end, and every way to stop it.

    Idle -> Preparing -> SavingPrompt -> Calling <-> Retrying
    Calling -> SavingAnswer -> Acting -> Calling ... -> Ending -> Idle
    SavingAnswer | Acting -> Delivering -> Calling     something is said to the turn
    Ending -> Reentering -> Preparing                  a prompt that waited is due
    any of these -> Stopping... -> Ending -> Idle      a stop, or a lost session
    ... -> Drained -> Idle                             a drain, before a swap
    Recovering -> Idle                                 a restart, or a save that failed

ARCHITECTURE.md, section TurnActor.
"""

from msgspec.structs import replace

from tenure.actors.turn_child import ChildDecided, on_child_called, on_child_decided, on_stop_call
from tenure.actors.turn_commands import on_continue, on_run, on_stop_active, stop_waiting
from tenure.actors.turn_drain import attach, detach, drain
from tenure.actors.turn_end import after, ended_of, never_began, recover
from tenure.actors.turn_holdings import queue_of
from tenure.actors.turn_ledger import Ledger, counted
from tenure.actors.turn_limits import on_prepared, on_time_not_kept, on_time_up
from tenure.actors.turn_model import delta, on_model_done, on_model_failed
from tenure.actors.turn_questions import on_question_answered, on_tool_asked
from tenure.actors.turn_queue import (
    on_arm,
    on_change,
    on_item,
    on_run_prompt,
    view_of,
    with_found,
)
from tenure.actors.turn_room import call_again, on_room_made, on_too_long
from tenure.actors.turn_saves import Saved, on_saved
from tenure.actors.turn_start import go_on
from tenure.actors.turn_state import (
    Acting,
    AnswerSaved,
    CallDecided,
    Calling,
    CallsWereSettled,
    Delivering,
    Drained,
    EndSaved,
    Finished,
    Idle,
    MakingRoom,
    Overflown,
    Preparing,
    PromptSaved,
    QuestionPut,
    Quiet,
    Ready,
    Recovering,
    Resting,
    ResultsSaved,
    Retrying,
    RoomMade,
    State,
    StoppingDelivery,
    StoppingModel,
    StoppingRoom,
    StoppingTools,
    Undecided,
)
from tenure.actors.turn_steering import on_delivered
from tenure.actors.turn_stop import stop
from tenure.actors.turn_tools import applied, find, on_decided, on_tool_ended, superseded
from tenure.actors.turn_view import on_get
from tenure.actors.turn_waiting import (
    ItemAdded,
    ItemCancelled,
    ItemChanged,
    ItemDelivered,
    ItemReentered,
    Queue,
)
from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    CallStopped,
    RevokeSeatApprovals,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.handover import DetachSession
from tenure.messages.questions import ToolAnswered, ToolAsked, ToolNotAnswered
from tenure.messages.queue import ArmQueue, ChangeQueue, ContinueTurn, GetQueue, RunPrompt
from tenure.messages.session import CallsSettled
from tenure.messages.subagents import (
    CallNotRunning,
    ChildCalled,
    ChildGated,
    ChildNotGated,
    StopCall,
)
from tenure.messages.tokens import TurnId
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    ModelUnavailable,
    RunTurn,
    StopActiveTurn,
    StopTurn,
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

TurnCommand = (
    RunTurn
    | RunPrompt
    | ContinueTurn
    | ChangeQueue
    | ArmQueue
    | StopTurn
    | StopActiveTurn
    | DrainTurn
    | AbandonDrain
    | AttachSession
    | DetachSession
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
    | ToolAsked
    | ChildCalled
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
        case RunPrompt() | ContinueTurn() | ChangeQueue() | ArmQueue():
            return on_command(state, message, taken)
        case GetTurn():
            return on_get(state, taken)
        case GetQueue():
            return Step[State](state).answer(taken.asker, view_of(queue_of(state)))
        case StopCall():
            return on_stop_one(state, message, taken)
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
        ):
            return on_outcome(state, message, taken)
        case WaitOver() | TimeUp() | TimeNotKept() | ToolAsked() | ChildCalled():
            return on_outcome(state, message, taken)
        case ToolAnswered() | ToolNotAnswered() | ChildGated() | ChildNotGated():
            return Step(state)
        case Answered():
            return on_answered(state, message, taken)
        case _:
            return Step[State](state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_answered(state: State, message: Answered, taken: Taken) -> Step[State]:
    """Another owner has answered, or has ended without an answer."""
    match message:
        case Answered(re=CallDecided() as decided, reply=reply):
            return on_call_decided(state, decided, reply, taken)
        case Answered(re=PromptSaved() | AnswerSaved() | ResultsSaved() | EndSaved() as saved):
            return on_append_answered(state, saved, message.reply, taken)
        case Answered(re=RoomMade(turn_id=turn_id)):
            return on_room(state, turn_id, message.reply, taken)
        case Answered(re=ChildDecided() as child, reply=reply):
            return on_child(state, child, reply, taken)
        case Answered(re=QuestionPut() as put, reply=reply):
            return on_question(state, put, reply)
        case Answered(re=CallsWereSettled(), reply=reply):
            return on_settled(state, reply)
        case Answered(re=ItemAdded() | ItemChanged() | ItemCancelled() | ItemReentered() as mark):
            return on_item(state, mark, message.reply, taken)
        case Answered(re=ItemDelivered(turn_id=turn_id), reply=reply):
            if isinstance(state, Delivering | StoppingDelivery) and state.run.turn_id == turn_id:
                return on_delivered(state, reply, taken)
            return Step(state)
        case _:
            return Step(state)


def on_command(state: State, message: TurnCommand, taken: Taken) -> Step[State]:
    if isinstance(state, Recovering):
        return Step(replace(state, held=(*state.held, Held(message, taken))))
    match message:
        case RunTurn():
            return on_run(state, message, taken)
        case StopTurn():
            return on_stop(state, message, taken)
        case RunPrompt():
            return on_run_prompt(state, message, taken)
        case ContinueTurn():
            return on_continue(state, message, taken)
        case ChangeQueue():
            return on_change(state, message, taken)
        case ArmQueue():
            return on_arm(state, message, taken)
        case StopActiveTurn():
            return on_stop_active(state, message, taken)
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


def on_stop(state: Ready, message: StopTurn, taken: Taken) -> Step[State]:
    """A stop hits the turn that it names, or none."""
    if isinstance(state, Quiet):
        return stop_waiting(state, message, None, taken)
    run = state.run
    if message.turn_id != run.turn_id:  # guard: TURN-2
        return stop_waiting(state, message, run.turn_id, taken)
    return stop(state, message.cause, taken.asker, taken)


# --- a restarted owner -------------------------------------------------------------------


def on_started(state: State, incarnation: int) -> Step[State]:
    """The first incarnation has nothing to mend; a later one ends what the dead one left."""
    if incarnation == 1:
        return Step(state)
    return recover(Ledger(), Queue()).tell("approval", RevokeSeatApprovals())


def on_settled(state: State, reply: Reply) -> Step[State]:
    """Every call has its result, or gets it when the session is opened: what waited goes on."""
    if not isinstance(state, Recovering):
        return Step(state)
    ledger, queue = state.ledger, state.queue
    if isinstance(reply, CallsSettled):
        ledger = counted(ledger, reply.token.session_id, reply.last_turn)
        queue = with_found(queue, reply.queue)
    step = go_on(ledger, queue)
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
        case Acting(), ChildCalled():
            return on_child_called(state, outcome)
        case Acting(), ToolAsked():
            return on_tool_asked(state, outcome)
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


def on_question(state: State, put: QuestionPut, reply: Reply) -> Step[State]:
    """The user has answered a tool of the current turn, or nobody could be asked."""
    if isinstance(state, Acting) and state.run.turn_id == put.turn_id:
        return on_question_answered(state, put, reply)
    return Step(state)


def on_child(state: State, decided: ChildDecided, reply: Reply, taken: Taken) -> Step[State]:
    """A decision about a subagent's call takes effect in the current turn, or is superseded."""
    if isinstance(state, Acting) and state.run.turn_id == decided.turn_id:
        return on_child_decided(state, decided, reply, taken)
    if isinstance(reply, CallAllowed | CallDenied | CallStopped):
        return superseded(Step(state), reply.request_id)
    return Step(state)


def on_stop_one(state: State, message: StopCall, taken: Taken) -> Step[State]:
    """A stop for one call of the turn that runs, and of no other."""
    if isinstance(state, Acting) and state.run.turn_id == message.turn_id:
        return on_stop_call(state, message, taken)
    gone = CallNotRunning(turn_id=message.turn_id, call_id=message.call_id)
    return Step[State](state).answer(taken.asker, gone)


def on_append_answered(state: State, saved: Saved, reply: Reply, taken: Taken) -> Step[State]:
    if isinstance(state, Resting) or state.run.turn_id != saved.turn_id:
        return Step(state)
    return on_saved(state, saved, reply, taken)


class TurnActor(Owner):
    step = staticmethod(turn_step)
    first = Idle
