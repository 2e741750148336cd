"""Blocking work without threads."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tenure.runtime.doors.workers import log_abandoned

P = ParamSpec("P")
T = TypeVar("T")


class InlineWorkers:
    """Runs the work at once, in the caller's thread, then lets others run before it answers.

    A caller that is cancelled meanwhile loses the result and not the work, as
    with threads.
    """

    def __init__(self) -> None:
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closed:
            raise RuntimeError("the workers are closed")
        try:
            result = work(*args, **kwargs)
        except Exception as error:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                log_abandoned(error)
                raise
            if isinstance(error, StopIteration):
                raise RuntimeError("the work raised StopIteration") from error
            raise
        await asyncio.sleep(0)
        return result

    async def close(self) -> None:
        self._closed = True
