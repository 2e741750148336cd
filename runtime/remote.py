"""A host of another process, spoken to through its local socket.

async with await RemoteHost.connect(root=".", session="0199…") as remote:
    for each in await remote.approvals():
        await remote.answer(each.request.request_id, Allow(), each.seat)

Everything is asked of the owners that have it, as an embedder asks: a remote
approver is as good as a local one.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from tenure.messages.approval import (
    AnswerApproval,
    ApprovalRequest,
    ApprovalsOpen,
    Choice,
    GetApprovals,
)
from tenure.messages.base import Command, Event, Refusal, Reply
from tenure.messages.bus import DeadlinePassed, EventsMissed, OwnerStopped, Published
from tenure.messages.queue import RedirectTurn, ResumeTurn
from tenure.messages.remote import LINE_TO_HOST_BYTES_MAX, BadRequest, Hello
from tenure.messages.session import GetSession, SessionView
from tenure.messages.tokens import RequestId, SessionId
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.sockets import Connection
from tenure.runtime.errors import Refused
from tenure.runtime.events import Subscription
from tenure.runtime.lines import (
    DECODE_ERRORS,
    LineTooLong,
    NotJson,
    line_of,
    message_of,
)
from tenure.runtime.seat_queue import SeatQueue

LATE_S = 5.0
"""A host answers when an ask's deadline has passed; this much later nobody waits any more."""

Deadline = Literal["from_command"] | float | None


class SeatApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A request that waits for an answer, and the seat that it belongs to."""

    seat: str
    request: ApprovalRequest


class RemoteHost:
    """A connection to a host.  Use it with `async with`, or close it.  For one event loop."""

    def __init__(self, connection: Connection, lines: AsyncIterator[bytes], hello: Hello) -> None:
        self._connection = connection
        self._lines = lines
        self.hello = hello
        """What the host said of itself when this connection began."""
        self._numbers = count(1)
        self._asks: dict[int, asyncio.Future[Reply]] = {}
        self._streams: dict[int, Subscription] = {}
        self._one_line = asyncio.Lock()
        self._over = ""
        """Why nothing more comes; empty while the host may answer."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def connect(
        cls,
        *,
        root: str = ".",
        session: str | None = None,
        host_id: str | None = None,
        leaves: Leaves | None = None,
    ) -> "RemoteHost":
        """Speak to the host that has a session, to one by its id, or to the only one of a root.

        Raises:
            Refused: `NoHost`, `SeveralHosts`, or `HostSilent` where it does not answer.
            StrangeHost: it speaks another version.
        """
        from tenure.runtime.finding import host_of_id, host_of_root, host_of_session

        own = leaves is None
        leaves = leaves or system_leaves()
        try:
            if host_id is not None:
                return await host_of_id(leaves, root, host_id)
            if session is not None:
                return await host_of_session(leaves, root, SessionId(session))
            return await host_of_root(leaves, root)
        finally:
            if own:
                await leaves.workers.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; harmless when ended.  What the host was asked, it may still do."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._end("the connection was closed")
        await self._connection.close()

    # --- asks ----------------------------------------------------------------------------------

    async def ask(
        self, command: Command, seat: str = "", *, deadline_s: Deadline = "from_command"
    ) -> Reply:
        """Ask the owner that takes this command; refusals are replies, too.

        Args:
            deadline_s: how long to wait for a host that says nothing at all.  By
                default somewhat longer than the host itself lets its owner take.

        A connection that breaks is `OwnerStopped`: look before you repeat the command.
        """
        if self._over:
            return OwnerStopped(begun=False, reason=self._over)
        number = next(self._numbers)
        line = _request(command, {"id": number, "seat": seat, "ask": command})
        if len(line) > LINE_TO_HOST_BYTES_MAX:
            return BadRequest(reason=f"the command has {len(line):,} bytes, too many for a line")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asks[number] = future
        try:
            async with asyncio.timeout(_patience(command, deadline_s)):
                await self._write(line)
                return await future
        except TimeoutError:
            return DeadlinePassed(begun=True)
        except OSError:
            return OwnerStopped(begun=True, reason="the connection to the host broke")
        finally:
            self._asks.pop(number, None)

    async def approvals(self) -> tuple[SeatApproval, ...]:
        """What waits for an answer, in every seat of the host.

        Raises:
            Refused: the host is gone.
        """
        found: list[SeatApproval] = []
        for seat in self.hello.seats:
            reply = await self.ask(GetApprovals(), seat)
            if isinstance(reply, ApprovalsOpen):
                found += (SeatApproval(seat=seat, request=each) for each in reply.requests)
            elif self._over and isinstance(reply, Refusal):
                raise Refused(reply)
        return tuple(found)

    async def answer(self, request_id: RequestId, choice: Choice, seat: str) -> Reply:
        """Answer a request: `Applied`, or `Superseded` or `Expired` where it is over."""
        return await self.ask(AnswerApproval(request_id=request_id, choice=choice), seat)

    def queue(self, seat: str) -> SeatQueue:
        """What waits in a seat of the host, and what is said to its running turn."""
        return SeatQueue(lambda command: self.ask(command, seat))

    async def redirect(self, text: str, seat: str) -> Reply:
        """Stop the running turn and start with this prompt: `TurnQueued` or `TurnAccepted`."""
        return await self.ask(RedirectTurn(text=text), seat)

    async def resume(self, seat: str) -> Reply:
        """Go on with an interrupted turn: `TurnAccepted`, or `NothingToResume`."""
        return await self.ask(ResumeTurn(), seat)

    async def seat_of(self, session_id: SessionId) -> str | None:
        """The seat that has this session now; None where none has."""
        for seat in self.hello.seats:
            view = await self.ask(GetSession(), seat)
            if isinstance(view, SessionView) and view.token.session_id == session_id:
                return seat
        return None

    # --- events --------------------------------------------------------------------------------

    async def events(self, after: int | None = None, seat: str = "") -> AsyncIterator[Published]:
        """Events of the host from now on, or those after a sequence number and on.

        It ends with the host or the connection.  What is read too slowly is
        joined or missed, and named by an `EventsMissed`.
        """
        number = next(self._numbers)
        subscription = Subscription(_nothing, self.hello.host_id, None)
        self._streams[number] = subscription
        try:
            if self._over:
                return
            await self._send({"id": number, "events": {"after": after, "seat": seat}})
            async for published in subscription:
                yield published
        finally:
            if self._streams.pop(number, None) is not None and not self._over:
                try:
                    await self._send({"id": number, "end": True})
                except OSError:
                    self._end("the connection to the host broke")

    # --- lines ---------------------------------------------------------------------------------

    async def _send(self, value: dict[str, Any]) -> None:
        await self._write(line_of(value))

    async def _write(self, line: bytes) -> None:
        async with self._one_line:
            if self._over:
                raise BrokenPipeError(self._over)
            try:
                await self._connection.write(line)
            except BaseException:
                # Half a line may have gone: nothing behind it would be understood.
                self._end("the connection to the host broke")
                raise

    async def _read(self) -> None:
        why = "the host ended the connection"
        try:
            async for line in self._lines:
                self._take(line)
        except (LineTooLong, OSError, *DECODE_ERRORS) as error:
            why = f"the host cannot be understood: {error}"
        finally:
            self._end(why)

    def _take(self, line: bytes) -> None:
        told = msgspec.json.decode(line, type=_Line)
        number = told.id
        if told.end:
            self._close_stream(number)
        elif bytes(told.published):
            self._offer(number, told.published)
        elif number is None:
            self._end(_refusal_of(told.error).remedy)
        elif number in self._streams:
            self._close_stream(number)
        elif (future := self._asks.pop(number, None)) is not None and not future.done():
            future.set_result(_reply_of(told))

    def _offer(self, number: int | None, raw: msgspec.Raw) -> None:
        subscription = self._streams.get(number) if number is not None else None
        if subscription is not None:
            subscription.offer(_published(raw))

    def _close_stream(self, number: int | None) -> None:
        subscription = self._streams.pop(number, None) if number is not None else None
        if subscription is not None:
            subscription.close()

    def _end(self, why: str) -> None:
        """Nothing more comes: whoever waits is told so."""
        self._over = self._over or why
        for number in list(self._streams):
            self._close_stream(number)
        for future in self._asks.values():
            if not future.done():
                future.set_result(OwnerStopped(begun=True, reason=self._over))


