"""BUS-1, BUS-2, BUS-3: everybody is answered once, in order, and every effect ends once."""

from typing import Any

import msgspec

from tenure.messages.base import Command, Effect, Message, Outcome, Reply
from tenure.messages.bus import Answered, Published
from tenure.messages.session import SessionChanged
from tenure.messages.tokens import TurnId
from tenure.messages.turn import TurnEnded, TurnStarted
from tenure.runtime.step import Ask, AskId, Cancel, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Over, Recent, address_at


class Answers(Checker):
    """Who asks is answered exactly once."""

    invariants = ("BUS-1",)

    def __init__(self) -> None:
        super().__init__()
        self._clients: dict[tuple[str, int], Command] = {}
        self._answered: Recent[tuple[str, AskId], str] = Recent()
        self._owners: Recent[tuple[str, str], list[msgspec.Struct]] = Recent()

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        self._clients[host, number] = command

    def answered(self, host: str, number: int, reply: Reply) -> None:
        if self._clients.pop((host, number), None) is None:
            self.report("BUS-1", f"client {number} was answered twice: {type(reply).__name__}")

    def abandoned(self, host: str, number: int) -> None:
        self._clients.pop((host, number), None)

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        for asker, reply in step.replies:
            earlier = self._answered.get((host, asker))
            if earlier is not None:
                now = type(reply).__name__
                self.report("BUS-1", f"ask {asker} was answered {earlier}, then {now} by {owner}")
            self._answered[host, asker] = type(reply).__name__
        if isinstance(message, Answered):
            self._owner_answered(host, owner, message)
        asks = [mail.re for mail in step.mail if isinstance(mail, Ask)]
        if asks:
            self._owners.setdefault((host, owner), []).extend(asks)

    def _owner_answered(self, host: str, owner: str, message: Answered) -> None:
        waiting = self._owners.setdefault((host, owner), [])
        for place, re in enumerate(waiting):
            if re is message.re:
                del waiting[place]
                return
        what = f"{owner} got an answer that it did not wait for: {type(message.re).__name__}"
        self.report("BUS-1", what)

    def finished(self) -> None:
        for (host, number), command in self._clients.items():
            name = type(command).__name__
            self.report("BUS-1", f"client {number} of {host} was never answered its {name}")


class Lanes(Checker):
    """Mail keeps its order, and so do commands; only a stop that names its turn overtakes."""

    invariants = ("BUS-2",)

    def __init__(self) -> None:
        super().__init__()
        self._sent: Recent[tuple[str, str, int], tuple[int, Message]] = Recent()
        self._number = 0
        self._last: Recent[tuple[str, str], int] = Recent()
        self._commands: Recent[int, Command] = Recent()
        self._last_ask: Recent[tuple[str, str], AskId] = Recent()

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        if not command.control:
            self._commands[id(command)] = command

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        sent = self._sent.pop((host, owner, id(message)), None)
        if sent is not None:
            place = (host, owner)
            if sent[0] < self._last.get(place, 0):
                what = f"{type(message).__name__} was overtaken by later mail for {owner}"
                self.report("BUS-2", what)
            self._last[place] = max(sent[0], self._last.get(place, 0))
        elif taken.asker is not None and self._commands.get(id(message)) is message:
            self._command_taken(host, owner, message, taken.asker)
        for mail in step.mail:
            if not isinstance(mail, Cancel):
                self._number += 1
                to = address_at(owner, mail.to)
                self._sent[host, to, id(mail.message)] = (self._number, mail.message)

    def _command_taken(self, host: str, owner: str, message: Message, asker: AskId) -> None:
        if asker < self._last_ask.get((host, owner), AskId(0)):
            self.report("BUS-2", f"{type(message).__name__} was overtaken at {owner}")
        self._last_ask[host, owner] = max(asker, self._last_ask.get((host, owner), AskId(0)))


class Effects(Checker):
    """Every effect has exactly one terminal outcome."""

    invariants = ("BUS-3",)

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, dict[int, Effect]] = {}
        self._closed: set[str] = set()

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        self._open.setdefault(host, {})[number] = effect

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        if self._open.get(host, {}).pop(number, None) is None:
            name = type(outcome).__name__
            self.report("BUS-3", f"effect {number} of {owner} ended again, with {name}")

    def host_closed(self, host: str) -> None:
        self._closed.add(host)

    def finished(self) -> None:
        for host in self._closed:
            for number, effect in self._open.get(host, {}).items():
                self.report("BUS-3", f"effect {number} has no outcome: {type(effect).__name__}")


class Streams(Checker):
    """A turn that was said to begin is said to end, once."""

    invariants = ("BUS-1",)

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, set[TurnId]] = {}
        self._over = Over()

    def published(self, host: str, published: Published) -> None:
        match published.event:
            case TurnStarted(turn_id=turn_id):
                self._open.setdefault(host, set()).add(turn_id)
            case TurnEnded(turn_id=turn_id):
                running = self._open.get(host, set())
                if (host, turn_id) in self._over:
                    self.report("BUS-1", f"turn {turn_id} ended twice")
                self._over[host, turn_id] = turn_id in running
                running.discard(turn_id)
            case SessionChanged(token=token):
                self._over.reopened(host, token.session_id)
            case _:
                pass

    def host_closed(self, host: str) -> None:
        for turn_id in self._open.pop(host, set()):
            self.report("BUS-1", f"turn {turn_id} began and never ended, and its host is closed")
