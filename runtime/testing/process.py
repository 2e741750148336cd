"""A simulated process: what runs carries it, and what it was is known after its death."""

import asyncio
from typing import Literal

from tenure.messages.tokens import ProcessName
from tenure.runtime.testing.processes import ProcessTable


class SimProcess:
    """One process of a simulated machine."""

    def __init__(self, name: ProcessName, table: ProcessTable) -> None:
        self.name = name
        self._table = table
        self.graveyard: list[object] = []
        """What it had under way when it died: kept, so that no clean-up code of it runs."""
        self.tasks: set[asyncio.Task[object]] = set()

    @property
    def state(self) -> Literal["running", "stopped", "ended"]:
        return self._table.state(self.name)
