"""The door to time for a turn that waits before it tries again."""

from tenure.messages.turn_effects import Wait, WaitOver
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.context import Context


class Pause:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def wait(self, effect: Wait, context: Context) -> WaitOver:
        await self._clock.sleep(effect.delay_ms / 1000)
        return WaitOver(turn_id=effect.turn_id, call=effect.call)
