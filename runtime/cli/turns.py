"""One turn as the command line runs it: printed, approved, and stopped by Ctrl-C."""

import asyncio
from collections.abc import AsyncIterator

from tenure.messages.base import Event, Refusal
from tenure.messages.limits import Overrides
from tenure.messages.tokens import TurnId
from tenure.messages.turn import TurnEnded, TurnNotRunning
from tenure.runtime.cli.approving import Desk
from tenure.runtime.cli.screen import Screen
from tenure.runtime.seat import Seat

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REFUSED = 3
EXIT_STOPPED = 130


class PromptedTurn:
    """One prompt of a seat.  `stop` may be called at any time, also before it has an id."""

    def __init__(
        self, seat: Seat, screen: Screen, desk: Desk, overrides: Overrides, model: str = ""
    ) -> None:
        self._seat = seat
        self._screen = screen
        self._desk = desk
        self._overrides = overrides
        self._model = model
        self._turn_id: TurnId | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def run(self, text: str) -> TurnEnded:
        """From the prompt to its end.

        Raises:
            Refused: the turn was not started.
        """
        return await self._follow(
            self._seat.prompt(
                text,
                model=self._model,
                thinking=self._overrides.thinking,
                budget=self._overrides.budget,
            )
        )

    async def resume(self) -> TurnEnded:
        """Go on with an interrupted turn, to its end.

        Raises:
            Refused: none was interrupted, or it was not started.
        """
        return await self._follow(self._seat.resume(model=self._model))

    async def redirect(self, text: str) -> TurnEnded:
        """Stop whatever runs, and go on with this prompt, to its end."""
        return await self._follow(self._seat.redirect(text, model=self._model))

    async def release(self) -> None:
        """Start what is held, and show it until nothing runs and nothing is due.

        Raises:
            Refused: nothing was started.
        """
        rest = self._seat.until_idle()
        await self._seat.queue.release()
        await self.follow_rest(rest)

    async def follow_rest(self, events: AsyncIterator[Event]) -> None:
        """Show the turns that come behind this one: what waited, and what was said instead.

        Args:
            events: those of the seat since before this turn, until it is idle.
        """
        own = self._turn_id
        try:
            async for event in events:
                turn_id = getattr(event, "turn_id", None)
                if turn_id is not None and turn_id == own:
                    continue
                self._turn_id = turn_id or self._turn_id
                self._screen.event(event)
                await self._desk.see(event)
        finally:
            await self._desk.close()
            if self._stopping is not None:
                await self._stopping

    async def _follow(self, events: AsyncIterator[Event]) -> TurnEnded:
        try:
            async for event in events:
                turn_id = getattr(event, "turn_id", None)
                if turn_id is not None:
                    self._turn_id = turn_id
                self._screen.event(event)
                await self._desk.see(event)
                if isinstance(event, TurnEnded):
                    return event
        finally:
            await self._desk.close()
            if self._stopping is not None:
                await self._stopping
        raise AssertionError("a turn's last event is TurnEnded")

    def stop(self) -> None:
        """Stop this turn, and no other."""
        if self._stopping is None:
            self._screen.note("stopping … (Ctrl-C again leaves at once)")
            self._stopping = asyncio.create_task(self._stop())

    async def _stop(self) -> None:
        # Before the turn has an id the seat's own cancel finds it: it travels
        # behind the prompt, in the same lane.
        reply = await self._seat.stop(self._turn_id)
        if isinstance(reply, Refusal) and not isinstance(reply, TurnNotRunning):
            self._screen.note(reply.remedy)


def exit_code_of(ended: TurnEnded) -> int:
    if ended.stop_reason == "end_turn":
        return EXIT_DONE
    by_user = ended.stop_reason == "stopped" and ended.cause in ("user", "approval")
    return EXIT_STOPPED if by_user else EXIT_FAILED
