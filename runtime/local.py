"""When a host listens on its local socket: from its first seat to its end.

A host without a seat has nothing to stop, to approve or to hand over, so the
commands that only look at files cost no socket.
"""

import asyncio
from typing import Protocol

from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.storage import reason_of
from tenure.runtime.socket import Served, SocketServer


class LocalHost(Served, Protocol):
    """The part of a running host that its socket needs."""

    leaves: Leaves
    host_id: str


class LocalSocket:
    """The local socket of one host.  Who cannot listen runs all the same."""

    def __init__(self, host: LocalHost) -> None:
        self._host = host
        self._server = SocketServer(host)
        self._opening: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self.problem = ""
        """Why other processes cannot reach this host; empty where they can, or need not yet."""

    @property
    def path(self) -> str:
        """Where it lies; empty before the first seat."""
        return self._server.path

    async def open(self) -> None:
        """Listen, once."""
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
        await asyncio.shield(self._opening)

    async def stop_listening(self) -> None:
        """Take no new clients."""
        if self._opening is not None:
            await asyncio.shield(self._opening)
        await self._server.stop_listening()

    async def close(self) -> None:
        """Behind the end of the bus, when every client is owed its last lines only."""
        await self._server.close()
        if self._sweeping is not None:
            await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _open(self) -> None:
        leaves = self._host.leaves
        try:
            await self._server.open(leaves.sockets, self._host.host_id)
        except OSError as error:
            self.problem = reason_of(error)
            return
        self._sweeping = asyncio.get_running_loop().create_task(
            leaves.workers.run(leaves.sockets.remove_dead)
        )
