"""The door to time for a turn: the wait before it tries again, and the bound of its time."""

from tenure.messages.turn_effects import KeepTime, TimeUp, Wait, WaitOver
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.context import Context


class Pause:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def wait(self, effect: Wait, context: Context) -> WaitOver:
        await self._clock.sleep(effect.delay_ms / 1000)
        return WaitOver(turn_id=effect.turn_id, call=effect.call)

    async def keep_time(self, effect: KeepTime, context: Context) -> TimeUp:
        await self._clock.sleep(effect.delay_ms / 1000)
        return TimeUp(turn_id=effect.turn_id)
