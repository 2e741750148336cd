"""The host's local socket: the same commands, replies and events as inside, as JSON lines.

`messages/remote.py` says what a line may be.  A client costs a bounded amount of
memory, whatever it sends and however slowly it reads: its requests are counted,
its events are joined and missed as any slow reader's, and what it does not read
in time ends its connection.  Owners never wait for a client.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from tenure.messages.base import Command, Refusal, Reply
from tenure.messages.bus import EventsMissed, Overloaded, Published
from tenure.messages.remote import (
    LINE_TO_CLIENT_BYTES_MAX,
    LINE_TO_HOST_BYTES_MAX,
    BadRequest,
    EventsWanted,
    Hello,
    Request,
    TooManyClients,
)
from tenure.runtime.doors.sockets import Connection, Listener, Sockets
from tenure.runtime.events import Subscription
from tenure.runtime.lines import (
    DECODE_ERRORS,
    LineTooLong,
    NotJson,
    line_of,
    lines_of,
    message_of,
)

CLIENTS_MAX = 32
REQUESTS_MAX = 64
"""Of one client, streams included, that are not answered yet."""
WRITE_DEADLINE_S = 10.0
"""How long a client may leave a piece of a line unread."""
PIECE_BYTES = 256 * 1024
DROPPED_BYTES_MAX = 16 * 1024 * 1024
"""Of a line that is too long, before its connection is ended in its middle."""
FAREWELL_S = 1.0
"""How long a closing host waits for its clients to read their last lines."""


class Served(Protocol):
    """What a socket opens to its clients."""

    def hello(self) -> Hello: ...

    async def ask(self, command: Command, seat: str) -> Reply:
        """As an embedder asks: a command between owners is `Unhandled`."""
        ...

    def subscribe(self, after: int | None, seat: str) -> Subscription:
        """Raises `LookupError` where there is no such seat."""
        ...


class SocketServer:
    """Serves the clients of one host."""

    def __init__(
        self,
        served: Served,
        *,
        clients_max: int = CLIENTS_MAX,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> None:
        self._served = served
        self._clients_max = clients_max
        self._deadline_s = deadline_s
        self._clients: set[_Client] = set()
        self._listener: Listener | None = None

    @property
    def path(self) -> str:
        """Where it lies, for people; empty where it does not listen."""
        return self._listener.path if self._listener is not None else ""

    async def open(self, sockets: Sockets, name: str) -> None:
        """Listen.

        Raises:
            OSError: there is no place that is private to this user.
        """
        self._listener = await sockets.listen(name, self._serve)

    async def stop_listening(self) -> None:
        """Take no new clients."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    async def close(self) -> None:
        """Let every client read what it is owed, for a second at most; then end it."""
        await self.stop_listening()
        clients = list(self._clients)
        await asyncio.gather(*(client.farewell(FAREWELL_S) for client in clients))

    async def _serve(self, connection: Connection) -> None:
        client = _Client(connection, self._served, self._deadline_s)
        if len(self._clients) >= self._clients_max:
            with suppress(OSError):
                await client.refuse(None, TooManyClients(clients_max=self._clients_max))
            return
        self._clients.add(client)
        try:
            await client.serve()
        finally:
            self._clients.discard(client)


