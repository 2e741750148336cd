"""Requests from the browser of this machine: one leaf door.

A listener is for one sign-in.  It answers `GET` on 127.0.0.1 and nothing else, one
request a connection, and a request that is too large, too slow or no HTTP is
dropped without anybody being told.
"""

import asyncio
import errno
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import msgspec

HOST = "127.0.0.1"
HEAD_BYTES_MAX = 16_384
HEAD_S_MAX = 10.0
CLIENTS_MAX = 16
_REQUEST = re.compile(rb"GET (/[\x21-\x7E]*) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*(?:127\.0\.0\.1|localhost)(?::(\d{1,5}))?[ \t]*\r\n", re.I)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What the browser shows."""

    status: int
    text: str
    """Plain text; it is shown as it is."""


OnVisit = Callable[[str], Awaitable[Page]]
"""Answers one request: `(path with its query) -> Page`."""


class LoopbackListener(Protocol):
    port: int

    async def close(self) -> None:
        """Answer nobody any more; who is being answered still is.  Harmless when closed."""
        ...


class Loopback(Protocol):
    async def listen(self, port: int, on_visit: OnVisit) -> LoopbackListener:
        """Answer requests to this port of 127.0.0.1; 0 takes a free one.

        Raises `OSError`: the port is taken.
        """
        ...


class NoLoopback:
    """A world in which nobody comes by: only what the user pastes reaches a sign-in."""

    async def listen(self, port: int, on_visit: OnVisit) -> LoopbackListener:
        raise OSError(errno.EADDRNOTAVAIL, "nothing can be listened to here")


class SystemLoopback:
    """This machine's own address."""

    async def listen(self, port: int, on_visit: OnVisit) -> LoopbackListener:
        listener = _Listener(on_visit)
        await listener.start(port)
        return listener


class _Listener:
    def __init__(self, on_visit: OnVisit) -> None:
        self._on_visit = on_visit
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, port: int) -> None:
        self._server = await asyncio.start_server(
            self._serve, HOST, port, limit=HEAD_BYTES_MAX, reuse_address=False
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        serving = {task for task in self._serving if task is not asyncio.current_task()}
        if serving:
            await asyncio.wait(serving, timeout=HEAD_S_MAX)
        for task in self._serving:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if len(self._serving) <= CLIENTS_MAX:
                await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that came and went
        finally:
            self._serving.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_S_MAX):
            head = await reader.readuntil(b"\r\n\r\n")
        found, host = _REQUEST.match(head), _HOST.search(head)
        if found is None:
            page = Page(status=405, text="Only GET is answered here.")
        elif host is None or int(host[1] or 80) != self.port:
            # A page of another site that a browser was tricked into sending here.
            page = Page(status=403, text="This is another machine's name.")
        else:
            page = await self._on_visit(found[1].decode("ascii"))
        writer.write(_response(page))
        async with asyncio.timeout(HEAD_S_MAX):
            await writer.drain()


def _response(page: Page) -> bytes:
    body = page.text.encode() + b"\n"
    head = (
        f"HTTP/1.1 {page.status} {'OK' if page.status == 200 else 'No'}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
