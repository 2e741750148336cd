"""A simulated world: hosts, disks and time on one thread, in an order that a seed chooses.

    with simulate(seed=7) as world:
        host = world.host(model=scripted(...))
        seat = world.run(host.seat())
        events = world.run(host.prompt("main", "hello"))

Owners, bus, supervisor and doors are those of production; only the leaves are simulated,
and the loop runs what is ready in an order that the seed chooses, the same each time.
"""

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from itertools import count
from typing import Any, TypeVar, cast

from tenure.messages.base import Command, Event, Reply
from tenure.messages.models import Model
from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.approver import Approve
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.wiring import IndexWishes
from tenure.runtime.doors.tools.door import AnyTool
from tenure.runtime.host import Host
from tenure.runtime.observer import Observer
from tenure.runtime.seat import Seat
from tenure.runtime.testing.choices import Chooser, ReplayedChooser, SeededChooser
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.crashes import Crashes
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.disk_leaves import disk_leaves
from tenure.runtime.testing.entropy import SeededEntropy
from tenure.runtime.testing.faults import DiskCall, Fate, SeededFate
from tenure.runtime.testing.greenwork import GreenWorkers, Switcher
from tenure.runtime.testing.loop import PROCESS, SimClock, SimLoop, Stuck
from tenure.runtime.testing.process import SimProcess
from tenure.runtime.testing.watch import Watcher, Watchers
from tenure.runtime.testing.web_faults import WebRequest
from tenure.runtime.testing.web_net import MemoryWebNet

T = TypeVar("T")
E = TypeVar("E", bound=Event)

ROOT = "/work"
"""The workspace of a world's hosts, unless a test names another."""

DRAIN_MAX = 1
"""One message at a time, so that every order of messages can happen."""


class ProcessEnded(Exception):
    """What you wait for was in a process that is dead now."""


class SimHost:
    """One host in a process of its own.

    Its methods give awaitables that run in that process; when it is killed,
    they raise `ProcessEnded`.
    """

    def __init__(
        self, world: "World", name: str, open_host: Callable[[Leaves, Observer], Host]
    ) -> None:
        self.name = name
        self._world = world
        self._open_host = open_host
        self.process = world.start_process()
        self.leaves = world.leaves_of(self.process, name)
        observer = world.watchers.of(name, self.process.name)
        self.run_name = observer.host
        """Names this run of the host to the watchers."""
        self.host = open_host(self.leaves, observer)
        self._entering: asyncio.Task[Host] | None = None

    @property
    def alive(self) -> bool:
        return self.process.state != "ended"

    async def start(self) -> None:
        """Start the owners; every other method does so when it is first called."""
        if self._entering is None:
            entering = self._world.inside(self.process, self.host.__aenter__())
            self._entering = self._world.loop.create_task(entering)
        await asyncio.shield(self._entering)

    async def seat(self, name: str = "main", session: str | None = None) -> Seat:
        await self.start()
        return await self._world.inside(self.process, self.host.seat(name, session))

    async def ask(self, command: Command, seat: str = "main") -> Reply:
        """Ask as a client of this host would.  Commands between owners are refused."""
        await self.start()
        return await self._asked(self.host.ask(command, seat), command, seat)

    async def ask_owner(self, address: str, command: Command) -> Reply:
        """Ask one owner, whatever it takes, past what the host lets through."""
        await self.start()
        bus = self.host._alive().bus
        return await self._asked(bus.ask(address, command), command, address)

    async def _asked(self, work: Coroutine[Any, Any, Reply], command: Command, seat: str) -> Reply:
        watchers, number = self._world.watchers, next(self._world.asks)
        watchers.tell("asked", self.run_name, number, seat, command)
        try:
            reply = await self._world.inside(self.process, work)
        except BaseException:
            watchers.tell("abandoned", self.run_name, number)
            raise
        watchers.tell("answered", self.run_name, number, reply)
        return reply

    async def prompt(self, text: str, seat: str = "main", **wishes: Any) -> list[Event]:
        """Run one turn to its end and give its events."""
        await self.start()

        async def read() -> list[Event]:
            place = self.host.seats[seat]
            return [event async for event in place.prompt(text, **wishes)]

        return await self._world.inside(self.process, read())

    async def close(self) -> None:
        """End the process in order."""
        if self._entering is not None and self.alive:
            await asyncio.shield(self._entering)
            await self._world.inside(self.process, self.host.close())
            # What was ready before the end runs before it, as on every loop.
            while self._world.loop.has_work(self.process):  # noqa: ASYNC110
                await asyncio.sleep(0)
            self._world.watchers.tell("host_closed", self.run_name)
        self._world.end(self.process)

    def kill(self) -> None:
        """As kill -9: nothing of it runs on; its locks are free; what it wrote stays."""
        self._world.kill(self.process)

    def stop(self) -> None:
        """As SIGSTOP."""
        self._world.disk.processes.stop(self.process.name)

    def resume(self) -> None:
        """As SIGCONT."""
        self._world.disk.processes.resume(self.process.name)
        self._world.loop.release_stopped()

    def again(self) -> "SimHost":
        """The same program started anew, in a new process on the same disk."""
        return SimHost(self._world, self.name, self._open_host)


