"""How a turn was left, written where its messages do not say it."""

from tenure.messages.entries import CustomEntry
from tenure.messages.tokens import TurnId, turn_number
from tenure.messages.turn import TURN_ENTRY, StopCause


def stopped(turn: TurnId, cause: StopCause) -> CustomEntry:
    """Somebody ended the turn on purpose: it is not to be taken for an interrupted one."""
    data = {"phase": "stopped", "turn": turn_number(turn), "cause": cause}
    return CustomEntry(custom_type=TURN_ENTRY, data=data)


def resumed(turn: TurnId, resumes: TurnId) -> CustomEntry:
    data = {"phase": "resumed", "turn": turn_number(turn), "resumes": turn_number(resumes)}
    return CustomEntry(custom_type=TURN_ENTRY, data=data)
