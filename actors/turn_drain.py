"""Drains: the turn makes way for a swap, a handover or the end, and what comes of it.

A drain stops what runs and keeps what waits.  It is over when the seat has a
session again, or none; at the end of the seat it is never over.
"""

from tenure.actors.turn_start import counted
from tenure.actors.turn_state import (
    Drained,
    Drainer,
    Idle,
    Ready,
    State,
    Stopped,
    ledger_of,
)
from tenure.actors.turn_stop import begin_stop, lose
from tenure.messages.turn import AttachSession, StopCause, TurnDrained, TurnEnded
from tenure.runtime.step import Step, Taken


def drain(state: Ready, cause: StopCause, taken: Taken) -> Step[State]:
    """Stop what runs, keep what waits, answer when nothing runs."""
    match state:
        case Idle(ledger):
            drained = Drained(ledger, (), cause)
            return Step[State](drained).answer(taken.asker, TurnDrained())
        case Drained(ledger, queue, before):
            texts = tuple(prompt.text for prompt in queue)
            last = before if before == "shutdown" else cause
            drained = Drained(ledger, queue, last)
            return Step[State](drained).answer(taken.asker, TurnDrained(queued=texts))
        case _:
            return begin_stop(state, Stopped(cause), (Drainer(taken.asker, cause),), taken)


def attach(state: Ready, message: AttachSession, taken: Taken) -> Step[State]:
    """The seat's session, perhaps another one: what was held of the old one is over."""
    ledger = counted(ledger_of(state), message.session_id, message.last_turn)
    match state:
        case Idle():
            return Step(Idle(ledger))
        case Drained(queue=queue, cause=cause):
            return _end_drain(Drained(ledger, queue, cause), "swap")
        case _:
            # The session was opened again under a running turn, whose token is stale now.
            return lose(state, "the session was opened again while the turn ran", taken)


def detach(state: Ready, taken: Taken) -> Step[State]:
    """The seat gave its session away, and with it what was held."""
    match state:
        case Idle():
            return Step(state)
        case Drained():
            return _end_drain(state, "handover")
        case _:
            return lose(state, "the session was handed over while the turn ran", taken)


def _end_drain(state: Drained, cause: StopCause) -> Step[State]:
    closing = Drained(state.ledger, (), state.cause)
    step = Step[State](closing if state.cause == "shutdown" else Idle(state.ledger))
    for prompt in state.queue:
        step = step.emit(TurnEnded(turn_id=prompt.turn_id, stop_reason="stopped", cause=cause))
    return step
