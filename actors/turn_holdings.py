"""What every state of a turn holds, wherever it stands: the ledger and the queue."""

from typing import TypeVar

from msgspec.structs import replace

from tenure.actors.turn_ledger import Ledger
from tenure.actors.turn_state import Quiet, Ready, Resting, State
from tenure.actors.turn_waiting import Queue

S = TypeVar("S", bound=State)
R = TypeVar("R", bound=Ready)


def ledger_of(state: Ready) -> Ledger:
    return state.ledger if isinstance(state, Quiet) else state.run.ledger


def with_ledger(state: R, ledger: Ledger) -> R:
    if isinstance(state, Quiet):
        return replace(state, ledger=ledger)
    return replace(state, run=replace(state.run, ledger=ledger))


def queue_of(state: State) -> Queue:
    return state.queue if isinstance(state, Resting) else state.run.queue


def with_queue(state: S, queue: Queue) -> S:
    if isinstance(state, Resting):
        return replace(state, queue=queue)
    return replace(state, run=replace(state.run, queue=queue))
