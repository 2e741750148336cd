"""Which turns of a session have come: what tells a late stop from an early one."""

import msgspec
from msgspec.structs import replace

from tenure.messages.tokens import SessionId, TurnId, turn_number, turn_session
from tenure.messages.turn import StopCause

EARLY_STOPS_KEPT_MAX = 64
"""Stops that came before their turn; the oldest is forgotten first."""


class EarlyStop(msgspec.Struct, frozen=True):
    """A stop that came before its turn."""

    turn_id: TurnId
    cause: StopCause


class Ledger(msgspec.Struct, frozen=True):
    """Which turns have come: what tells a late stop from an early one."""

    session_id: SessionId = SessionId("")
    last_turn: int = 0
    """The highest turn number that came, whatever became of it."""
    early: tuple[EarlyStop, ...] = ()
    """Stops for turns above it."""


def early_stop(ledger: Ledger, turn: TurnId) -> EarlyStop | None:
    return next((each for each in ledger.early if each.turn_id == turn), None)


def with_early_stop(ledger: Ledger, turn: TurnId, cause: StopCause) -> Ledger:
    early = (*ledger.early, EarlyStop(turn, cause))[-EARLY_STOPS_KEPT_MAX:]
    return replace(ledger, early=early)


def has_come(ledger: Ledger, turn: TurnId) -> bool:
    """Whether a stop for this turn is late: a turn of another session is over, too."""
    other = turn_session(turn) != ledger.session_id
    return other or turn_number(turn) <= ledger.last_turn


def counted(ledger: Ledger, session_id: SessionId, last_turn: int) -> Ledger:
    """The ledger of a session whose turns up to this number have come."""
    if session_id != ledger.session_id:
        return Ledger(session_id, last_turn)
    last = max(ledger.last_turn, last_turn)
    early = tuple(each for each in ledger.early if turn_number(each.turn_id) > last)
    return Ledger(session_id, last, early)
