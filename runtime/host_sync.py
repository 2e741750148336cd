"""The embedding API for scripts: the same host on a loop of its own, in a thread."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tenure.messages.base import Command, Event, Reply
from tenure.messages.session import SessionOpened
from tenure.messages.tokens import SessionToken, TurnId
from tenure.runtime.errors import HostClosed

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from tenure.messages.compaction import Compacted, CompactionQueued, Uncompacted
    from tenure.messages.queue import QueueItem
    from tenure.messages.turn import TurnAccepted, TurnQueued
    from tenure.runtime.doors.transcripts import SessionSummary
    from tenure.runtime.host import Host
    from tenure.runtime.seat import Seat


class SyncHost:
    """A host whose methods block.  Made by `Host.open_sync`; use it with `with`."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._portal_context: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        from anyio.from_thread import start_blocking_portal

        self._portal_context = start_blocking_portal(backend="asyncio")
        self._portal = self._portal_context.__enter__()
        try:
            self._portal.call(self._host.__aenter__)
        except BaseException:
            self._leave(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        try:
            self._running().call(self._host.close)
        finally:
            self._leave(kind, error, where)

    def seat(self, name: str = "main", session: str | None = None) -> "SyncSeat":
        """See `Host.seat`."""
        seat = self._running().call(self._host.seat, name, session)
        return SyncSeat(seat, self._running)

    def take_over(self, session: str, seat: str = "main") -> "SyncSeat":
        """See `Host.take_over`."""
        taken = self._running().call(self._host.take_over, session, seat)
        return SyncSeat(taken, self._running)

    def sessions(self) -> "tuple[SessionSummary, ...]":
        """The sessions of the root, the newest first."""
        return self._running().call(self._host.sessions.list)

    def ask(self, command: Command, seat: str = "") -> Reply:
        """See `Host.ask`."""
        return self._running().call(self._host.ask, command, seat)

    def _running(self) -> "BlockingPortal":
        if self._portal is None:
            raise HostClosed("the host is not open: use it inside `with Host.open_sync(...)`")
        return self._portal

    def _leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        context, self._portal_context, self._portal = self._portal_context, None, None
        if context is not None:
            context.__exit__(kind, error, where)


class SyncSeat:
    """A seat whose methods block."""

    def __init__(self, seat: "Seat", running: "Callable[[], BlockingPortal]") -> None:
        self._seat = seat
        self._running = running

    @property
    def name(self) -> str:
        """The seat's name in its host."""
        return self._seat.name

    @property
    def token(self) -> SessionToken:
        """See `Seat.token`."""
        return self._seat.token

    def prompt(self, text: str, *, model: str = "") -> Iterator[Event]:
        """Start a turn and give its events; the last is `TurnEnded`.  See `Seat.prompt`."""
        return self._events(self._seat.prompt(text, model=model))

    def redirect(self, text: str, *, model: str = "") -> Iterator[Event]:
        """See `Seat.redirect`."""
        return self._events(self._seat.redirect(text, model=model))

    def resume(self, *, model: str = "") -> Iterator[Event]:
        """See `Seat.resume`."""
        return self._events(self._seat.resume(model=model))

    def steer(self, text: str) -> "TurnQueued | TurnAccepted":
        """See `Seat.steer`."""
        return self._running().call(self._seat.steer, text)

    def follow_up(self, text: str) -> "TurnQueued | TurnAccepted":
        """See `Seat.follow_up`."""
        return self._running().call(self._seat.follow_up, text)

    def queue(self) -> "tuple[QueueItem, ...]":
        """What waits; change it with `ask`.  See `SeatQueue.ls`."""
        return self._running().call(self._seat.queue.ls)

    def _events(self, events: AsyncIterator[Event]) -> Iterator[Event]:
        try:
            while True:
                try:
                    yield self._running().call(anext, events)
                except StopAsyncIteration:
                    return
        finally:
            # Where the host is closed already, its loop has closed the events.
            with suppress(HostClosed):
                self._running().call(_close, events)

    def stop(self, turn_id: TurnId | None = None) -> Reply:
        """See `Seat.stop`."""
        return self._running().call(self._seat.stop, turn_id)

    def wait_idle(self) -> None:
        """See `Seat.wait_idle`."""
        self._running().call(self._seat.wait_idle)

    def new(self, name: str = "") -> SessionOpened:
        """See `Seat.new`."""
        return self._running().call(self._seat.new, name)

    def open(self, session_id: str) -> SessionOpened:
        """See `Seat.open`."""
        return self._running().call(self._seat.open, session_id)

    def compact(self, instructions: str = "") -> "Compacted | CompactionQueued":
        """See `Seat.compact`."""
        return self._running().call(self._seat.compact, instructions)

    def uncompact(self) -> "Uncompacted":
        """See `Seat.uncompact`."""
        return self._running().call(self._seat.uncompact)

    def ask(self, command: Command) -> Reply:
        """See `Seat.ask`."""
        return self._running().call(self._seat.ask, command)


async def _close(events: AsyncIterator[Event]) -> None:
    aclose = getattr(events, "aclose", None)
    if aclose is not None:
        await aclose()
