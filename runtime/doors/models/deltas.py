"""What a model says, passed on in batches while it speaks."""

import asyncio
from collections.abc import Callable

from tenure.messages.base import Outcome
from tenure.messages.tokens import TurnId
from tenure.messages.turn_effects import ModelDelta
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.models.answer import Piece, PieceKind

BATCH_PIECES = 16
BATCH_S = 0.016


class Deltas:
    """Joins pieces into one delta for every 16 of them or 16 ms; the first goes at once.

    A piece never waits for the next one: `keep_time` sends what is left when the
    model falls silent.
    """

    def __init__(
        self, *, turn_id: TurnId, call: int, clock: Clock, progress: Callable[[Outcome], None]
    ) -> None:
        self._turn_id = turn_id
        self._call = call
        self._clock = clock
        self._progress = progress
        self._pieces: list[str] = []
        self._kind: PieceKind = "text"
        self._since_s = 0.0
        self._before_first = True
        self._waiting = asyncio.Event()

    def take(self, piece: Piece) -> int:
        """Add a piece; how many deltas went out."""
        kind, text = piece
        sent = self.flush() if kind != self._kind else 0
        self._kind = kind
        now_s = self._clock.monotonic_s()
        if not self._pieces:
            self._since_s = now_s
            self._waiting.set()
        self._pieces.append(text)
        full = len(self._pieces) >= BATCH_PIECES or now_s - self._since_s >= BATCH_S
        if full or self._before_first:
            self._before_first = False
            sent += self.flush()
        return sent

    def flush(self) -> int:
        """Send what waits; 1 if there was anything."""
        if not self._pieces:
            return 0
        text = "".join(self._pieces)
        self._pieces.clear()
        self._waiting.clear()
        self._progress(
            ModelDelta(turn_id=self._turn_id, call=self._call, kind=self._kind, text=text)
        )
        return 1

    async def keep_time(self) -> None:
        """Runs beside the model and sends each batch when its time is over."""
        while True:
            await self._waiting.wait()
            left_s = self._since_s + BATCH_S - self._clock.monotonic_s()
            if left_s > 0:
                await self._clock.sleep(left_s)
            else:
                self.flush()
