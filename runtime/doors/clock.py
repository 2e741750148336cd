"""Time: one leaf door."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch (UTC).  May jump, also backwards."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only grow, from an arbitrary start."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clocks of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # a process that runs no loop need not load it

        await asyncio.sleep(seconds)


class BlockingClock(SystemClock):
    """The same for a process without an event loop: nobody else waits there."""

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251
