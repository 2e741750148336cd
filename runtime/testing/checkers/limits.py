"""TURN-11: a turn that repeats itself is stopped for it, and no other is."""

from typing import Any

import msgspec

from tenure.messages.base import Message
from tenure.messages.bus import Answered
from tenure.messages.content import AssistantMessage, ToolResultMessage, calls_of
from tenure.messages.entries import MessageEntry
from tenure.messages.session import Appended, AppendEntries
from tenure.messages.turn import TurnEnded, TurnStarted
from tenure.messages.turn_effects import CallModel
from tenure.runtime.step import Ask, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent, role_of

EQUAL_MAX = 4


class _Turn(msgspec.Struct):
    """What a running turn had written, as its appends show it."""

    batch: list[str] = []
    """The calls of the last answer, then their results as they are asked to be written."""
    owed: int = 0
    """Calls of the batch whose result was not asked to be written."""
    last: list[str] = []
    equal: int = 0


class Loops(Checker):
    """Counts equal batches by what is written, whatever the turn itself counts."""

    invariants = ("TURN-11",)
    roles = ("turn",)

    def __init__(self) -> None:
        super().__init__()
        self._turns: Recent[tuple[str, str], _Turn] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if role_of(owner) != "turn":
            return
        place = (host, owner)
        for mail in step.mail:
            if isinstance(mail, Ask) and isinstance(mail.message, AppendEntries):
                self._writes(self._turns.setdefault(place, _Turn()), mail.message)
        for event in step.events:
            if isinstance(event, TurnStarted):
                self._turns[place] = _Turn()
            elif isinstance(event, TurnEnded):
                turn = self._turns.get(place, _Turn())
                if event.cause == "loop_guard" and turn.equal < EQUAL_MAX:
                    self.report("TURN-11", f"{event.turn_id} was stopped as a loop, and is none")
        if isinstance(message, Answered) and isinstance(message.reply, Appended):
            turn = self._turns.get(place, _Turn())
            for effect in step.effects:
                if isinstance(effect, CallModel) and turn.equal >= EQUAL_MAX:
                    self.report("TURN-11", f"{effect.turn_id} repeats itself and goes on")

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._turns.pop((host, owner), None)

    def _writes(self, turn: _Turn, append: AppendEntries) -> None:
        for entry in append.entries:
            if not isinstance(entry, MessageEntry):
                continue
            match entry.message:
                case AssistantMessage() as said:
                    turn.batch = [f"{c.name} {_json(c.arguments)}" for c in calls_of(said)]
                    turn.owed = len(turn.batch)
                    if not turn.batch:
                        turn.last, turn.equal = [], 0
                case ToolResultMessage(content=content, is_error=is_error):
                    turn.batch.append(f"{is_error} {_json(content)}")
                    turn.owed -= 1
                    if turn.owed == 0:
                        turn.equal = turn.equal + 1 if turn.batch == turn.last else 1
                        turn.last = turn.batch
                case _:
                    pass


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