class World:
    """Everything of one run.  Made by `simulate`."""

    def __init__(self, seed: int | str, chooser: Chooser) -> None:
        self.seed = seed
        self.chooser = chooser
        self.loop = SimLoop(chooser)
        self.clock = SimClock(self.loop)
        self.disk = MemoryDisk(cast(ManualClock, self.clock))
        self._switch = Switcher(chooser)
        self.disk.on_call = self._on_call
        self.disk.put_folder(ROOT)
        self.web.on_request = self._on_request
        self.web.kill = self._kill_by_name
        self.asks = count(1)
        self.crashes = Crashes()
        """For crashes of owners on purpose."""
        self.chance = random.Random(f"world/{seed}")
        """For what a workload decides; the order of work has a randomness of its own."""
        self.watchers = Watchers(self.disk)
        self.hosts: list[SimHost] = []
        self._processes: list[SimProcess] = []
        self._dead: set[SimProcess] = set()
        self._waiting: dict[SimProcess, set[asyncio.Future[Any]]] = {}

    @property
    def web(self) -> MemoryWebNet:
        """The servers that hosts can reach: `world.web.serve("https://x.example", server)`."""
        return self.disk.web

    # --- hosts -------------------------------------------------------------------------------

    def host(
        self,
        name: str = "a",
        *,
        root: str = ROOT,
        model: str | Model | None = None,
        approve: Approve | None = None,
        tools: Sequence[AnyTool] = (),
        settings: Mapping[str, object] | None = None,
        socket: bool = False,
        index: IndexWishes | None = None,
    ) -> SimHost:
        """A host in a new process; see `Host.open` for the arguments."""

        def open_host(leaves: Leaves, observer: Observer) -> Host:
            return Host.open(
                root,
                model=model,
                approve=approve,
                tools=tools,
                settings=settings,
                leaves=leaves,
                observers=(observer,),
                drain_max=DRAIN_MAX,
                socket=socket,
                index=index,
            )

        host = SimHost(self, name, open_host)
        self.hosts.append(host)
        return host

    def start_process(self) -> SimProcess:
        process = SimProcess(self.disk.processes.start(), self.disk.processes)
        self._processes.append(process)
        self._waiting[process] = set()
        return process

    def leaves_of(self, process: SimProcess, name: str) -> Leaves:
        """A world for one process: its own randomness, the disk of all."""
        workers = GreenWorkers(process, self.kill)
        entropy = SeededEntropy(f"{self.seed}/{name}/{process.name.pid}")
        return disk_leaves(self.disk, process.name, self.clock, entropy, workers)

    def kill(self, process: SimProcess) -> None:
        """End a process at once; whoever waits for it is told."""
        if process not in self._dead:
            self.watchers.tell("process_died", process.name)
        self.end(process)

    def end(self, process: SimProcess) -> None:
        """A process is over; what still waits for it is told."""
        self._dead.add(process)
        self.disk.processes.kill(process.name)
        waiting, self._waiting[process] = self._waiting[process], set()
        for future in waiting:
            if not future.done():
                future.set_exception(ProcessEnded(f"process {process.name.pid} has ended"))

    def power_loss(self, fate: Fate | None = None) -> None:
        """Every process dies, and what was not synced is kept, lost or torn."""
        for process in self._processes:
            self.kill(process)
        self.disk.crash(fate if fate is not None else SeededFate(self.chance))

    def _on_call(self, call: DiskCall) -> None:
        """Others may go first; watchers see the call at the moment when it is made."""
        state = self.disk.processes.state
        # The dead are not switched away from: they would never come back to say so.
        if state(call.process) != "ended":
            self._switch(call)
        if state(call.process) != "ended":
            self.watchers.tell("disk_called", call)

    def _on_request(self, request: WebRequest) -> None:
        self.watchers.tell("web_asked", request)

    def _kill_by_name(self, name: ProcessName) -> None:
        for process in self._processes:
            if process.name == name:
                self.kill(process)

    # --- running -----------------------------------------------------------------------------

    def run(self, work: "Coroutine[Any, Any, T] | asyncio.Future[T]") -> T:
        """Run `work`, and with it everything that is ready, until it has its result.

        Raises `Stuck` where it waits for what never comes.
        """
        return self.loop.run_until_complete(work)

    def settle(self, within_s: float = 60.0) -> None:
        """Run until nothing is ready any more, timers included, for at most this virtual time."""
        self.loop.run_quiet(self.loop.time() + within_s)

    def tell(self, host: SimHost, command: Command, seat: str = "main") -> "asyncio.Task[Reply]":
        """Send a command without waiting; `run` the task to have the reply."""
        return self.loop.create_task(host.ask(command, seat))

    def ask(self, host: SimHost, command: Command, seat: str = "main") -> Reply:
        """Send a command and run until it is answered."""
        return self.run(host.ask(command, seat))

    def run_until(self, host: SimHost, event: type[E], seat: str | None = None) -> E:
        """Run until the host publishes an event of this type, from now on."""

        async def wait() -> E:
            await host.start()
            async for published in host.host.events():
                if isinstance(published.event, event) and seat in (None, published.seat):
                    return published.event
            raise Stuck(f"the host ended before a {event.__name__}")

        return self.run(self.inside(host.process, wait()))

    async def inside(self, process: SimProcess, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in a process and give its result, or `ProcessEnded`."""
        if process.state == "ended":
            work.close()
            raise ProcessEnded(f"process {process.name.pid} is dead")
        context = copy_context()
        context.run(PROCESS.set, process)
        task = self.loop.create_task(work, context=context)
        process.graveyard.append(task)
        done: asyncio.Future[T] = self.loop.create_future()
        self._waiting[process].add(done)

        def give(task: asyncio.Task[T]) -> None:
            if done.done():
                return
            if task.cancelled():
                done.cancel()
            elif (error := task.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(task.result())

        task.add_done_callback(give)
        try:
            return await done
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._waiting[process].discard(done)

    # --- the end -----------------------------------------------------------------------------

    def close(self) -> None:
        """End every process and forget the loop; nothing of the dead runs any more."""
        self.crashes.undo()
        self.disk.on_call = None
        for process in self._processes:
            self.disk.processes.kill(process.name)
        # What was suspended is ended here and now, not whenever the collector of
        # garbage comes by: all of it is dead, so whatever it still says is nobody's.
        for task in asyncio.all_tasks(self.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(BaseException):
                cast(Any, task.get_coro()).close()
        for process in self._processes:
            process.bury()
        self.loop.close()


@contextmanager
def simulate(
    seed: int | str = 0,
    *,
    choices: Sequence[int] | None = None,
    chooser: Chooser | None = None,
    watchers: Sequence[Watcher] = (),
) -> Iterator[World]:
    """A world whose order of work follows from `seed`, or from the `choices` of an earlier run.

    Args:
        chooser: chooses in place of both.
        watchers: observers of every message, event, effect and call to the disk;
            what they find is raised when the world is left.
    """
    if chooser is None:
        chooser = SeededChooser(seed) if choices is None else ReplayedChooser(choices)
    world = World(seed, chooser)
    world.watchers.add(*watchers)
    # What goes wrong here goes wrong on purpose; who wants to know has watchers.
    quiet = [logging.getLogger(name) for name in ("asyncio", "tenure")]
    levels = [logger.level for logger in quiet]
    for logger in quiet:
        logger.setLevel(logging.CRITICAL)
    collecting = gc.isenabled()
    # Clean-up code of dead processes must run at no moment that the seed does not know.
    gc.disable()
    try:
        yield world
        world.watchers.finish()
    finally:
        world.close()
        if collecting:
            gc.enable()
        for logger, level in zip(quiet, levels, strict=True):
            logger.setLevel(level)
