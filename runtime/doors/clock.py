"""Time: one leaf door."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch (UTC).  May jump, also backwards."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only grow, from an arbitrary start."""
        ...

    async def sleep(self, seconds: float) -> None: ...
