"""A simulated loopback: a browser of the simulated machine reaches who listens on it."""

import asyncio
import errno
from contextvars import copy_context
from urllib.parse import urlsplit

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.loopback import HOST, LoopbackListener, OnVisit
from tenure.runtime.testing.processes import ProcessTable
from tenure.runtime.testing.web_faults import WebRequest, WebResponse
from tenure.runtime.testing.web_net import MemoryWebNet

FREE_PORTS_FROM = 49_152


class MemoryLoopback:
    """The loopback address as one process uses it; it stops listening when it dies."""

    def __init__(self, net: MemoryWebNet, processes: ProcessTable, process: ProcessName) -> None:
        self._net = net
        self._process = process
        self._listeners: list[_Listener] = []
        processes.on_end.append(self._end)

    async def listen(self, port: int, on_visit: OnVisit) -> LoopbackListener:
        """See `Loopback`."""
        if port and self._net.listens(_origin(port)):
            raise OSError(errno.EADDRINUSE, "Address already in use")
        port = port or self._free()
        context = copy_context()

        async def serve(request: WebRequest) -> WebResponse:
            parts = urlsplit(request.url)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            page = await on_visit(target)
            return WebResponse(status=page.status, body=page.text.encode())

        async def inside(request: WebRequest) -> WebResponse:
            loop = asyncio.get_running_loop()
            return await loop.create_task(serve(request), context=context.copy())

        self._net.serve(_origin(port), inside)
        listener = _Listener(self._net, port)
        self._listeners.append(listener)
        return listener

    def _free(self) -> int:
        port = FREE_PORTS_FROM
        while self._net.listens(_origin(port)):
            port += 1
        return port

    def _end(self, process: ProcessName) -> None:
        if process == self._process:
            for listener in self._listeners:
                listener.end()


class _Listener:
    def __init__(self, net: MemoryWebNet, port: int) -> None:
        self._net = net
        self._open = True
        self.port = port

    async def close(self) -> None:
        """See `LoopbackListener`."""
        self.end()

    def end(self) -> None:
        if self._open:
            self._open = False
            self._net.close(_origin(self.port))


def _origin(port: int) -> str:
    return f"http://{HOST}:{port}"
