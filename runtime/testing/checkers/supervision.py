"""SUP-1: no owner fails by itself, and a restarted one starts clean."""

from typing import Any

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.bus import (
    MessageQuarantined,
    OwnerLost,
    OwnerRestarted,
    OwnerStarted,
    Published,
)
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent
from tenure.runtime.testing.injected import InjectedCrash


class Restarts(Checker):
    """Supervision hides bugs, so a step that raises by itself is one."""

    invariants = ("SUP-1",)

    def __init__(self) -> None:
        super().__init__()
        self._incarnations: Recent[tuple[str, str], int] = Recent()
        self._effects: Recent[tuple[str, str], dict[int, Effect]] = Recent()
        self._down: Recent[tuple[str, str], str] = Recent()
        self._unseen: Recent[tuple[str, str], int] = Recent()

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        name = type(message).__name__
        if not isinstance(error, InjectedCrash):
            what = f"{owner} raised at {name}: {type(error).__name__}: {error}"
            self.report("SUP-1", what)
        self._down[host, owner] = name
        self._unseen[host, owner] = self._unseen.get((host, owner), 0) + 1

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        place = (host, owner)
        if place in self._down and not isinstance(message, OwnerStarted):
            what = f"{owner} took a {type(message).__name__} after it had failed"
            self.report("SUP-1", what)
        if not isinstance(message, OwnerStarted):
            if place not in self._incarnations:
                self.report("SUP-1", f"{owner} did not begin with OwnerStarted")
                self._incarnations[place] = 1
            return
        self._incarnations[place] = message.incarnation
        self._down.pop(place, None)
        left = self._effects.get(place)
        if left:
            names = ", ".join(type(effect).__name__ for effect in left.values())
            self.report("SUP-1", f"{owner} started again while this still ran: {names}")

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        self._effects.setdefault((host, owner), {})[number] = effect

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        self._effects.get((host, owner), {}).pop(number, None)

    def published(self, host: str, published: Published) -> None:
        match published.event:
            case MessageQuarantined(owner=owner):
                self._unseen[host, owner] = self._unseen.get((host, owner), 0) - 1
            case OwnerRestarted(owner=owner):
                if self._unseen.get((host, owner), 0) > 0:
                    self.report("SUP-1", f"{owner} failed, and the message was not quarantined")
            case OwnerLost(owner=owner):
                self._down.pop((host, owner), None)
                self._incarnations.pop((host, owner), None)
                self._effects.pop((host, owner), None)
            case _:
                pass

    def host_closed(self, host: str) -> None:
        for (at, owner), message in list(self._down.items()):
            if at == host:
                del self._down[at, owner]
                self.report("SUP-1", f"{owner} failed at {message} and nobody was told its end")
