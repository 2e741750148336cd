"""TURN-11 and TURN-12: turns that repeat themselves, or use up a budget, end; no others do."""

from typing import Any

import msgspec

from tenure.messages.approval import DecideCall
from tenure.messages.base import Message
from tenure.messages.bus import Answered
from tenure.messages.content import AssistantMessage, ToolResultMessage, calls_of
from tenure.messages.entries import MessageEntry
from tenure.messages.limits import Budget, Spent, TurnRules
from tenure.messages.session import Appended, AppendEntries
from tenure.messages.turn import DrainTurn, StopActiveTurn, StopTurn, TurnEnded, TurnStarted
from tenure.messages.turn_effects import CallModel, ModelCallDone, TurnPrepared
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


class _Bounded(msgspec.Struct):
    """A turn, with what it may use and what it was seen to use."""

    rules: TurnRules = TurnRules()
    requests: int = 0
    tool_calls: int = 0
    tokens: int = 0
    told: set[str] = set()
    """The causes of stops that came from outside."""


class Budgets(Checker):
    """Counts calls and tokens by what is wanted and said, whatever the turn itself counts."""

    invariants = ("TURN-12",)
    roles = ("turn",)

    def __init__(self) -> None:
        super().__init__()
        self._turns: Recent[tuple[str, str], _Bounded] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if role_of(owner) != "turn":
            return
        place = (host, owner)
        if isinstance(message, TurnPrepared):
            self._turns[place] = _Bounded(rules=message.rules)
        turn = self._turns.setdefault(place, _Bounded())
        if isinstance(message, ModelCallDone):
            turn.tokens += message.message.usage.total_tokens
        batch = sum(isinstance(m, Ask) and isinstance(m.message, DecideCall) for m in step.mail)
        calls = sum(isinstance(effect, CallModel) for effect in step.effects)
        turn.requests += calls
        turn.tool_calls += batch
        if calls or batch:
            self._within(owner, turn, "model" if calls else "tool")
        if isinstance(message, StopTurn | StopActiveTurn | DrainTurn):
            turn.told.add(message.cause)
        unbounded = turn.rules.turn == turn.rules.session == Budget()
        for event in step.events:
            by_budget = isinstance(event, TurnEnded) and event.cause == "budget"
            if by_budget and unbounded and "budget" not in turn.told:
                self.report("TURN-12", f"{owner} has no budget, and a turn was stopped by it")

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._turns.pop((host, owner), None)

    def _within(self, owner: str, turn: _Bounded, what: str) -> None:
        before = turn.rules.spent
        for scope, bound, base in (
            ("turn", turn.rules.turn, Spent()),
            ("session", turn.rules.session, before),
        ):
            used = (
                (bound.requests_max, turn.requests + base.requests),
                (bound.tool_calls_max, turn.tool_calls + base.tool_calls),
                (bound.tokens_max, turn.tokens + base.usage.total_tokens + 1),
            )
            if any(most and count > most for most, count in used):
                self.report("TURN-12", f"{owner} began a {what} call beyond the {scope}'s budget")


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
