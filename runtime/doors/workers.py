"""Where blocking work runs: one leaf door."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS_MAX = 16

_log = logging.getLogger("tenure.workers")


class Workers(Protocol):
    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking `work` away from the event loop and give back its result or exception.

        A cancelled caller does not cancel `work`: it runs to its end, and only
        its result is dropped.  An exception that nobody waits for is logged.
        Raises `RuntimeError` after `close`.
        """
        ...

    async def close(self) -> None:
        """Take no more work, and wait until all that was taken has ended."""
        ...


class ThreadWorkers:
    """Threads of this process, started on demand, `threads_max` at most; the rest waits."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="tenure-worker")

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        # A future of the loop, settled by the thread, and not the pool's own:
        # that one would be cancelled with its caller while the work still waits.
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[T] = loop.create_future()
        self._pool.submit(_do, loop, settled, work, args, kwargs)
        return await settled

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        closed: asyncio.Future[None] = loop.create_future()
        # The pool's end is waited for in a thread outside of the pool.
        threading.Thread(
            target=_do,
            args=(loop, closed, self._pool.shutdown, (), {}),
            name="tenure-workers-close",
        ).start()
        await closed


def _do(
    loop: asyncio.AbstractEventLoop,
    settled: asyncio.Future[Any],
    work: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    result: Any = None
    error: BaseException | None = None
    try:
        result = work(*args, **kwargs)
    except StopIteration as raised:
        # A future refuses this one, and its caller would wait for ever.
        error = RuntimeError("the work raised StopIteration")
        error.__cause__ = raised
    except BaseException as raised:
        error = raised
    try:
        loop.call_soon_threadsafe(_settle, settled, result, error)
    except RuntimeError:  # the loop is closed: nobody waits any more
        if error is not None:
            log_abandoned(error)
    finally:
        error = None  # the traceback holds this frame


def _settle(settled: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        if not settled.done():
            settled.set_result(result)
    elif not settled.done():
        settled.set_exception(error)
    else:
        log_abandoned(error)


def log_abandoned(error: BaseException) -> None:
    """Say that work failed whose caller was cancelled."""
    _log.error("work failed after its caller was cancelled: %r", error, exc_info=error)
