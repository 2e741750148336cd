"""What an open host runs: its bus, doors and owners, and its seats as they come and go."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tenure.messages.approval import GetApprovals
from tenure.messages.base import Command, Reply
from tenure.messages.bus import OwnerStopped, Unhandled
from tenure.messages.remote import PROTOCOL_VERSION, Hello
from tenure.messages.session import SessionOpened
from tenure.messages.turn import DrainTurn
from tenure.runtime.bus import Bus
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import Catalogue
from tenure.runtime.errors import HostClosed
from tenure.runtime.events import Subscription
from tenure.runtime.host_doors import Doors, Wishes, open_doors
from tenure.runtime.local import LocalSocket
from tenure.runtime.observer import Observer
from tenure.runtime.seat import AskHost, Seat, refused
from tenure.runtime.stream_rules import STREAMS
from tenure.runtime.streams import OpenStreams
from tenure.runtime.supervisor import Supervisor, address_of
from tenure.runtime.system import (
    BETWEEN_OWNERS,
    EVENT_ROUTES,
    TAKEN_BY,
    handlers_of,
    host_owners,
    seat_owners,
)
from tenure.runtime.trace import Trace
from tenure.runtime.trace_file import TraceFile

SHUTDOWN_S = 5.0
"""How long the turn of a closing seat may take to stop."""

T = TypeVar("T")


class Running:
    """All that an open host has."""

    def __init__(
        self,
        leaves: Leaves,
        root: str,
        wishes: Wishes,
        trace_file: TraceFile | None,
        observers: Sequence[Observer],
        drain_max: int,
        socket: bool,
    ) -> None:
        self.leaves = leaves
        self.root = root
        self.host_id = leaves.entropy.fresh()
        self.bus = Bus(leaves.clock, self.host_id)
        self.doors: Doors = open_doors(leaves, root, self.host_id, wishes)
        self.catalogue = Catalogue(leaves, root)
        self.seats: dict[str, Seat] = {}
        self.trace_file = trace_file
        self.local = LocalSocket(self) if socket else None
        self._draining = False
        self._changing: dict[str, asyncio.Event] = {}
        self._leaving: dict[str, asyncio.Event] = {}
        """By the names of seats that are being closed."""
        if trace_file is not None:
            observers = (*observers, Trace(trace_file.write))
        self.supervisor = Supervisor(
            leaves,
            self.bus,
            handlers_of(self.doors, wishes),
            streams=OpenStreams(STREAMS),
            routes=EVENT_ROUTES,
            observers=observers,
            drain_max=drain_max,
        )
        for observer in observers:
            self.bus.stream.observe(observer.published)
        for spec in host_owners(self.doors):
            self.supervisor.add("", spec)

    async def ask(self, command: Command, seat: str) -> Reply:
        role = TAKEN_BY.get(type(command))
        if role is None or type(command) in BETWEEN_OWNERS:
            return Unhandled(message=type(command).__name__)
        if self._draining:
            return OwnerStopped(begun=False, reason="the host is closing")
        return await self.bus.ask(address_of(seat, role), command)

    async def listen(self) -> None:
        """Have other processes reach this host, where it has a socket at all."""
        if self.local is not None:
            await self.local.open()

    def hello(self) -> Hello:
        """What a client of the local socket is told first."""
        return Hello(
            version=PROTOCOL_VERSION,
            host_id=self.host_id,
            root=self.root,
            pid=self.leaves.processes.me().pid,
            seats=tuple(self.seats),
        )

    def subscribe(self, after: int | None, seat: str) -> Subscription:
        """Events for a client of the local socket.  Raises `LookupError`: there is no such seat."""
        if seat and seat not in self.seats:
            raise LookupError(seat)
        return self.bus.subscribe(after, seat or None)

    async def open_seat(self, name: str, opening: Command, ask_host: AskHost) -> Seat:
        """The seat of that name, made where there is none, with a session opened in it.

        A caller that is cancelled cuts nothing short: the seat is opened all the same.
        A new seat whose session is refused does not stay.

        Raises:
            Refused: the session cannot be opened.
            HostClosed: the host is closing.
            ValueError: the name is none.
        """
        if not name.strip() or "/" in name:
            raise ValueError(f"a seat's name must not be empty or hold a slash: {name!r}")
        return await _whole(self._open_seat(name, opening, ask_host))

    async def vacant_seat(self, name: str, ask_host: AskHost) -> Seat:
        """The seat of that name, made where there is none, with no session opened in it.

        Raises:
            HostClosed: the host is closing.
        """
        async with self._alone(name):
            await self._forget_lost(name)
            if self._draining:
                raise HostClosed("the host is closing")
            return self.seats.get(name) or self._add(name, ask_host)

    async def close_seat(self, name: str, reason: str) -> None:
        """Drain the turn, then stop the owners, the last started first."""

        async def close() -> None:
            async with self._alone(name):
                await self._remove(name, reason)

        await _whole(close())

    async def close(self) -> None:
        """Every seat, then the owners of the host; then nobody waits any more."""
        self._draining = True
        reason = "the host is closed"
        try:
            if self.local is not None:
                await self.local.stop_listening()
            await asyncio.gather(*(self._remove(name, reason) for name in list(self.seats)))
            for gone in list(self._leaving.values()):
                await gone.wait()
            await self.supervisor.stop_all(reason)
            await self.doors.credentials.close()
            await self.doors.transcripts.forget_host()
        finally:
            self.bus.close()
            if self.local is not None:
                await self.local.close()
            if self.trace_file is not None:
                await self.trace_file.close()

    async def _open_seat(self, name: str, opening: Command, ask_host: AskHost) -> Seat:
        async with self._alone(name):
            await self.listen()
            await self._forget_lost(name)
            if self._draining:
                raise HostClosed("the host is closing")
            new = name not in self.seats
            seat = self._add(name, ask_host) if new else self.seats[name]
            reply = await seat.ask(opening)
            if not isinstance(reply, SessionOpened):
                if new:
                    await self._remove(name, "its session could not be opened")
                raise refused(reply)
            return seat

    def _add(self, name: str, ask_host: AskHost) -> Seat:
        seat = self.seats[name] = Seat(name, ask_host, self.bus)
        for spec in seat_owners(self.doors):
            self.supervisor.add(name, spec)
        return seat

    async def _forget_lost(self, name: str) -> None:
        """Where a seat was lost, a new one may take its name when its owners have ended."""
        if name in self.seats and not self.supervisor.has_seat(name):
            await self.supervisor.stop_seat(name, "it was lost")
            lost = self.seats.pop(name, None)
            if lost is not None:
                lost.close()

    async def _remove(self, name: str, reason: str) -> None:
        seat = self.seats.pop(name, None)
        if seat is None:
            return
        seat.closing = True
        gone = self._leaving[name] = asyncio.Event()
        try:
            drain = DrainTurn(cause="shutdown")
            await self.bus.ask_in_order(address_of(name, "turn"), drain, deadline_s=SHUTDOWN_S)
            # The turn told the approvals of its end; they say so before they go (APPROVE-6).
            approval = address_of(name, "approval")
            await self.bus.ask_in_order(approval, GetApprovals(), deadline_s=SHUTDOWN_S)
            await self.supervisor.stop_seat(name, reason)
        finally:
            seat.close()
            del self._leaving[name]
            gone.set()

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """One opening or closing of a seat at a time; another of the same name waits."""
        while (before := self._changing.get(name)) is not None:
            await before.wait()
        mine = self._changing[name] = asyncio.Event()
        try:
            yield
        finally:
            del self._changing[name]
            mine.set()


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end, also when the caller is cancelled meanwhile."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_seen)
    return await asyncio.shield(task)


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
