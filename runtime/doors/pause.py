"""The door to time: a turn's wait before it tries again and its bound, and a request's end."""

from tenure.messages.approval import AwaitExpiry, ExpiryReached
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

    async def expire(self, effect: AwaitExpiry, context: Context) -> ExpiryReached:
        await self._clock.sleep(effect.delay_ms / 1000)
        return ExpiryReached(request_id=effect.request_id)
