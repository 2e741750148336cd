"""What can go wrong at a call to the simulated disk, and how to say which call it hits.

A test sets `disk.before` to a function of a `DiskCall` that gives a fault or
None: a `FaultRules` for a few planned faults, or a function of its own.
"""

import errno
import random
from typing import Literal, Protocol

import msgspec

from tenure.messages.tokens import ProcessName

CallName = Literal[
    "open", "create", "read_at", "append", "truncate", "datasync", "sync", "close",
    "stat", "lstat", "list", "make_folder", "rename", "remove", "remove_folder",
    "sync_folder", "real_path", "lock", "unlock",
]  # fmt: skip

WRITING_CALLS: tuple[CallName, ...] = (
    "create", "append", "truncate", "make_folder", "rename", "remove", "remove_folder", "lock",
)  # fmt: skip
"""The calls that a read-only file system refuses."""


class DiskCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one simulated process, as the journal keeps it."""

    process: ProcessName
    name: CallName
    path: str
    """As the caller gave it; for a call on an open file, as it was opened."""
    size: int = 0
    """Bytes to append or read; the length to truncate to."""
    target: str = ""
    """The second path of a rename."""


class ProcessKilled(BaseException):
    """The simulated process is dead: nothing of it runs on.

    Not an `Exception`: code that handles errors must not survive its own death.
    """

    def __init__(self, process: ProcessName) -> None:
        super().__init__(f"process {process.pid} was killed")
        self.process = process


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """The call does nothing and raises an `OSError` with this number.

    A sync that fails loses its claim on the writes before it: no later sync
    makes them durable, as on real systems.
    """

    errno: int


class WriteShort(msgspec.Struct, frozen=True, kw_only=True):
    """An append writes only its first bytes, and says so."""

    bytes_written: int


class KillBefore(msgspec.Struct, frozen=True, kw_only=True):
    """The process dies as it makes the call; nothing was done."""


class KillDuring(msgspec.Struct, frozen=True, kw_only=True):
    """The process dies in an append, of which the first bytes were written."""

    bytes_written: int


class KillAfter(msgspec.Struct, frozen=True, kw_only=True):
    """The call was done, and the process dies before it learns of it."""


Fault = Fail | WriteShort | KillBefore | KillDuring | KillAfter


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """Which call a fault hits: the `nth` (from 1) that matches, and where `lasting` all later."""

    fault: Fault
    calls: tuple[CallName, ...]
    path_ends: str = ""
    """What the path ends in; empty for any path."""
    pid: int = 0
    """Of which process; 0 for any."""
    nth: int = 1
    hits: Literal["once", "lasting"] = "once"

    def matches(self, call: DiskCall) -> bool:
        return (
            call.name in self.calls
            and call.path.endswith(self.path_ends)
            and self.pid in (0, call.process.pid)
        )


READ_ONLY = FaultRule(fault=Fail(errno=errno.EROFS), calls=WRITING_CALLS, hits="lasting")
"""The file system turns read-only."""

DISK_FULL = FaultRule(
    fault=Fail(errno=errno.ENOSPC), calls=("create", "append", "make_folder"), hits="lasting"
)


class FaultRules:
    """Rules for `disk.before`; the first that hits decides, and every rule counts every match."""

    def __init__(self, *rules: FaultRule) -> None:
        self._rules = rules
        self._matched = [0] * len(rules)

    def __call__(self, call: DiskCall) -> Fault | None:
        hit: Fault | None = None
        for place, rule in enumerate(self._rules):
            if not rule.matches(call):
                continue
            self._matched[place] += 1
            matched = self._matched[place]
            due = matched == rule.nth or (rule.hits == "lasting" and matched > rule.nth)
            if due and hit is None:
                hit = rule.fault
        return hit


class Fate(Protocol):
    """What a power loss does to what was not synced."""

    def bytes_kept(self, size: int) -> int:
        """How many of an unsynced write's first bytes survive: 0 to `size`."""
        ...

    def is_kept(self) -> bool:
        """Whether an unsynced change of a length or of a name survives."""
        ...


class LoseAll:
    """Nothing that was not synced survives."""

    def bytes_kept(self, size: int) -> int:
        return 0

    def is_kept(self) -> bool:
        return False


class KeepAll:
    """Everything survives, as if the cache had just been written back."""

    def bytes_kept(self, size: int) -> int:
        return size

    def is_kept(self) -> bool:
        return True


class SeededFate:
    """Each write kept, lost or torn, each name kept or undone, by a seeded random."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def bytes_kept(self, size: int) -> int:
        match self._chance.randrange(3):
            case 0:
                return 0
            case 1:
                return size
            case _:
                return self._chance.randint(0, size)

    def is_kept(self) -> bool:
        return self._chance.random() < 0.5
