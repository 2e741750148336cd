"""Where blocking work runs: one leaf door."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS_MAX = 16
IDLE_THREAD_KEPT_S = 0.2

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
    """Threads of this process, started on demand, `threads_max` at most; the rest waits.

    The pool's own way from a call to its thread costs some 30 µs, which every
    durable append would pay.  So a thread that the pool gives stays for a while
    and serves a queue of ours; the pool bounds the threads and ends them.
    """

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="tenure-worker")
        self._threads_max = threads_max
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        """Threads that serve the queue."""
        self._idle = 0
        """Those of them that wait for a job which nobody has sent yet."""
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        # A future of the loop, settled by the thread, and not the pool's own:
        # that one would be cancelled with its caller while the work still waits.
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[T] = loop.create_future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the workers are closed")
            if self._idle:
                self._idle -= 1
            elif self._threads < self._threads_max:
                self._pool.submit(self._serve)
                self._threads += 1
            self._jobs.put(_Job(loop, settled, work, args, kwargs))
        return await settled

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._jobs.put(None)
        loop = asyncio.get_running_loop()
        closed: asyncio.Future[None] = loop.create_future()
        # The pool's end is waited for in a thread outside of the pool.
        job = _Job(loop, closed, self._pool.shutdown, (), {})
        threading.Thread(target=job.alone, name="tenure-workers-close").start()
        await closed

    def _serve(self) -> None:
        done: _Job | None = None
        while True:
            # Looking and reporting idle is one act, as is sending and counting on
            # an idle thread: never are more threads counted on than wait.
            job: _Job | None
            with self._lock:
                idle = self._jobs.empty()
                if idle:
                    self._idle += 1
                else:
                    job = self._jobs.get_nowait()
            # Only now: whoever gets the result and sends more finds this thread idle.
            if done is not None:
                done.settle()
                done = None  # what it refers to must not live as long as the thread
            if idle:
                job = self._wait()
            if job is None:
                return
            job.work()
            done = job
            del job

    def _wait(self) -> "_Job | None":
        """The next job, when it comes; None where the thread shall end."""
        while True:
            try:
                return self._jobs.get(timeout=IDLE_THREAD_KEPT_S)
            except Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._idle = max(0, self._idle - 1)
                        self._threads -= 1
                        return None


class _Job:
    """Work on its way to a thread, and where its result is awaited."""

    __slots__ = ("_args", "_error", "_kwargs", "_loop", "_result", "_settled", "_work")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settled: asyncio.Future[Any],
        work: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._loop = loop
        self._settled = settled
        self._work = work
        self._args = args
        self._kwargs = kwargs
        self._result: Any = None
        self._error: BaseException | None = None

    def work(self) -> None:
        try:
            self._result = self._work(*self._args, **self._kwargs)
        except StopIteration as raised:
            # A future refuses this one, and its caller would wait for ever.
            self._error = RuntimeError("the work raised StopIteration")
            self._error.__cause__ = raised
        except BaseException as raised:
            self._error = raised

    def alone(self) -> None:
        """In a thread of its own."""
        self.work()
        self.settle()

    def settle(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._give)
        except RuntimeError:  # the loop is closed: nobody waits any more
            if self._error is not None:
                log_abandoned(self._error)

    def _give(self) -> None:
        error, self._error = self._error, None  # its traceback refers to this job
        if error is None:
            if not self._settled.done():
                self._settled.set_result(self._result)
        elif not self._settled.done():
            self._settled.set_exception(error)
        else:
            log_abandoned(error)


def log_abandoned(error: BaseException) -> None:
    """Say that work failed whose caller was cancelled."""
    _log.error("work failed after its caller was cancelled: %r", error, exc_info=error)
