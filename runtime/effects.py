"""The effect runner of one address: what a step wants done outside, done.

Effects run in order, one at a time; those of a `concurrent` type run beside
them.  The queue belongs to the address, not to the incarnation, so what a dead
owner still had under way is ordered before what its successor begins.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from tenure.messages.base import Effect, Outcome
from tenure.runtime.doors.context import Context

Handler = Callable[[Any, Context], Awaitable[Outcome]]
"""`async (effect, context) -> outcome`; found by the effect's type."""

Handlers = Mapping[type[Effect], Handler]


class Wanted(Protocol):
    """Who wanted an effect: the incarnation of an owner, while it lives."""

    def progress(self, outcome: Outcome) -> None:
        """Deliver an outcome that is not the last."""
        ...

    def end(self, outcome: Outcome) -> None:
        """Deliver the one terminal outcome."""
        ...


class EffectRunner:
    """Runs the effects of one address and sees to it that each ends in one outcome."""

    __slots__ = ("_address", "_beside", "_current", "_handlers", "_queue", "_seat", "_serial")

    def __init__(self, handlers: Handlers, address: str, seat: str) -> None:
        self._handlers = handlers
        self._address = address
        self._seat = seat
        self._queue: deque[tuple[Effect, Wanted]] | None = None
        self._current: tuple[Effect, Wanted] | None = None
        self._serial: asyncio.Task[None] | None = None
        """Works the queue off; None while it is empty."""
        self._beside: dict[asyncio.Task[Outcome], Effect] | None = None

    @property
    def under_way(self) -> tuple[str, ...]:
        """The class names of what runs and waits."""
        running = [self._current[0]] if self._current else []
        waiting = [effect for effect, _ in self._queue or ()]
        beside = list((self._beside or {}).values())
        return tuple(type(effect).__name__ for effect in [*running, *waiting, *beside])

    def start(self, effect: Effect, wanted: Wanted) -> None:
        if effect.concurrent:
            self._start_beside(effect, wanted)
            return
        if self._queue is None:
            self._queue = deque()
        self._queue.append((effect, wanted))
        if self._serial is None:
            self._serial = asyncio.get_running_loop().create_task(self._work_off(self._queue))
            self._serial.add_done_callback(self._torn_down)

    def cancel(self, key: str) -> None:
        """Cancel the concurrent effects with this key; each still gives its outcome."""
        for task, effect in list((self._beside or {}).items()):
            if effect.key == key:
                task.cancel()

    async def ended(self, within_s: float, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Cancel everything and wait until it has ended; False if it has not within the time.

        What waits in the queue never starts.  A running effect on a door is not
        cut in the middle: its work goes to its end, and the next owner starts
        after it.
        """
        self._fail_queue()
        for task in list(self._beside or ()):
            task.cancel()
        running = self._running()
        if not running:
            return True
        timer = asyncio.ensure_future(sleep(within_s))
        try:
            while running and not timer.done():
                done, _ = await asyncio.wait({*running, timer}, return_when=asyncio.FIRST_COMPLETED)
                running -= done
        finally:
            timer.cancel()
        return not running

    async def settled(self) -> None:
        """Wait until nothing runs and nothing waits, without cancelling anything."""
        while running := self._running():
            await asyncio.wait(running)

    def _running(self) -> set[asyncio.Task[Any]]:
        running: set[asyncio.Task[Any]] = set(self._beside or ())
        if self._serial is not None:
            running.add(self._serial)
        return running

    def _start_beside(self, effect: Effect, wanted: Wanted) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(effect, wanted))
        if self._beside is None:
            self._beside = {}
        self._beside[task] = effect

        def end(task: asyncio.Task[Outcome]) -> None:
            # A task that was cancelled before it began runs no `finally` of its
            # own; the callback runs always, so the outcome is given here.
            if self._beside is not None:
                self._beside.pop(task, None)
                if not self._beside:
                    self._beside = None
            wanted.end(_outcome_of(effect, task))

        task.add_done_callback(end)

    async def _work_off(self, queue: deque[tuple[Effect, Wanted]]) -> None:
        while queue:
            self._current = effect, wanted = queue.popleft()
            outcome = await self._run(effect, wanted)
            self._current = None
            wanted.end(outcome)
        self._queue = None
        self._serial = None

    async def _run(self, effect: Effect, wanted: Wanted) -> Outcome:
        try:
            return await self._carry_out(effect, wanted)
        except Exception as error:
            return effect.failed(_say(error))
        except asyncio.CancelledError:
            # Something that the handler waited for was cancelled, and not this task:
            # what waits behind it is to be carried out.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return effect.failed("cancelled")

    def _torn_down(self, task: asyncio.Task[None]) -> None:
        """Called when the queue's task is over, also when it was cancelled before it began."""
        if self._serial is not task:
            return
        self._serial = None
        if self._current is not None:
            (effect, wanted), self._current = self._current, None
            wanted.end(effect.failed("cancelled"))
        self._fail_queue()
        self._queue = None

    def _fail_queue(self) -> None:
        while self._queue:
            effect, wanted = self._queue.popleft()
            wanted.end(effect.failed("its owner ended before it began"))

    async def _carry_out(self, effect: Effect, wanted: Wanted) -> Outcome:
        context = Context(owner=self._address, seat=self._seat, progress=wanted.progress)
        outcome = await self._handlers[type(effect)](effect, context)
        if not isinstance(outcome, Outcome):  # guard: BUS-3
            return effect.failed(f"the handler gave a {type(outcome).__name__}")
        return outcome


def _outcome_of(effect: Effect, task: asyncio.Task[Outcome]) -> Outcome:
    """The one terminal outcome of a concurrent effect, whatever became of its task."""
    if task.cancelled():  # guard: BUS-3
        return effect.failed("cancelled")
    error = task.exception()
    if error is not None:
        return effect.failed(_say(error))
    return task.result()


def _say(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
