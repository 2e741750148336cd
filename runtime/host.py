"""The embedding API: a `Host` on one workspace root, and its seats.

async with Host.open("notes") as host:
    seat = await host.seat()
    async for event in seat.prompt("What did we decide about pricing?"):
        print(event)
"""

import asyncio
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from tenure.messages.base import Command, Reply
from tenure.messages.bus import DeadLetter, OwnerStopped, OwnerView, Published
from tenure.messages.index_work import ViewName
from tenure.messages.models import Model
from tenure.messages.session import ContinueSession, OpenNewSession, OpenSession
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.approver import Approve, ReplyTo
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.search.wiring import IndexWishes
from tenure.runtime.doors.tools.door import AnyTool
from tenure.runtime.errors import HostClosed
from tenure.runtime.events import Subscription
from tenure.runtime.host_doors import Wishes
from tenure.runtime.host_handoff import HostHandoff
from tenure.runtime.host_index import HostIndex
from tenure.runtime.host_mcp import HostMcp
from tenure.runtime.host_plugins import HostPlugins
from tenure.runtime.host_root import checked_root
from tenure.runtime.host_settings import HostSettings
from tenure.runtime.host_sync import SyncHost
from tenure.runtime.observer import Observer
from tenure.runtime.owner import DRAIN_MAX
from tenure.runtime.running import Running
from tenure.runtime.seat import Seat
from tenure.runtime.sessions import Sessions
from tenure.runtime.strict import Violation, strict_observer, violations_of
from tenure.runtime.supervisor import Quarantined
from tenure.runtime.takeover import HANDOVER_S, take_over
from tenure.runtime.trace_file import TraceFile


