"""Watchers: observers of a run that hold an opinion of their own.

A watcher sees every step, event, effect and call to the disk of every host in
a world, and what clients asked and were answered.  It does not use the guards'
code: it works out by itself what must be true, and says what is not.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from tenure.messages.base import Command, Effect, Message, Outcome, Reply
from tenure.messages.bus import Published
from tenure.messages.tokens import ProcessName
from tenure.runtime.step import Step, Taken
from tenure.runtime.strict import Violation
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall
from tenure.runtime.testing.web_faults import WebRequest


class Violated(AssertionError):
    """A run broke an invariant."""

    def __init__(self, violations: tuple[Violation, ...]) -> None:
        lines = (f"{each.invariant}: {each.what}" for each in violations)
        super().__init__("\n".join(lines))
        self.violations = violations


class Watcher:
    """Override what you want to see; call `report` for what must not be.

    `host` names one run of one host: `a1`, and `a2` when it is started again.
    """

    roles: ClassVar[tuple[str, ...]] = ()
    """Whose steps it wants to see: `turn`, or `session` and others; empty for all."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.disk: MemoryDisk

    def report(self, invariant: str, what: str) -> None:
        self.violations.append(Violation(invariant=invariant, what=what))

    def host_started(self, host: str, process: ProcessName) -> None:
        """A host has a process now; nothing of it has run."""

    def host_closed(self, host: str) -> None:
        """A host ended in order.  A host that is killed ends without a word."""

    def process_died(self, process: ProcessName) -> None:
        """A process ended without order: it was killed, or the power failed."""

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        """A client asks; `number` names the ask in this world."""

    def answered(self, host: str, number: int, reply: Reply) -> None:
        """A client was answered."""

    def abandoned(self, host: str, number: int) -> None:
        """A client waits no more: its host is dead, or it was cancelled."""

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
        """A process makes a call to the disk, now."""

    def web_asked(self, request: WebRequest) -> None:
        """A process sends a request to a server, now."""

    def edited(self, path: str) -> None:
        """Something that is no host of ours changes a file."""

    def finished(self) -> None:
        """The run is over."""


HOOKS = (
    "host_started",
    "host_closed",
    "process_died",
    "asked",
    "answered",
    "abandoned",
    "stepped",
    "raised",
    "published",
    "effect_started",
    "effect_ended",
    "disk_called",
    "web_asked",
    "edited",
)


class Watchers:
    """All watchers of a world.  Each hook calls only those that want to see it."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.all: list[Watcher] = []
        self.hooks: dict[str, list[Callable[..., None]]] = {name: [] for name in HOOKS}
        self._disk = disk
        self._runs: dict[str, int] = {}

    def add(self, *watchers: Watcher) -> None:
        for watcher in watchers:
            watcher.disk = self._disk
            self.all.append(watcher)
            for name, wanted in self.hooks.items():
                if getattr(type(watcher), name) is not getattr(Watcher, name):
                    wanted.append(getattr(watcher, name))

    def of(self, name: str, process: ProcessName) -> "HostObserver":
        """The observer of one host; a host that is started again gets the next number."""
        run = self._runs.get(name, 0) + 1
        self._runs[name] = run
        observer = HostObserver(self.hooks, f"{name}{run}")
        self.tell("host_started", observer.host, process)
        return observer

    def tell(self, hook: str, *facts: object) -> None:
        """Tell what no supervisor sees."""
        for seen in self.hooks[hook]:
            seen(*facts)

    def finish(self) -> None:
        """Raise what was found, and what a server of the test raised."""
        for failure in self._disk.web.failures:
            raise failure
        for watcher in self.all:
            watcher.finished()
        found = self.found()
        if found:
            raise Violated(found)

    def found(self) -> tuple[Violation, ...]:
        return tuple(each for watcher in self.all for each in watcher.violations)


class HostObserver:
    """What a supervisor tells: one host's steps, events and effects, for all watchers."""

    def __init__(self, hooks: dict[str, list[Callable[..., None]]], host: str) -> None:
        self.host = host
        self._stepped = hooks["stepped"]
        self._of_owner: dict[str, list[Callable[..., None]]] = {}
        self._raised = hooks["raised"]
        self._published = hooks["published"]
        self._effect_started = hooks["effect_started"]
        self._effect_ended = hooks["effect_ended"]

    def stepped(
        self, owner: str, incarnation: int, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        wanted = self._of_owner.get(owner)
        if wanted is None:
            role = owner.rpartition("/")[2]
            wanted = [seen for seen in self._stepped if role in (_roles(seen) or (role,))]
            self._of_owner[owner] = wanted
        for seen in wanted:
            seen(self.host, owner, message, taken, step)

    def raised(self, owner: str, incarnation: int, message: Message, error: Exception) -> None:
        for seen in self._raised:
            seen(self.host, owner, message, error)

    def published(self, published: Published) -> None:
        for seen in self._published:
            seen(self.host, published)

    def effect_started(self, owner: str, number: int, effect: Effect) -> None:
        for seen in self._effect_started:
            seen(self.host, owner, number, effect)

    def effect_ended(self, owner: str, number: int, outcome: Outcome) -> None:
        for seen in self._effect_ended:
            seen(self.host, owner, number, outcome)


def _roles(seen: Callable[..., None]) -> tuple[str, ...]:
    watcher: Watcher = seen.__self__  # type: ignore[attr-defined]
    return watcher.roles