def _nothing(subscription: Subscription) -> None:
    """A remote reader is known to nobody but its connection."""


def _request(command: Command, request: dict[str, Any]) -> bytes:
    try:
        return line_of(request)
    except NotJson as error:
        name = type(command).__name__
        raise ValueError(f"{name} cannot be written as JSON: {error}") from None


def _patience(command: Command, deadline_s: Deadline) -> float | None:
    """How long a host may say nothing."""
    if deadline_s != "from_command":
        return deadline_s
    return None if command.ask_deadline_s is None else command.ask_deadline_s + LATE_S


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the host behind its greeting."""

    id: int | None = None
    reply: msgspec.Raw = msgspec.Raw(b"")
    published: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")
    end: bool = False


class _Published(msgspec.Struct, frozen=True, kw_only=True):
    host_run: str
    seq_first: int
    seq_last: int
    seat: str
    event: msgspec.Raw


def _reply_of(told: _Line) -> Reply:
    if not bytes(told.reply):
        return _refusal_of(told.error)
    try:
        return message_of(told.reply, Reply)
    except LookupError as error:
        return BadRequest(reason=f"the host answered {error.args[0]}, which is not known here")


def _refusal_of(raw: msgspec.Raw) -> Refusal:
    try:
        return message_of(raw, Refusal)
    except (LookupError, *DECODE_ERRORS) as error:
        return BadRequest(reason=f"the host refused for a reason that is not known here: {error}")


def _published(raw: msgspec.Raw) -> Published:
    told = msgspec.json.decode(raw, type=_Published)
    event: Event
    try:
        event = message_of(told.event, Event)
    except LookupError:
        # An event of a newer host: its place in the order is known, and nothing else.
        event = EventsMissed(seq_first=told.seq_first, seq_last=told.seq_last)
    return Published(
        host_run=told.host_run,
        seq_first=told.seq_first,
        seq_last=told.seq_last,
        seat=told.seat,
        event=event,
    )
