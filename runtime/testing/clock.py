"""A clock that a test moves."""

import asyncio
import heapq
from itertools import count

START_MS = 1_700_000_000_000


class ManualClock:
    """Time stands still until `advance` or `set_now_ms`.  For one event loop at a time."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = float(now_ms)
        self._monotonic_s = 0.0
        self._numbers = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic_s(self) -> float:
        return self._monotonic_s

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic_s + seconds, next(self._numbers), wake))
        await wake

    def set_now_ms(self, now_ms: int) -> None:
        """Set the wall clock, also back; nobody wakes, and the monotonic clock does not move."""
        self._now_ms = float(now_ms)

    def advance(self, seconds: float) -> None:
        """Move both clocks and wake whoever slept until then, in the order of their deadlines.

        The sleepers run when the loop next does: one that sleeps again sleeps
        from the new time.
        """
        if seconds < 0:
            raise ValueError("a monotonic clock does not go back")
        until = self._monotonic_s + seconds
        self._now_ms += seconds * 1000
        self._monotonic_s = until
        while self._sleepers and self._sleepers[0][0] <= until:
            _, _, wake = heapq.heappop(self._sleepers)
            if not wake.done():
                wake.set_result(None)

    def next_wake_s(self) -> float | None:
        """Seconds from now until the first sleeper wakes; None where nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] - self._monotonic_s if self._sleepers else None
