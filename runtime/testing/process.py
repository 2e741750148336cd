"""A simulated process: what runs carries it, and what it was is known after its death."""

from contextlib import suppress
from typing import Literal

from greenlet import greenlet

from tenure.messages.tokens import ProcessName
from tenure.runtime.testing.processes import ProcessTable


class SimProcess:
    """One process of a simulated machine."""

    __slots__ = ("_table", "graveyard", "name", "workers")

    def __init__(self, name: ProcessName, table: ProcessTable) -> None:
        self.name = name
        self._table = table
        self.graveyard: list[object] = []
        """What it had under way when it died: kept, so that no clean-up code of it runs."""
        self.workers: set[greenlet] = set()
        """Its blocking work that has not ended, kept for the same reason."""

    @property
    def state(self) -> Literal["running", "stopped", "ended"]:
        return self._table.state(self.name)

    def bury(self) -> None:
        """Forget what it had under way.  Only for the end of its world."""
        for worker in list(self.workers):
            with suppress(BaseException):
                worker.throw()
        self.workers.clear()
        self.graveyard.clear()
