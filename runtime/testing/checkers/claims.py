"""CLAIM-1, CLAIM-2: what two processes could write changes only under its lock."""

from tenure.messages.base import Outcome
from tenure.messages.tokens import ProcessName, SessionId
from tenure.messages.transcripts import TranscriptOpened
from tenure.runtime.testing.checkers.base import Checker
from tenure.runtime.testing.faults import DiskCall

CHANGING = frozenset({"create", "append", "truncate", "rename", "remove"})
HOME = "/.tenure/"


class Locks(Checker):
    """Looks at the kernel's table of locks whenever a file of ours is changed."""

    invariants = ("CLAIM-1", "CLAIM-2")

    def __init__(self) -> None:
        super().__init__()
        self._homes: dict[str, ProcessName] = {}

    def disk_called(self, call: DiskCall) -> None:
        if call.name not in CHANGING:
            return
        self._check(call, call.path)
        if call.target:
            self._check(call, call.target)

    def _check(self, call: DiskCall, path: str) -> None:
        root, home, inner = path.partition(HOME)
        if not home:
            return
        if path.endswith(".lock"):
            what = (
                f"process {call.process.pid} would {call.name} {path}: a lock is never taken away"
            )
            self.report("CLAIM-2", what)
            return
        if inner.startswith("hosts/"):
            # The records of a host are its process's own.
            of = inner.split("/")[1]
            if self._homes.setdefault(of, call.process) != call.process:
                self.report("CLAIM-1", f"process {call.process.pid} wrote {path} of another host")
            return
        lock = _lock_of(inner)
        if inner.startswith("sessions/") and self._is_unheard_of(f"{root}{home}", inner, lock):
            return
        if lock and not self._holds(call.process, f"{root}{home}{lock}"):
            what = f"process {call.process.pid} did {call.name} {path} without holding {lock}"
            self.report("CLAIM-1", what)

    def _is_unheard_of(self, home: str, inner: str, lock: str) -> bool:
        """A session that is being made has no file yet and never had a claim: nobody knows it."""
        file = f"{home}{inner.removesuffix('.tmp')}"
        return not self._is_there(f"{home}{lock}") and not self._is_there(file)

    def _is_there(self, path: str) -> bool:
        try:
            return self.disk.target(path).node is not None
        except OSError:
            return False

    def _holds(self, process: ProcessName, lock: str) -> bool:
        try:
            node = self.disk.target(lock).node
        except OSError:
            return False
        return node is not None and self.disk.locks.get(node.number) == process


class Epochs(Checker):
    """No two processes ever had one epoch of a session, and a later one had a higher."""

    invariants = ("CLAIM-2",)

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[SessionId, tuple[int, str]] = {}

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        if not isinstance(outcome, TranscriptOpened):
            return
        token = outcome.opened.token
        epoch, before = self._seen.get(token.session_id, (0, host))
        if token.epoch < epoch or (token.epoch == epoch and before != host):
            what = (
                f"{host} opened {token.session_id} at epoch {token.epoch} after {before}: {epoch}"
            )
            self.report("CLAIM-2", what)
        self._seen[token.session_id] = (max(epoch, token.epoch), host)


def _lock_of(inner: str) -> str:
    """The lock that protects a file, both from the folder of ours; empty for none."""
    if inner.startswith("sessions/"):
        name = inner.removeprefix("sessions/").partition(".jsonl")[0]
        return f"claims/sessions/{name.partition('_')[2] or name}.lock"
    if inner.startswith("claims/"):
        return f"{inner.partition('.claim')[0].partition('.doubt')[0]}.lock"
    if inner == "settings.toml" or inner.startswith(".tenure-stage-"):
        return "claims/settings.lock"
    return ""
