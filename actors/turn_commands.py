"""What a TurnActor does about starts and stops: each meets the state that it finds."""

from tenure.actors.turn_fates import give_back
from tenure.actors.turn_holdings import ledger_of, queue_of, with_ledger, with_queue
from tenure.actors.turn_ledger import counted, early_stop, has_come, with_early_stop
from tenure.actors.turn_queue import enqueue
from tenure.actors.turn_start import begin, go_on, prompt_of, unfit
from tenure.actors.turn_state import (
    Drained,
    Idle,
    Prompt,
    Ready,
    Reentering,
    State,
)
from tenure.actors.turn_stop import stop
from tenure.actors.turn_waiting import Queue, Resumed
from tenure.messages.queue import ContinueTurn
from tenure.messages.tokens import TurnId, turn_number, turn_session
from tenure.messages.turn import (
    RunTurn,
    StopActiveTurn,
    StopCause,
    StopTurn,
    TurnBusy,
    TurnEnded,
    TurnNotRunning,
    TurnNotStarted,
    TurnStopping,
)
from tenure.runtime.step import Step, Taken


def on_run(state: Ready, message: RunTurn, taken: Taken) -> Step[State]:
    """A start whose token the SessionActor has checked."""
    turn = message.turn_id
    early, here = _announced(state, turn)
    if early is not None:
        return _refuse_stopped(here, turn, early, taken)
    refusal = unfit(message.text, message.images)
    if refusal is not None:
        return Step[State](here).answer(taken.asker, refusal)
    match here:
        case Idle(ledger, queue):
            return begin(prompt_of(message), taken.asker, ledger, queue)
        case Drained(cause=cause):
            # The SessionActor holds starts during a swap: this came while the seat closed.
            return _refuse_stopped(here, turn, cause, taken)
        case _:
            if message.when_busy == "refuse":  # guard: TURN-1
                busy = TurnBusy(turn_id=current(here))
                return Step[State](here).answer(taken.asker, busy)
            return enqueue(here, message, taken)


def on_continue(state: Ready, message: ContinueTurn, taken: Taken) -> Step[State]:
    """An interrupted turn goes on, if nothing else does."""
    turn = message.turn_id
    early, here = _announced(state, turn)
    if early is not None:
        return _refuse_stopped(here, turn, early, taken)
    match here:
        case Idle(ledger, queue):
            origin = Resumed(message.resumes)
            prompt = Prompt(turn, message.token, "", (), message.model, origin=origin)
            return begin(prompt, taken.asker, ledger, queue)
        case Drained(cause=cause):
            return _refuse_stopped(here, turn, cause, taken)
        case _:
            return Step[State](here).answer(taken.asker, TurnBusy(turn_id=current(here)))


def on_stop_active(state: Ready, message: StopActiveTurn, taken: Taken) -> Step[State]:
    """Whatever runs now, or is about to."""
    match state:
        case Idle() | Drained():
            return Step[State](state).answer(taken.asker, TurnNotRunning(turn_id=None))
        case Reentering(ledger, queue, turn_id=turn_id):
            dropped = tuple(item.prompt.text for item in queue.armed)
            step = Step[State](Idle(ledger, Queue(queue.kept)))
            stopping = TurnStopping(turn_id=turn_id, dropped=dropped)
            return give_back(step.answer(taken.asker, stopping), queue, message.cause)
        case _:
            return stop(state, message.cause, taken.asker, taken)


# --- pure helpers ------------------------------------------------------------------------


def current(state: Ready) -> TurnId:
    """The turn that runs or comes in, in a state in which one does."""
    assert not isinstance(state, Idle | Drained)
    return state.turn_id if isinstance(state, Reentering) else state.run.turn_id


def _announced(state: Ready, turn: TurnId) -> tuple[StopCause | None, Ready]:
    """The cause of a stop that came before this turn, and the state that counts it as come."""
    ledger = ledger_of(state)
    early = early_stop(ledger, turn)
    here = with_ledger(state, counted(ledger, turn_session(turn), turn_number(turn)))
    return None if early is None else early.cause, here


def _refuse_stopped(state: Ready, turn: TurnId, cause: StopCause, taken: Taken) -> Step[State]:
    """A start that was stopped before it came: it ends as if it had begun."""
    ended = TurnEnded(turn_id=turn, stop_reason="stopped", cause=cause)
    refused = TurnNotStarted(turn_id=turn, cause=cause)
    return Step[State](state).emit(ended).answer(taken.asker, refused)


def stop_waiting(
    state: Ready, message: StopTurn, running: TurnId | None, taken: Taken
) -> Step[State]:
    """A stop for a prompt that waits takes it out of the queue; the running turn goes on."""
    turn = message.turn_id
    queue = queue_of(state)
    found = (*queue.armed, *(each.item for each in queue.adding))
    item = next((item for item in found if item.turn_id == turn), None)
    if item is None or isinstance(state, Drained):
        return _stop_other(state, message, running, taken)
    named = Queue(
        tuple(each for each in queue.armed if each is item),
        tuple(each for each in queue.adding if each.item is item),
    )
    rest = Queue(
        tuple(each for each in queue.items if each is not item),
        tuple(each for each in queue.adding if each.item is not item),
    )
    step = Step[State](with_queue(state, rest))
    if isinstance(state, Reentering) and state.item_id == item.prompt.item_id:
        step = go_on(state.ledger, rest)
    stopping = TurnStopping(turn_id=turn, dropped=(item.prompt.text,))
    return give_back(step, named, message.cause).answer(taken.asker, stopping)


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
    return Step[State](with_ledger(state, early)).answer(taken.asker, stopping)
