"""Drains: the turn makes way for a swap, a handover or the end, and what comes of it.

A drain stops what runs and keeps what waits.  It is over when the seat has a
session again, or none; at the end of the seat it is never over.
"""

from tenure.actors.turn_end import after, drained
from tenure.actors.turn_fates import end_stream, end_wait, note_returned, refuse_adding
from tenure.actors.turn_holdings import ledger_of, queue_of, with_queue
from tenure.actors.turn_ledger import Ledger, counted
from tenure.actors.turn_state import (
    Drained,
    Drainer,
    Idle,
    Quiet,
    Ready,
    Reentering,
    State,
    Stopped,
)
from tenure.actors.turn_stop import begin_stop, lose
from tenure.actors.turn_waiting import Kept, Queue
from tenure.messages.queue import PromptSuspended, QueuedPrompt
from tenure.messages.turn import AttachSession, StopCause, TurnDrained
from tenure.runtime.step import Step, Taken

FOUND = "it waited when the session was opened"


def drain(state: Ready, cause: StopCause, taken: Taken) -> Step[State]:
    """Stop what runs, keep what waits, answer when nothing runs."""
    if not isinstance(state, Quiet):
        return begin_stop(state, Stopped(cause), (Drainer(taken.asker, cause),), taken)
    for_good = isinstance(state, Drained) and state.cause == "shutdown"
    step, held = drained(state.ledger, state.queue, "shutdown" if for_good else cause)
    return step.answer(taken.asker, TurnDrained(queued=held))


def attach(state: Ready, message: AttachSession, taken: Taken) -> Step[State]:
    """The seat's session, perhaps another one.

    What waits in it is held: nothing starts unasked (TURN-10).  What was due of the
    session before was given back by the swap, or is among what the file holds.
    """
    token = message.token
    ledger = counted(ledger_of(state), token.session_id, message.last_turn)
    found = tuple(each for each in message.queue if each.item_id not in message.returned)
    queue = Queue(tuple(Kept(each) for each in found))
    ended = _end_queue(state, message)
    back = tuple(each.item_id for each in message.queue if each.item_id in message.returned)
    if back:
        ended = note_returned(ended, back, token)
    ended = _say_held(ended, found)
    if isinstance(state, Quiet):
        return ended.to(_at_rest(state, ledger, queue))
    # The session was opened again under a running turn, whose token is stale now.
    why = "the session was opened again while the turn ran"
    return after(ended, lose(with_queue(state, queue), why, taken))


def detach(state: Ready, taken: Taken) -> Step[State]:
    """The seat gave its session away, and with it what waited."""
    step = Step[State](state)
    queue = queue_of(state)
    for item in queue.armed:
        step = end_wait(step, item, "handover")
    step = refuse_adding(step, queue.adding, "handover")
    if isinstance(state, Quiet):
        return step.to(_at_rest(state, state.ledger, Queue()))
    why = "the session was handed over while the turn ran"
    return after(step, lose(with_queue(state, Queue()), why, taken))


def _at_rest(state: Idle | Drained | Reentering, ledger: Ledger, queue: Queue) -> State:
    """Drains are over, but for the one at the end of the seat."""
    if isinstance(state, Drained) and state.cause == "shutdown":
        return Drained(ledger, queue, "shutdown")
    return Idle(ledger, queue)


def _end_queue(state: Ready, message: AttachSession) -> Step[State]:
    """The turns that were to come of what waited will not come, or come under other names."""
    queue = queue_of(state)
    step = refuse_adding(Step[State](state), queue.adding, "swap")
    for item in queue.armed:
        if item.prompt.item_id in message.returned:
            step = end_wait(step, item, "swap")
        else:
            step = end_stream(step, item, "session_lost", None, "its session was opened again")
    return step


def _say_held(step: Step[State], found: tuple[QueuedPrompt, ...]) -> Step[State]:
    for each in found:
        step = step.emit(PromptSuspended(item_id=each.item_id, text=each.text, reason=FOUND))
    return step
