"""The servers of a simulated world, and what becomes of requests to them."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from itertools import count
from typing import Any

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.clock import Clock
from tenure.runtime.testing.web_faults import WebFault, WebRequest, WebResponse, WebServer


class MemoryWebNet:
    """Every server that there is."""

    def __init__(self, clock: Clock, kill: Callable[[ProcessName], None]) -> None:
        self.clock = clock
        self.kill = kill
        """How a process is killed."""
        self.before: Callable[[WebRequest], WebFault | None] | None = None
        """What happens to a request; None lets it pass."""
        self.on_request: Callable[[WebRequest], None] | None = None
        """Told of every request at the moment when it is made."""
        self.requests: list[WebRequest] = []
        """All that were made, oldest first."""
        self.failures: list[Exception] = []
        """What servers raised, which is a mistake in them; `simulate` raises the first."""
        self.numbers = count(1)
        self._servers: dict[str, WebServer] = {}
        self._working: set[asyncio.Task[Any]] = set()

    def serve(self, origin: str, server: WebServer) -> None:
        """Let `server` answer everything at `https://host` or `http://host:port`."""
        self._servers[origin.rstrip("/").lower()] = server

    def close(self, origin: str) -> None:
        """Nobody listens there any more."""
        self._servers.pop(origin.rstrip("/").lower(), None)

    def listens(self, origin: str) -> bool:
        """Whether anybody answers there."""
        return origin.rstrip("/").lower() in self._servers

    def server_of(self, request: WebRequest) -> WebServer | None:
        return self._servers.get(request.origin.lower())

    def handle(self, server: WebServer, request: WebRequest) -> "asyncio.Task[WebResponse]":
        """Have a server work on a request, outside of every process."""

        async def work() -> WebResponse:
            try:
                return await server(request)
            except Exception as error:
                self.failures.append(error)
                return WebResponse(status=500, body=repr(error).encode())

        task = asyncio.get_running_loop().create_task(work(), context=Context())
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task
