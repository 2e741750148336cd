"""Disk faults that begin and end during a run."""

import errno
from collections.abc import Callable

from tenure.messages.tokens import ProcessName
from tenure.runtime.testing.faults import (
    WRITING_CALLS,
    CallName,
    DiskCall,
    Fail,
    Fault,
    KillAfter,
    KillBefore,
    KillDuring,
    WriteShort,
)
from tenure.runtime.testing.workload import DiskTrouble

SYNCS: tuple[CallName, ...] = ("datasync", "sync", "sync_folder")
MUTATING: tuple[CallName, ...] = (
    "create", "append", "truncate", "datasync", "sync", "rename", "remove", "make_folder",
    "sync_folder", "lock", "unlock",
)  # fmt: skip

_FORMS: dict[str, tuple[Fault, tuple[CallName, ...]]] = {
    "full": (Fail(errno=errno.ENOSPC), ("create", "append", "make_folder")),
    "append_fails": (Fail(errno=errno.EIO), ("append",)),
    "sync_fails": (Fail(errno=errno.EIO), SYNCS),
    "short_write": (WriteShort(bytes_written=20), ("append",)),
    "read_only": (Fail(errno=errno.EROFS), WRITING_CALLS),
    "rename_fails": (Fail(errno=errno.EIO), ("rename",)),
    "open_fails": (Fail(errno=errno.EMFILE), ("open", "create")),
    "cut_fails": (Fail(errno=errno.EIO), ("truncate",)),
    "kill_before": (KillBefore(), MUTATING),
    "kill_during": (KillDuring(bytes_written=30), ("append",)),
    "kill_after": (KillAfter(), MUTATING),
}
LASTING = ("full", "read_only")


class Troubles:
    """For `disk.before`: the faults that are under way."""

    def __init__(self, killed: Callable[[str], None]) -> None:
        self._rules: list[_Rule] = []
        self._killed = killed
        self.spared: set[ProcessName] = set()
        """Processes that nothing happens to."""
        self.hits: list[str] = []

    def begin(self, trouble: DiskTrouble) -> None:
        self._rules.append(_Rule(trouble))

    def end(self, trouble: DiskTrouble) -> None:
        self._rules = [rule for rule in self._rules if rule.trouble is not trouble]

    def end_all(self) -> None:
        self._rules.clear()

    def __call__(self, call: DiskCall) -> Fault | None:
        if not self._rules or call.process in self.spared:
            return None
        for rule in self._rules:
            fault = rule.hit(call)
            if fault is not None:
                self.hits.append(f"{rule.trouble.kind} {call.name}")
                if isinstance(fault, KillBefore | KillDuring | KillAfter):
                    self._killed(f"{rule.trouble.kind} {call.name}")
                return fault
        return None


class _Rule:
    def __init__(self, trouble: DiskTrouble) -> None:
        self.trouble = trouble
        self._fault, self._calls = _FORMS[trouble.kind]
        self._left = trouble.nth

    def hit(self, call: DiskCall) -> Fault | None:
        if call.name not in self._calls or not self._is_at(call):
            return None
        self._left -= 1
        due = self._left == 0 or (self._left < 0 and self.trouble.kind in LASTING)
        return self._fault if due else None

    def _is_at(self, call: DiskCall) -> bool:
        match self.trouble.at:
            case "any":
                return True
            case "session":
                return "/.tenure/sessions" in call.path
            case "seat":
                return "/.tenure/hosts/" in call.path
            case "claim":
                return "/.tenure/claims/" in call.path
            case "settings":
                return "settings" in call.path or ".tenure-stage-" in call.path
