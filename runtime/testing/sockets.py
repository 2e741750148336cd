"""Simulated local sockets: the processes of one machine, and what goes wrong between them."""

import asyncio
import errno
import os
from contextvars import Context, copy_context

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.sockets import READ_BYTES, Connection, Listener, OnClient
from tenure.runtime.testing.processes import ProcessTable

BUFFER_BYTES_MAX = 65_536
"""Bytes on their way in one direction; a writer then waits for its reader."""


class MemoryNet:
    """The sockets of one simulated machine.

    The end of a process ends its connections and leaves its names behind, as
    on a real machine.  A stopped one is connected to and says nothing.
    """

    def __init__(self, processes: ProcessTable) -> None:
        self._processes = processes
        self.listeners: dict[str, MemoryListener] = {}
        """By name, those of dead processes too."""
        self.buffer_bytes_max = BUFFER_BYTES_MAX
        self.read_bytes_max = READ_BYTES
        """What one read gives at most: 1 brings every line in pieces."""
        self._ends: list[MemoryConnection] = []
        processes.on_end.append(self.end_process)

    def join(self, client: ProcessName, server: ProcessName) -> "tuple[MemoryConnection, ...]":
        """A new connection of two processes: the client's end, and the server's."""
        here, there = MemoryConnection(self, client), MemoryConnection(self, server)
        here.other, there.other = there, here
        self._ends += [here, there]
        return here, there

    def is_alive(self, process: ProcessName) -> bool:
        return self._processes.state(process) != "ended"

    def end_process(self, process: ProcessName) -> None:
        """Whoever is connected to it reads to the end of what came, and then no more."""
        for end in [end for end in self._ends if end.process == process]:
            self.forget(end)

    def forget(self, end: "MemoryConnection") -> None:
        """One end is gone."""
        if end in self._ends:
            self._ends.remove(end)
            end.gone = True
            for each in (end, end.other):
                each.wake()


class MemoryConnection:
    """One end; tests may write what no client of ours would."""

    other: "MemoryConnection"

    def __init__(self, net: MemoryNet, process: ProcessName) -> None:
        self._net = net
        self.process = process
        self.incoming = bytearray()
        self.gone = False
        self._waiting: list[asyncio.Future[None]] = []

    async def read(self) -> bytes:
        while not self.incoming:
            if self.gone or self.other.gone:
                return b""
            await self._change()
        data = bytes(self.incoming[: self._net.read_bytes_max])
        del self.incoming[: len(data)]
        self.other.wake()
        return data

    async def write(self, data: bytes) -> None:
        sent = 0
        while sent < len(data):
            if self.gone or self.other.gone:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            room = self._net.buffer_bytes_max - len(self.other.incoming)
            if room <= 0:
                await self._change()
                continue
            self.other.incoming += data[sent : sent + room]
            sent += room
            self.other.wake()

    async def close(self) -> None:
        self._net.forget(self)

    def wake(self) -> None:
        """Something changed: whoever waits on this end looks again."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def _change(self) -> None:
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(change)
        await change


class MemoryListener:
    """A name, and the process that serves it."""

    def __init__(self, net: MemoryNet, name: str, process: ProcessName, serve: OnClient) -> None:
        self.path = f"/run/tenure/{name}.sock"
        self.process = process
        self._net = net
        self._name = name
        self._serve = serve
        self._context: Context = copy_context()
        self._clients: set[asyncio.Task[None]] = set()

    def take(self, end: MemoryConnection) -> None:
        """Serve a client, as work of the listening process."""
        loop = asyncio.get_running_loop()
        context = self._context.copy()
        task = context.run(loop.create_task, self._serve_whole(end), context=context)
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def close(self) -> None:
        if self._net.listeners.get(self._name) is self:
            del self._net.listeners[self._name]

    async def _serve_whole(self, end: MemoryConnection) -> None:
        try:
            await self._serve(end)
        finally:
            await end.close()


class MemorySockets:
    """The sockets as one process sees them."""

    def __init__(self, net: MemoryNet, process: ProcessName) -> None:
        self._net = net
        self._process = process

    async def listen(self, name: str, on_client: OnClient) -> Listener:
        listener = MemoryListener(self._net, name, self._process, on_client)
        self._net.listeners[name] = listener
        return listener

    async def connect(self, name: str) -> Connection:
        listener = self._net.listeners.get(name)
        if listener is None or not self._net.is_alive(listener.process):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens", name)
        here, there = self._net.join(self._process, listener.process)
        listener.take(there)
        return here

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._net.listeners))

    def remove_dead(self) -> None:
        for name, listener in list(self._net.listeners.items()):
            if not self._net.is_alive(listener.process):
                del self._net.listeners[name]