class _Client:
    """One connection, from the greeting to its end."""

    def __init__(self, connection: Connection, served: Served, deadline_s: float) -> None:
        self._connection = connection
        self._served = served
        self._deadline_s = deadline_s
        self._one_line = asyncio.Lock()
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._streams: dict[int, Subscription] = {}

    async def serve(self) -> None:
        try:
            await self._send({**msgspec.to_builtins(self._served.hello())})
            async for line in lines_of(self._connection, LINE_TO_HOST_BYTES_MAX):
                if line.strip():
                    await self._take(line)
                await asyncio.sleep(0)  # a flood of lines leaves the owners their turns
            await self._finish()
        except LineTooLong as error:
            with suppress(OSError):
                await self.refuse(None, BadRequest(reason=str(error)))
                await self._hear_out()
        except OSError:
            pass  # it is gone, or does not read
        finally:
            await self._drop()

    async def farewell(self, within_s: float) -> None:
        """The host closes: every request is answered now, and only has to be read."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._finish()
        await self._connection.close()

    async def _hear_out(self) -> None:
        """Drop the rest of a line that is too long: a reset would take our answer with it."""
        dropped = 0
        async with asyncio.timeout(FAREWELL_S):
            while dropped < DROPPED_BYTES_MAX and (data := await self._connection.read()):
                dropped += len(data)

    async def refuse(self, number: int | None, why: Refusal) -> None:
        await self._send({"id": number, "error": why})

    # --- requests ------------------------------------------------------------------------------

    async def _take(self, line: bytes) -> None:
        try:
            request = msgspec.json.decode(line, type=Request)
        except DECODE_ERRORS as error:
            await self.refuse(_number_of(line), BadRequest(reason=str(error)))
            return
        asked = [bool(bytes(request.ask)), request.events is not None, request.end is not None]
        if sum(asked) != 1:
            reason = "a request has one of `ask`, `events` and `end`"
            await self.refuse(request.id, BadRequest(reason=reason))
        elif request.end is not None:
            await self._end_stream(request.id)
        elif request.id in self._requests:
            reason = f"request {request.id} is not answered yet; take another number"
            await self.refuse(request.id, BadRequest(reason=reason))
        elif len(self._requests) >= REQUESTS_MAX:
            await self._send({"id": request.id, "reply": Overloaded(waiting=len(self._requests))})
        elif request.events is not None:
            await self._begin_stream(request.id, request.events)
        else:
            await self._begin_ask(request)

    async def _begin_ask(self, request: Request) -> None:
        try:
            command = message_of(request.ask, Command)
        except LookupError as error:
            reason = f"there is no command {error.args[0]!r}"
            await self.refuse(request.id, BadRequest(reason=reason))
        except DECODE_ERRORS as error:
            await self.refuse(request.id, BadRequest(reason=str(error)))
        else:
            self._begin(request.id, partial(self._ask, request.id, command, request.seat))

    async def _ask(self, number: int, command: Command, seat: str) -> None:
        try:
            reply = await self._served.ask(command, seat)
        except Exception as error:
            await self.refuse(number, BadRequest(reason=f"the host failed: {error!r}"))
            return
        try:
            line = line_of({"id": number, "reply": reply})
        except NotJson as error:
            await self.refuse(number, BadRequest(reason=f"the reply is no JSON: {error}"))
            return
        if len(line) > LINE_TO_CLIENT_BYTES_MAX:
            reason = f"the reply has {len(line):,} bytes, more than a line may have"
            await self.refuse(number, BadRequest(reason=reason))
            return
        await self._write(line)

    async def _begin_stream(self, number: int, wanted: EventsWanted) -> None:
        try:
            subscription = self._served.subscribe(wanted.after, wanted.seat)
        except LookupError:
            reason = f"there is no seat {wanted.seat!r}"
            await self.refuse(number, BadRequest(reason=reason))
            return
        self._streams[number] = subscription
        self._begin(number, partial(self._tell_events, number, subscription))

    async def _tell_events(self, number: int, subscription: Subscription) -> None:
        async for published in subscription:
            await self._write(_event_line(number, published))
        await self._send({"id": number, "end": True})

    async def _end_stream(self, number: int) -> None:
        subscription = self._streams.get(number)
        if subscription is None:
            await self.refuse(number, BadRequest(reason=f"no stream has the number {number}"))
        else:
            subscription.close()  # its last line says that it is over

    # --- tasks and lines -------------------------------------------------------------------------

    def _begin(self, number: int, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._whole(work))
        self._requests[number] = task
        task.add_done_callback(lambda task: self._ended(number))

    async def _whole(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except OSError:
            await self._connection.close()  # who does not read is not served any more

    def _ended(self, number: int) -> None:
        """Also where the task was cancelled before its first step."""
        del self._requests[number]
        subscription = self._streams.pop(number, None)
        if subscription is not None:
            subscription.close()

    async def _finish(self) -> None:
        """It sends no more: streams end, and what it asked is answered."""
        for subscription in list(self._streams.values()):
            subscription.close()
        await asyncio.gather(*self._requests.values(), return_exceptions=True)

    async def _drop(self) -> None:
        tasks = list(self._requests.values())
        for task in tasks:
            task.cancel()
        if tasks:  # of nothing, `gather` would ask for a loop that may be gone
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, value: dict[str, Any]) -> None:
        await self._write(line_of(value))

    async def _write(self, line: bytes) -> None:
        """One whole line.  Raises `OSError` where it is not read in time."""
        async with self._one_line:
            for start in range(0, len(line), PIECE_BYTES):
                async with asyncio.timeout(self._deadline_s):  # TimeoutError is an OSError
                    await self._connection.write(line[start : start + PIECE_BYTES])


class _Numbered(msgspec.Struct):
    id: int | None = None


def _number_of(line: bytes) -> int | None:
    """The number of a request that is otherwise wrong; None where it has none."""
    try:
        return msgspec.json.decode(line, type=_Numbered).id
    except DECODE_ERRORS:
        return None


def _event_line(number: int, published: Published) -> bytes:
    """The event; where it is no JSON, or has too much, that it will not come."""
    try:
        line = line_of({"id": number, "published": published})
        if len(line) <= LINE_TO_CLIENT_BYTES_MAX:
            return line
    except NotJson:
        pass
    missed = EventsMissed(seq_first=published.seq_first, seq_last=published.seq_last)
    return line_of({"id": number, "published": msgspec.structs.replace(published, event=missed)})
