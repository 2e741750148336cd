"""An event loop with virtual time, whose order of work somebody chooses.

Everything that is ready runs in an order that a `Chooser` picks, and time moves
only when the chooser, or the lack of work, says so.  What runs carries its
simulated process in its context, so a process can be killed or stopped: its
work is dropped, or put aside.
"""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, NoReturn

from tenure.runtime.testing.choices import Chooser
from tenure.runtime.testing.process import SimProcess

PROCESS: ContextVar[SimProcess | None] = ContextVar("process", default=None)
"""The simulated process that runs; None for the test itself."""

SOON_S = 1.0
TIME_AHEAD_ONE_IN = 40
"""How often a timer that is due soon fires although there is work: work may be slow."""
LONG_AHEAD_ONE_IN = 500
"""How often of these a timer fires that is not due soon: everything hangs until a deadline."""

DEFER_ONE_IN = 40
"""How often something that is ready is left for later although others go on."""
DEFERRED_STEPS_MAX = 64

START_MS = 1_700_000_000_000


class Stuck(Exception):
    """Nothing can run and nothing will: somebody waits for what never comes."""


class TooLong(Exception):
    """The run took more steps than it may: something goes round in a circle."""


class SimTask(asyncio.Task[Any]):
    """A task whose hash is not its address, so that a set of tasks has one order in every run."""

    __slots__ = ("_number",)

    def __init__(self, coro: Any, *, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class SimFuture(asyncio.Future[Any]):
    """As `SimTask`."""

    __slots__ = ("_number",)

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class SimHandle(asyncio.Handle):
    """A handle that asks no loop whether it is being debugged: there are very many."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class SimLoop(asyncio.BaseEventLoop):
    """Runs one handle at a time.  Index 0 is always the oldest, so all zeros is the usual order."""

    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool

    def __init__(self, chooser: Chooser, steps_max: int = 2_000_000) -> None:
        super().__init__()
        self._ready: list[asyncio.Handle] = []
        self._chooser = chooser
        self._now = 0.0
        self._aside: list[asyncio.Handle] = []
        self._deferred: list[tuple[int, int, asyncio.Handle]] = []
        """Until which step, a number, and what."""
        self._steps_max = steps_max
        self._until: float | None = None
        self.steps = 0
        self.wall_offset_ms = 0
        self._numbers = count(1)
        self.set_task_factory(self._new_task)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = SimHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _new_task(self, _: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> SimTask:
        return SimTask(coro, number=next(self._numbers), loop=self, **options)

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(next(self._numbers), self)

    def time(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        return START_MS + int(self._now * 1000) + self.wall_offset_ms

    def release_stopped(self) -> None:
        """What was put aside for stopped processes may run again, where they do."""
        self._ready.extend(self._aside)
        self._aside.clear()

    def close(self) -> None:
        """What the dead still schedule is dropped."""
        for waiting in (self._ready, self._scheduled, self._aside, self._deferred):
            waiting.clear()
        super().close()

    def has_work(self, process: SimProcess) -> bool:
        """Whether something of a process is ready to run."""
        ready = (*self._ready, *(handle for _, _, handle in self._deferred))
        return any(_process_of(handle) is process for handle in ready)

    def run_quiet(self, until: float) -> None:
        """Run until nothing is left to run, or virtual time would pass `until`."""
        self._until = until
        try:
            self.run_forever()
        finally:
            self._until = None

    def _run_once(self) -> None:
        """Run one handle, or let time pass."""
        self.steps += 1
        if self.steps > self._steps_max:
            raise TooLong(f"more than {self._steps_max} steps")
        ready = self._ready
        deferred = self._deferred
        while deferred and (deferred[0][0] <= self.steps or not ready):
            ready.append(heapq.heappop(deferred)[2])
        if self._until is not None and not ready and self._nothing_before(self._until):
            self.stop()
            return
        if not ready or (self._scheduled and self._time_runs_ahead()):
            self._advance()
            if not ready:
                return
        if len(ready) == 1:
            handle = ready.pop()
        else:
            chooser = self._chooser
            handle = ready.pop(chooser.pick(len(ready)))
            if chooser.one_in(DEFER_ONE_IN):
                until = self.steps + 1 + chooser.pick(DEFERRED_STEPS_MAX)
                heapq.heappush(deferred, (until, self.steps, handle))
                return
        if not handle._cancelled and self._lives(handle):
            handle._run()

    def _time_runs_ahead(self) -> bool:
        if not self._chooser.one_in(TIME_AHEAD_ONE_IN):
            return False
        timer = self._next_timer()
        if timer is None:
            return False
        if timer.when() - self._now <= SOON_S:
            return True
        # A test that waits long gives up only when nothing moves any more.
        return _process_of(timer) is not None and self._chooser.one_in(LONG_AHEAD_ONE_IN)

    def _next_timer(self) -> asyncio.TimerHandle | None:
        """The next timer that will fire; those that never will are forgotten."""
        scheduled = self._scheduled
        while scheduled and (scheduled[0]._cancelled or _is_dead(scheduled[0])):
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        return scheduled[0] if scheduled else None

    def _nothing_before(self, until: float) -> bool:
        timer = self._next_timer()
        return timer is None or timer.when() > until

    def _advance(self) -> None:
        """To the next timer of a living process."""
        timer = self._next_timer()
        if timer is not None:
            heapq.heappop(self._scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            self._now = max(self._now, timer.when())
            self._ready.append(timer)
        elif not self._ready and not self._stopping:
            aside = "only stopped processes have work"
            raise Stuck(aside if self._aside else "nothing is ready and no timer is set")

    def _lives(self, handle: asyncio.Handle) -> bool:
        process = _process_of(handle)
        if process is None:
            return True
        state = process.state
        if state == "running":
            return True
        if state == "stopped":
            self._aside.append(handle)
        else:
            process.graveyard.append(handle)
        return False

    def _check_closed(self) -> None:
        """A dead process may still call in; nothing runs any more."""

    # --- what a simulated world does not have -----------------------------------------------

    def _write_to_self(self) -> None:
        """Only other threads need waking."""

    def _process_events(self, event_list: Any) -> None:
        """There are no sockets."""

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Workers are greenlets of the one thread that there is."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("a simulated world has one thread; go through leaves.workers")


def _process_of(handle: asyncio.Handle) -> SimProcess | None:
    return handle._context.get(PROCESS)  # type: ignore[attr-defined,no-any-return]


def _is_dead(handle: asyncio.Handle) -> bool:
    process = _process_of(handle)
    return process is not None and process.state == "ended"


class SimClock:
    """The loop's virtual time as a clock."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return self._loop.wall_ms()

    def monotonic_s(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        over = self._loop.create_future()
        timer = self._loop.call_later(max(seconds, 0.0), _end, over)
        try:
            await over
        finally:
            timer.cancel()


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
