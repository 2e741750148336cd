"""Simulated processes: started, stopped and killed by the test."""

from collections.abc import Callable
from typing import Literal

from tenure.messages.tokens import ProcessName

ProcessState = Literal["running", "stopped", "ended"]


class ProcessTable:
    """The processes of one simulated machine.  A pid is never used twice."""

    def __init__(self) -> None:
        self._states: dict[ProcessName, ProcessState] = {}
        self.on_end: list[Callable[[ProcessName], None]] = []
        """Told of each process that ends."""

    def start(self) -> ProcessName:
        number = len(self._states) + 1
        name = ProcessName(pid=1000 + number, started=str(number))
        self._states[name] = "running"
        return name

    def kill(self, process: ProcessName) -> None:
        """As kill -9, or an end of its own: its locks are free, what it wrote stays."""
        self._states[process] = "ended"
        for tell in self.on_end:
            tell(process)

    def stop(self, process: ProcessName) -> None:
        """As SIGSTOP: it does nothing and keeps what it holds."""
        if self._states[process] == "running":
            self._states[process] = "stopped"

    def resume(self, process: ProcessName) -> None:
        if self._states[process] == "stopped":
            self._states[process] = "running"

    def kill_all(self) -> None:
        for process in self._states:
            self.kill(process)

    def state(self, process: ProcessName) -> ProcessState:
        return self._states.get(process, "ended")


class MemoryProcesses:
    """The table as one of its processes sees it."""

    def __init__(self, table: ProcessTable, me: ProcessName) -> None:
        self._table = table
        self._me = me

    def me(self) -> ProcessName:
        return self._me

    def alive(self, process: ProcessName) -> bool:
        return self._table.state(process) != "ended"
