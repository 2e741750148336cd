"""Processes: one leaf door."""

import os
import subprocess
from typing import Protocol

from tenure.messages.tokens import ProcessName


class Processes(Protocol):
    def me(self) -> ProcessName:
        """This process.  Asked each time: a forked child is another process."""
        ...

    def alive(self, process: ProcessName) -> bool:
        """Whether this very process, not a later one with its pid, still runs (or is stopped)."""
        ...


class SystemProcesses:
    """The processes of this machine, as this process sees them (its pid namespace).

    The start time is the kernel's, in clock ticks since boot, where there is a
    `/proc`; elsewhere it is what `ps -o lstart` prints; where neither answers
    it is empty, and a process is then told by its pid alone.
    """

    def __init__(self) -> None:
        self._me: ProcessName | None = None

    def me(self) -> ProcessName:
        pid = os.getpid()
        if self._me is None or self._me.pid != pid:
            self._me = ProcessName(pid=pid, started=_started(pid) or "")
        return self._me

    def alive(self, process: ProcessName) -> bool:
        started = _started(process.pid)
        if started is not None:
            return started == process.started
        return process.started == "" and not _has_proc() and _exists(process.pid)


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def _started(pid: int) -> str | None:
    """The start time of a process; None where it has ended (a zombie too) or cannot be asked."""
    return _started_by_proc(pid) if _has_proc() else _started_by_ps(pid)


def _started_by_proc(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            line = stat.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold blanks and parentheses; the fields after
    # it start with the third, the state.  The start time is the 22nd.
    fields = line[line.rindex(b")") + 1 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def _started_by_ps(pid: int) -> str | None:
    try:
        shown = subprocess.run(
            ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    state, _, started = shown.stdout.strip().partition(" ")
    return None if shown.returncode != 0 or state.startswith("Z") else started.strip()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
