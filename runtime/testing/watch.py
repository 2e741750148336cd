"""Watchers: observers of a run that hold an opinion of their own.

A watcher sees every step, event, effect and call to the disk of every host in
a world.  It does not use the guards' code: it works out by itself what must be
true, and says what is not.
"""

from typing import Any

import msgspec

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.bus import Published
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher saw that must not be."""

    invariant: str
    what: str


class Violated(AssertionError):
    """A run broke an invariant."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        lines = (f"{each.invariant}: {each.what}" for each in violations)
        super().__init__("\n".join(lines))
        self.violations = violations


class Watcher:
    """Override what you want to see; call `report` for what must not be."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.disk: MemoryDisk

    def report(self, invariant: str, what: str) -> None:
        self.violations.append(Violation(invariant=invariant, what=what))

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        """A step was taken; `step` says what it decided."""

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        """A step raised."""

    def published(self, host: str, published: Published) -> None:
        """An event went out."""

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        """An effect was handed to its runner; `number` names it in this host."""

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        """A terminal outcome of the effect came."""

    def disk_called(self, call: DiskCall) -> None:
        """A process is about to call the disk."""

    def finished(self) -> None:
        """The run is over."""


class Watchers:
    """All watchers of a world."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.all: list[Watcher] = []
        self._disk = disk
        self._before = disk.on_call
        self._names: dict[str, int] = {}

    def add(self, *watchers: Watcher) -> None:
        for watcher in watchers:
            watcher.disk = self._disk
            self.all.append(watcher)
        if self._before is None and self.all:
            self._before = self._disk.on_call
            self._disk.on_call = self._called

    def of(self, name: str) -> "HostObserver":
        """The observer of one host; a host that is started again gets the next number."""
        run = self._names.get(name, 0) + 1
        self._names[name] = run
        return HostObserver(self, f"{name}{run}")

    def finish(self) -> None:
        """Raise what was found."""
        for watcher in self.all:
            watcher.finished()
        found = tuple(each for watcher in self.all for each in watcher.violations)
        if found:
            raise Violated(found)

    def _called(self, call: DiskCall) -> None:
        for watcher in self.all:
            watcher.disk_called(call)
        if self._before is not None:
            self._before(call)


class HostObserver:
    """What a supervisor tells: one host's steps, events and effects, for all watchers."""

    def __init__(self, watchers: Watchers, host: str) -> None:
        self._all = watchers.all
        self._host = host

    def stepped(
        self, owner: str, incarnation: int, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        for watcher in self._all:
            watcher.stepped(self._host, owner, message, taken, step)

    def raised(self, owner: str, incarnation: int, message: Message, error: Exception) -> None:
        for watcher in self._all:
            watcher.raised(self._host, owner, message, error)

    def published(self, published: Published) -> None:
        for watcher in self._all:
            watcher.published(self._host, published)

    def effect_started(self, owner: str, number: int, effect: Effect) -> None:
        for watcher in self._all:
            watcher.effect_started(self._host, owner, number, effect)

    def effect_ended(self, owner: str, number: int, outcome: Outcome) -> None:
        for watcher in self._all:
            watcher.effect_ended(self._host, owner, number, outcome)
