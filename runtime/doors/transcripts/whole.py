"""Blocking work whose end is always awaited: a write under way is never left alone."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio

from tenure.runtime.doors.workers import Workers

T = TypeVar("T")
R = TypeVar("R")


async def run_whole(workers: Workers, work: Callable[[], T], then: Callable[[T], R]) -> R:
    """Run blocking work in a worker, and `then` with its result on the event loop.

    A cancelled caller waits for the end of the work too: `then` is called in any
    case, and the cancel takes effect behind it.  What the work raises is raised.
    """
    running = _Running(work)
    try:
        result = await workers.run(running)
    except asyncio.CancelledError:
        for late in await running.ended():
            then(late)
        raise
    return then(result)


class _Running(Generic[T]):
    """The work, and whether it has ended: known without the future that a cancel takes away."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._ended = False
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def __call__(self) -> T:
        """In the worker."""
        try:
            result = self._work()
            self._results.append(result)
            return result
        finally:
            self._ended = True
            # Set before it is looked at, as the waiter is on the other side: one
            # of the two always sees the other.
            waiter = self._waiter
            if waiter is not None:
                loop, event = waiter
                loop.call_soon_threadsafe(event.set)

    async def ended(self) -> list[T]:
        """Wait for the end, whoever cancels; the result, or nothing where it raised."""
        event = asyncio.Event()
        self._waiter = (asyncio.get_running_loop(), event)
        with anyio.CancelScope(shield=True):
            while not self._ended:
                try:
                    await event.wait()
                except asyncio.CancelledError:
                    continue
        return self._results
