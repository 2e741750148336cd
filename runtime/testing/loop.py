"""An event loop with virtual time, whose order of work somebody chooses.

Everything that is ready runs in an order that a `Chooser` picks, and time moves
only when the chooser, or the lack of work, says so.  What runs carries its
simulated process in its context, so a process can be killed or stopped: its
work is dropped, or put aside.
"""

import asyncio
import heapq
from contextvars import ContextVar
from typing import Any, NoReturn

from tenure.runtime.testing.choices import Chooser
from tenure.runtime.testing.process import SimProcess

PROCESS: ContextVar[SimProcess | None] = ContextVar("process", default=None)
"""The simulated process that runs; None for the test itself."""

SOON_S = 1.0
TIME_AHEAD_ONE_IN = 40
"""How often a timer that is due soon fires although there is work: work may be slow."""
LONG_AHEAD_ONE_IN = 20_000
"""The same for a timer that is not due soon: everything hangs until a deadline passes."""

START_MS = 1_700_000_000_000


class Stuck(Exception):
    """Nothing can run and nothing will: somebody waits for what never comes."""


class TooLong(Exception):
    """The run took more steps than it may: something goes round in a circle."""


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
        self._steps_max = steps_max
        self._until: float | None = None
        self.steps = 0
        self.wall_offset_ms = 0

    def time(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        return START_MS + int(self._now * 1000) + self.wall_offset_ms

    def release_stopped(self) -> None:
        """What was put aside for stopped processes may run again, where they do."""
        self._ready.extend(self._aside)
        self._aside.clear()

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
        if self._until is not None and not ready and self._nothing_before(self._until):
            self.stop()
            return
        if not ready or (self._scheduled and self._time_runs_ahead()):
            self._advance()
            if not ready:
                return
        place = self._chooser.pick(len(ready)) if len(ready) > 1 else 0
        handle = ready.pop(place)
        if handle._cancelled or not self._lives(handle):
            return
        handle._run()

    def _time_runs_ahead(self) -> bool:
        soon = self._scheduled[0].when() - self._now <= SOON_S
        return self._chooser.one_in(TIME_AHEAD_ONE_IN if soon else LONG_AHEAD_ONE_IN)

    def _nothing_before(self, until: float) -> bool:
        return all(timer._cancelled or timer.when() > until for timer in self._scheduled)

    def _advance(self) -> None:
        """To the next timer of a living process, and everything that is due then."""
        while self._scheduled:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer._cancelled or _is_dead(timer):
                continue
            self._now = max(self._now, timer.when())
            self._ready.append(timer)
            return
        if not self._ready and not self._aside and not self._stopping:
            raise Stuck("nothing is ready and no timer is set")
        if not self._ready and self._aside:
            raise Stuck("only stopped processes have work")

    def _lives(self, handle: asyncio.Handle) -> bool:
        process = _process_of(handle)
        if process is None or process.state == "running":
            return True
        if process.state == "stopped":
            self._aside.append(handle)
        else:
            process.graveyard.append(handle)
        return False

    # --- what a simulated world does not have -----------------------------------------------

    def _write_to_self(self) -> None:
        """Only other threads need waking."""

    def _process_events(self, event_list: Any) -> None:
        """There are no sockets."""

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("a simulated world has one thread")

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
        await asyncio.sleep(seconds)
