"""What is said to a seat while a turn runs, or after one broke off; part of `Seat`."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence

from tenure.messages.base import Event
from tenure.messages.content import ImageBlock
from tenure.messages.queue import RedirectTurn, ResumeTurn
from tenure.messages.session import StartTurn
from tenure.messages.tokens import SessionToken
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.seat_queue import SeatQueue


class SteeringCommands(ABC):
    """Steer, follow up, redirect, resume."""

    queue: SeatQueue
    """What waits in this seat."""

    @abstractmethod
    def _turn(
        self, command: StartTurn | RedirectTurn | ResumeTurn, idempotency_key: str
    ) -> AsyncIterator[Event]:
        """Start what the command wants and give its events."""

    def redirect(
        self,
        text: str,
        *,
        token: SessionToken | None = None,
        model: str = "",
        images: Sequence[ImageBlock] = (),
        idempotency_key: str = "",
    ) -> AsyncIterator[Event]:
        """Stop the running turn, start with this prompt, and give the new turn's events.

        Redirects are delivered in their order, and what else waits goes on waiting.

        Raises:
            Refused: the running turn was not disturbed (`QueueFull`, `Stale`, ...).
        """
        command = RedirectTurn(
            text=text,
            images=tuple(images),
            token=token,
            model=model,
            idempotency_key=idempotency_key,
        )
        return self._turn(command, idempotency_key)

    def resume(
        self, *, token: SessionToken | None = None, model: str = "", idempotency_key: str = ""
    ) -> AsyncIterator[Event]:
        """Go on with a turn that a crash, or the end of its host, interrupted.

        Raises:
            Refused: none was interrupted (`NothingToResume`), or it was not started.
        """
        command = ResumeTurn(token=token, model=model, idempotency_key=idempotency_key)
        return self._turn(command, idempotency_key)

    async def steer(
        self,
        text: str,
        *,
        token: SessionToken | None = None,
        images: Sequence[ImageBlock] = (),
        idempotency_key: str = "",
    ) -> TurnQueued | TurnAccepted:
        """See `SeatQueue.steer`."""
        return await self.queue.steer(
            text, images=images, token=token, idempotency_key=idempotency_key
        )

    async def follow_up(
        self,
        text: str,
        *,
        token: SessionToken | None = None,
        images: Sequence[ImageBlock] = (),
        idempotency_key: str = "",
    ) -> TurnQueued | TurnAccepted:
        """See `SeatQueue.follow_up`."""
        return await self.queue.follow_up(
            text, images=images, token=token, idempotency_key=idempotency_key
        )