class Host:
    """One process on one workspace root.  Use it as an async context manager.

    Its owners live on the running asyncio loop, and its methods are called
    there; scripts and other threads use `Host.open_sync`.
    """

    def __init__(
        self,
        root: str,
        wishes: Wishes,
        *,
        leaves: Leaves | None = None,
        trace: str | None = None,
        observers: Sequence[Observer] = (),
        drain_max: int = DRAIN_MAX,
        socket: bool = False,
    ) -> None:
        self._root = root
        self._wishes = wishes
        self._own_leaves = leaves is None
        self._given_leaves = leaves
        self._trace_path = trace
        self._observers = observers
        self._drain_max = drain_max
        self._socket = socket
        self._running: Running | None = None
        self._entered = False
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def open(
        cls,
        root: str,
        *,
        model: str | Model | None = None,
        base_url: str = "",
        approve: Approve | None = None,
        reply: ReplyTo | None = None,
        tools: Sequence[AnyTool] = (),
        settings: Mapping[str, object] | None = None,
        leaves: Leaves | None = None,
        trace: str | None = None,
        observers: Sequence[Observer] = (),
        strict: bool = False,
        drain_max: int = DRAIN_MAX,
        socket: bool | None = None,
        index: IndexWishes | None = None,
    ) -> "Host":
        """A host on the folder `root`, to be entered with `async with`.

        Args:
            root: the workspace; it must exist.  `.tenure/` is made in it on the
                first write.
            model: a model string, or an async callable
                `(ModelRequest) -> AsyncIterator[ModelEvent]`; by default the one
                in the settings, else `librarian`.
            base_url: where the model is served, for strings that need it.
            approve: an async callable `(ApprovalRequest) -> Allow | Deny | Stop`;
                without one a request waits for `seat.answer`.
            reply: an async callable `(QuestionRequest) -> Said | Declined`, for the
                questions of tools; without one a question waits for `seat.reply`.
            tools: your own tools beside the workspace's.
            settings: settings for this run, in the layout of `.tenure/settings.toml`.
            leaves: the outside world; by default the real one.
            trace: a file that gets every message and step as JSON lines.
            observers: see everything that owners do; see `runtime/observer.py`.
            strict: watch the invariants; what is broken is logged, and in `violations`.
            drain_max: how many messages one owner handles before others have
                their turn.
            socket: whether other processes of this user can reach the host, from its
                first seat on; by default where the outside world is the real one.
            index: a lease store and embedding models of your own for the index.

        Entering raises `BadRoot` where the root is missing or no folder.
        """
        wishes = Wishes(
            model=model,
            base_url=base_url,
            approve=approve,
            reply=reply,
            tools=tuple(tools),
            settings=settings,
            index=index or IndexWishes(),
        )
        return cls(
            root,
            wishes,
            leaves=leaves,
            trace=trace,
            observers=(*observers, strict_observer()) if strict else observers,
            drain_max=drain_max,
            socket=leaves is None if socket is None else socket,
        )

    @classmethod
    def open_sync(
        cls,
        root: str,
        *,
        model: str | Model | None = None,
        base_url: str = "",
        approve: Approve | None = None,
        reply: ReplyTo | None = None,
        tools: Sequence[AnyTool] = (),
        settings: Mapping[str, object] | None = None,
    ) -> SyncHost:
        """The same for scripts: a plain context manager with blocking methods."""
        return SyncHost(
            cls.open(
                root,
                model=model,
                base_url=base_url,
                approve=approve,
                reply=reply,
                tools=tools,
                settings=settings,
            )
        )

    async def __aenter__(self) -> Self:
        if self._entered:
            raise HostClosed("a host is opened once; make another one")
        self._entered = True
        leaves = self._given_leaves or system_leaves()
        try:
            root = await leaves.workers.run(checked_root, leaves, self._root)
            trace = TraceFile(leaves, self._trace_path) if self._trace_path else None
            self._running = Running(
                leaves, root, self._wishes, trace, self._observers, self._drain_max, self._socket
            )
        except BaseException:
            self._entered = False
            if self._own_leaves:
                await leaves.workers.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop every turn, write what is owed, give back every claim.  Harmless when closed."""
        running, self._running = self._running, None
        if running is not None:
            self._ending = asyncio.get_running_loop().create_task(self._end(running))
        if self._ending is not None:
            # Who closes it a second time, or is cancelled, must not cut it short.
            await asyncio.shield(self._ending)

    async def _end(self, running: Running) -> None:
        try:
            await running.close()
        finally:
            if self._own_leaves:
                await running.leaves.workers.close()

    # --- seats -------------------------------------------------------------------------------

    async def seat(self, name: str = "main", session: str | None = None) -> Seat:
        """A conversation place; by name, so that asking twice gives the same one.

        Args:
            session: the session to open in it; by default a new seat continues the
                newest session that nobody has open, or starts one.

        Raises:
            Refused: the session cannot be opened (`SessionInUse`, `SessionNotFound`, ...).
        """
        opening: Command = ContinueSession()
        if session is not None:
            opening = OpenSession(session_id=SessionId(session))
        return await self._alive().open_seat(name, opening, self.ask)

    async def new_seat(self, name: str) -> Seat:
        """A seat with a new, empty session.

        Raises:
            Refused: as `seat`.
        """
        return await self._alive().open_seat(name, OpenNewSession(), self.ask)

    async def take_over(
        self, session: str, seat: str = "main", *, within_s: float = HANDOVER_S
    ) -> Seat:
        """Open a session in a seat, also where another process has it: it is asked to hand over.

        The other host stops its turn, writes what is owed and lets go; a dead one
        has let go already.

        Args:
            session: its id.
            within_s: how long to ask again while a tool of the other host still runs.

        Raises:
            Refused: `HandoverPending` where such a tool did not end in time, `SessionInUse`
                where the other host does not answer, or as `seat`.
        """
        return await take_over(self._alive(), self.seat, SessionId(session), seat, within_s)

    async def vacant_seat(self, name: str) -> Seat:
        """A seat without a session: it can change sessions that it does not open."""
        return await self._alive().vacant_seat(name, self.ask)

    async def close_seat(self, name: str) -> None:
        """Stop the seat's turn, give back its session, and forget the seat."""
        await self._alive().close_seat(name, "the seat was closed")

    @property
    def seats(self) -> Mapping[str, Seat]:
        """The open seats by name."""
        return dict(self._alive().seats)

    # --- the whole host ------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """The workspace, as an absolute path with its links followed."""
        return self._alive().root

    @property
    def host_id(self) -> str:
        """Names this run; it is the `host_run` of its events."""
        return self._alive().host_id

    @property
    def socket_path(self) -> str:
        """Where other processes reach this host; empty before its first seat, or without one."""
        local = self._alive().local
        return local.path if local is not None else ""

    @property
    def socket_problem(self) -> str:
        """Why other processes cannot reach this host; empty where nothing is wrong."""
        local = self._alive().local
        return local.problem if local is not None else ""

    @property
    def sessions(self) -> Sessions:
        """The sessions of the root, for reading."""
        running = self._alive()
        return Sessions(running.leaves, running.catalogue)

    @property
    def settings(self) -> HostSettings:
        """The settings of the root."""
        return HostSettings(self.ask)

    @property
    def index(self) -> HostIndex:
        """The index of the notes: build it, watch it, search it."""
        running = self._alive()
        return HostIndex(
            self.ask,
            running.bus.subscribe,
            running.listen,
            running.leaves,
            running.root,
            running.doors.index.readers,
            "host",
        )

    def index_view(self, name: str) -> HostIndex:
        """The index as one view of an application has it: closing it ends its own run only."""
        index = self.index
        index.view = ViewName(name)
        return index

    @property
    def plugins(self) -> HostPlugins:
        """The packages of the root: skills and MCP servers."""
        return HostPlugins(self.ask, self._alive().doors.packages)

    @property
    def handoff(self) -> HostHandoff:
        """Handoffs, checkpoints and briefs: what one session leaves to the next."""
        return HostHandoff(self.ask)

    @property
    def mcp(self) -> HostMcp:
        """Signing in to MCP servers."""
        return HostMcp(self.ask, self._alive())

    def events(self, after: int | None = None) -> AsyncIterator[Published]:
        """All events of the host from this call on, or those after a sequence number and on.

        It ends with the host.  What is no longer kept, or came too fast for
        you, is named by an `EventsMissed`.
        """
        subscription = self._alive().bus.subscribe(after)
        events = _read(subscription)
        # An iterator that nobody ever reads runs no `finally` of its own.
        weakref.finalize(events, subscription.close).atexit = False
        return events

    async def ask(self, command: Command, seat: str = "") -> Reply:
        """Ask the owner that takes this command; the reply is typed, a refusal too."""
        if self._running is None:
            return OwnerStopped(begun=False, reason="the host is closed")
        return await self._running.ask(command, seat)

    def owners(self) -> tuple[OwnerView, ...]:
        """Every owner as the supervisor sees it now."""
        supervisor = self._alive().supervisor
        views = (supervisor.view(address) for address in supervisor.addresses)
        return tuple(view for view in views if view is not None)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What a strict host found broken, oldest first."""
        return violations_of(self._observers)

    @property
    def quarantine(self) -> tuple[Quarantined, ...]:
        """Messages that made a step raise."""
        return tuple(self._alive().supervisor.quarantine)

    @property
    def trace_failed(self) -> str:
        """Why the trace is incomplete; empty while it is whole, or where none is written."""
        trace = self._alive().trace_file
        return trace.failed if trace is not None else ""

    @property
    def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The newest messages that reached nobody."""
        return tuple(self._alive().bus.dead_letters)

    def _alive(self) -> "Running":
        if self._running is None:
            raise HostClosed("the host is not open: use it inside `async with Host.open(...)`")
        return self._running


async def _read(subscription: Subscription) -> AsyncIterator[Published]:
    try:
        async for published in subscription:
            yield published
    finally:
        subscription.close()


__all__ = ["Host", "HostMcp", "HostSettings", "Seat", "Sessions"]
