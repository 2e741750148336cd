"""A simulated web: clients of every process that speak to servers in memory.

    world.web.serve("https://auth.example", server)        # async (WebRequest) -> WebResponse
    world.web.before = WebRules(WebRule(fault=AnswerLost(), url_has="/token"))

What a server does is nobody's work: it goes on when the process that asked is
killed, stopped or has lost its patience, as a server elsewhere does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextvars import Context
from typing import Any

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.http import httpx, timeouts
from tenure.runtime.doors.web import READ_S_MAX
from tenure.runtime.testing.web_faults import (
    AnswerCut,
    AnswerLost,
    AnswerSlow,
    Garbled,
    KillAsking,
    NotConnected,
    PiecesDoubled,
    RequestDoubled,
    RequestLost,
    StatusInstead,
    WebFault,
    WebRequest,
    WebResponse,
)
from tenure.runtime.testing.web_net import MemoryWebNet


class MemoryWeb:
    """The web as one process sees it."""

    def __init__(self, net: MemoryWebNet, process: ProcessName) -> None:
        self._net = net
        self._process = process

    def client(self, *, read_s_max: float = READ_S_MAX) -> httpx.AsyncClient:
        """See `Web`."""
        return httpx.AsyncClient(transport=self.transport(), timeout=timeouts(read_s_max))

    def transport(self) -> httpx.AsyncBaseTransport:
        """See `Web`."""
        return _Transport(self._net, self._process)


class _Transport(httpx.AsyncBaseTransport):
    def __init__(self, net: MemoryWebNet, process: ProcessName) -> None:
        self._net = net
        self._process = process

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        net = self._net
        asked = WebRequest(
            process=self._process,
            number=next(net.numbers),
            method=request.method,
            url=str(request.url),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=await request.aread(),
        )
        net.requests.append(asked)
        if net.on_request is not None:
            net.on_request(asked)
        fault = None if net.before is None else net.before(asked)
        return await _Exchange(net, request, asked, fault).response()


class _Exchange:
    """One request and its answer."""

    def __init__(
        self, net: MemoryWebNet, request: httpx.Request, asked: WebRequest, fault: WebFault | None
    ) -> None:
        self.net = net
        self.request = request
        self.asked = asked
        self.fault = fault
        limits = request.extensions.get("timeout", {})
        self.connect_s: float | None = limits.get("connect")
        self.read_s: float | None = limits.get("read")

    async def response(self) -> httpx.Response:
        answer = await self._answer()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        body = answer.body
        if isinstance(body, bytes):
            headers.setdefault("content-length", str(len(body)))
            body = _one(body)
        stream = _Stream(self, body, int(headers.get("content-length", "0")))
        return httpx.Response(answer.status, headers=headers, stream=stream, request=self.request)

    async def _answer(self) -> WebResponse:
        match self.fault:
            case NotConnected(how="silent"):
                raise await self._silence(httpx.ConnectTimeout, self.connect_s)
            case KillAsking(when="before"):
                await self._die()
            case StatusInstead(when="before", status=status, headers=headers, body=body):
                return WebResponse(status=status, headers=headers, body=body)
            case RequestLost(how="broken"):
                raise httpx.RemoteProtocolError("the connection broke", request=self.request)
            case RequestLost(how="silent"):
                raise await self._silence(httpx.ReadTimeout, self.read_s)
            case _:
                pass
        server = self.net.server_of(self.asked)
        if server is None or isinstance(self.fault, NotConnected):
            raise httpx.ConnectError("nobody listens there", request=self.request)
        work = self.net.handle(server, self.asked)
        if isinstance(self.fault, RequestDoubled):
            await asyncio.wait({work})
            work = self.net.handle(server, self.asked)
        return await self._answered(work)

    async def _answered(self, work: "asyncio.Task[WebResponse]") -> WebResponse:
        """What comes of it once the server works on it."""
        if not await self.ends_within(work, self.read_s):
            raise httpx.ReadTimeout("no answer came", request=self.request)
        answer = work.result()
        match self.fault:
            case KillAsking():
                await self._die()
            case AnswerLost(how="broken"):
                raise httpx.ReadError("the connection broke", request=self.request)
            case AnswerLost():
                raise await self._silence(httpx.ReadTimeout, self.read_s)
            case AnswerSlow(ms=ms):
                await self._wait(ms)
            case StatusInstead(status=status, headers=headers, body=body):
                return WebResponse(status=status, headers=headers, body=body)
            case Garbled(body=body):
                return WebResponse(status=answer.status, body=body)
            case _:
                pass
        return answer

    async def pieces(self, body: AsyncIterator[bytes], promised: int) -> AsyncIterator[bytes]:
        """The body as the client gets it; less than was promised is an error."""
        left = self.fault.bytes_kept if isinstance(self.fault, AnswerCut) else None
        while True:
            piece = await self._next_piece(body)
            if left is not None:
                if piece is None or len(piece) >= left:
                    yield (piece or b"")[:left]
                    raise self._cut()
                left -= len(piece)
            if piece is None:
                break
            promised -= len(piece)
            yield piece
            if isinstance(self.fault, PiecesDoubled):
                yield piece
        if promised > 0:
            raise self._cut()

    def _cut(self) -> Exception:
        reason = "the connection broke before the whole body had come"
        return httpx.RemoteProtocolError(reason, request=self.request)

    async def _next_piece(self, body: AsyncIterator[bytes]) -> bytes | None:
        async def read() -> bytes | None:
            return await anext(body, None)

        work = asyncio.get_running_loop().create_task(read(), context=Context())
        try:
            if not await self.ends_within(work, self.read_s):
                raise httpx.ReadTimeout("no more of the answer came", request=self.request)
        finally:
            if not work.done():
                # The server's stream ends, as when a connection is closed on it.
                work.cancel()
                await asyncio.wait({work})
        if isinstance(self.fault, AnswerSlow):
            await self._wait(self.fault.ms)
        return work.result()

    # --- time ------------------------------------------------------------------------------

    async def ends_within(self, work: "asyncio.Task[Any]", limit_s: float | None) -> bool:
        """Whether it is over before the client's patience is; None waits for ever."""
        if limit_s is None:
            await asyncio.wait({work})
            return True
        timer = asyncio.ensure_future(self.net.clock.sleep(limit_s))
        try:
            done, _ = await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        return work in done

    async def _silence(self, kind: type[Exception], limit_s: float | None) -> Exception:
        """The error that ends a silence, when it has lasted long enough."""
        await self.net.clock.sleep(1e9 if limit_s is None else limit_s)
        return kind("nothing came", request=self.request)  # type: ignore[call-arg]

    async def _wait(self, ms: int) -> None:
        """An answer that is slow; the client may lose its patience."""
        seconds = ms / 1000
        if self.read_s is not None and seconds > self.read_s:
            raise await self._silence(httpx.ReadTimeout, self.read_s)
        await self.net.clock.sleep(seconds)

    async def _die(self) -> None:
        self.net.kill(self.asked.process)
        await asyncio.get_running_loop().create_future()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, exchange: _Exchange, body: AsyncIterator[bytes], promised: int) -> None:
        self._exchange = exchange
        self._body = body
        self._promised = promised

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._exchange.pieces(self._body, self._promised):
            if piece:
                yield piece

    async def aclose(self) -> None:
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body
