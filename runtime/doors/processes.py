"""Processes: one leaf door."""

from typing import Protocol

from tenure.messages.tokens import ProcessName


class Processes(Protocol):
    def me(self) -> ProcessName:
        """This process.  Asked each time: a forked child is another process."""
        ...

    def alive(self, process: ProcessName) -> bool:
        """Whether this very process, not a later one with its pid, still runs (or is stopped)."""
        ...
