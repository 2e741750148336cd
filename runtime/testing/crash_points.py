"""One crash at one chosen point of a run."""

from collections.abc import Callable
from typing import Literal

import msgspec

from tenure.messages.base import Effect
from tenure.messages.tokens import ProcessName
from tenure.runtime.testing.faults import DiskCall, Fault, KillAfter, KillBefore, KillDuring
from tenure.runtime.testing.troubles import MUTATING
from tenure.runtime.testing.watch import Watcher

How = Literal["before", "during", "after"]
HOWS: tuple[How, ...] = ("before", "during", "after")


class CrashPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a process dies: at its `nth` changing call to the disk, or effect."""

    at: Literal["call", "effect"]
    how: How
    nth: int


class CrashAt(Watcher):
    """Counts the points that a run goes through, and crashes at one of them.

    The last look at the end of a run is spared.
    """

    def __init__(self, point: CrashPoint | None = None) -> None:
        super().__init__()
        self.calls = 0
        self.effects = 0
        self.point = point
        self._spared: set[ProcessName] = set()
        self._hosts: dict[str, ProcessName] = {}
        self.kill: Callable[[ProcessName], None] = self.disk_kill
        """How a process is killed; a run that has clients tells those, too."""
        self.hit = ""
        """What the crash hit; empty where the point was never reached."""

    def host_started(self, host: str, process: ProcessName) -> None:
        self._hosts[host] = process
        if host.startswith(("last", "reader")):
            self._spared.add(process)

    def disk_kill(self, process: ProcessName) -> None:
        self.disk.processes.kill(process)

    def fault(self, call: DiskCall) -> Fault | None:
        """For the disk: what happens to this call."""
        if call.process in self._spared or call.name not in MUTATING:
            return None
        self.calls += 1
        point = self.point
        if point is None or point.at != "call" or point.nth != self.calls:
            return None
        self.hit = f"{point.how} {call.name}"
        match point.how:
            case "before":
                return KillBefore()
            case "during" if call.name == "append":
                return KillDuring(bytes_written=call.size // 2)
            case _:
                return KillAfter()

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if self._hosts.get(host) in self._spared:
            return
        self.effects += 1
        point = self.point
        if point is not None and point.at == "effect" and point.nth == self.effects:
            self.hit = f"{type(effect).__name__} begins"
            self.kill(self._hosts[host])
