"""Blocking work that others can interrupt at every call to the disk.

The doors' blocking code is plain functions.  In a simulated world each runs in
a greenlet, and every call to the simulated disk may give the turn away, so two
processes meet in the middle of each other's work, as they do on a real machine.
"""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from greenlet import getcurrent, greenlet

from tenure.runtime.doors.workers import log_abandoned
from tenure.runtime.testing.choices import Chooser
from tenure.runtime.testing.faults import DiskCall, ProcessKilled
from tenure.runtime.testing.process import SimProcess

P = ParamSpec("P")
T = TypeVar("T")

SWITCH_ONE_IN = 3
"""How often a call to the disk lets others run first."""


class GreenWorkers:
    """The workers of one simulated process."""

    def __init__(self, process: SimProcess, killed: Callable[[SimProcess], None]) -> None:
        self._process = process
        self._killed = killed
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise RuntimeError("the workers are closed")
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[T] = loop.create_future()

        def body() -> None:
            try:
                result = work(*args, **kwargs)
            except ProcessKilled:
                self._killed(self._process)
            except Exception as error:
                if settled.cancelled():
                    log_abandoned(error)
                else:
                    settled.set_exception(error)
            else:
                if not settled.cancelled():
                    settled.set_result(result)

        worker = greenlet(body)
        # What the work does on the loop belongs to its process, too.
        worker.gr_context = copy_context()
        self._process.workers.add(worker)

        def resume() -> None:
            worker.switch()
            if worker.dead:
                self._process.workers.discard(worker)
            else:
                loop.call_soon(resume)

        loop.call_soon(resume)
        return await settled

    async def close(self) -> None:
        self._closed = True


class Switcher:
    """For `MemoryDisk.on_call`: now and then a call to the disk lets others run first."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser

    def __call__(self, call: DiskCall) -> None:
        hub = getcurrent().parent
        if hub is not None and self._chooser.one_in(SWITCH_ONE_IN):
            hub.switch()
