"""What waits in a seat, and what is said to its running turn; part of the API of `Seat`."""

from collections.abc import Awaitable, Callable, Sequence

from tenure.messages.base import Command, Reply
from tenure.messages.content import ImageBlock
from tenure.messages.queue import (
    CancelPrompt,
    EditPrompt,
    FollowUpTurn,
    GetQueue,
    MovePrompt,
    QueueChanged,
    QueueItem,
    QueueReleased,
    QueueView,
    ReleaseQueue,
    SteerTurn,
)
from tenure.messages.session import StartTurn
from tenure.messages.tokens import QueueItemId, SessionToken
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.seat_sessions import refused

Ask = Callable[[Command], Awaitable[Reply]]
"""`Seat.ask`, or that of a seat in a host of another process."""


class SeatQueue:
    """The prompts that wait in one seat.

    Every method takes the token of the session that is meant; None takes the
    current one.  Every method raises `Refused` with the reply inside where the
    answer is no: `PromptGone`, `QueueFull`, `Stale`, `AppendFailed`, ...
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def ls(self) -> tuple[QueueItem, ...]:
        """What waits, next first; what is `held` starts only after `release`."""
        reply = await self._ask(GetQueue())
        if isinstance(reply, QueueView):
            return reply.items
        raise refused(reply)

    async def add(
        self,
        text: str,
        *,
        model: str = "",
        images: Sequence[ImageBlock] = (),
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> TurnQueued | TurnAccepted:
        """A prompt for a turn of its own, behind what waits; started where nothing runs."""
        command = StartTurn(
            text=text,
            images=tuple(images),
            token=token,
            model=model,
            when_busy="queue",
            idempotency_key=idempotency_key,
        )
        return _taken(await self._ask(command))

    async def steer(
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> TurnQueued | TurnAccepted:
        """Say something to the running turn, behind its next model step."""
        command = SteerTurn(
            text=text, images=tuple(images), token=token, idempotency_key=idempotency_key
        )
        return _taken(await self._ask(command))

    async def follow_up(
        self,
        text: str,
        *,
        images: Sequence[ImageBlock] = (),
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> TurnQueued | TurnAccepted:
        """Say something to the running turn once it would stop."""
        command = FollowUpTurn(
            text=text, images=tuple(images), token=token, idempotency_key=idempotency_key
        )
        return _taken(await self._ask(command))

    async def edit(
        self,
        item_id: QueueItemId,
        text: str,
        *,
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> QueueChanged:
        """Give a prompt that waits another text."""
        return await self._changed(
            EditPrompt(item_id=item_id, text=text, token=token, idempotency_key=idempotency_key)
        )

    async def move(
        self,
        item_id: QueueItemId,
        position: int,
        *,
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> QueueChanged:
        """Move a prompt that waits to a position; 1 is next."""
        return await self._changed(
            MovePrompt(
                item_id=item_id, position=position, token=token, idempotency_key=idempotency_key
            )
        )

    async def cancel(
        self,
        item_id: QueueItemId,
        *,
        token: SessionToken | None = None,
        idempotency_key: str = "",
    ) -> QueueChanged:
        """Take a prompt out of the queue; its text is in the reply."""
        return await self._changed(
            CancelPrompt(item_id=item_id, token=token, idempotency_key=idempotency_key)
        )

    async def release(self, *, token: SessionToken | None = None) -> QueueReleased:
        """Let everything that is held start, in its order."""
        reply = await self._ask(ReleaseQueue(token=token))
        if isinstance(reply, QueueReleased):
            return reply
        raise refused(reply)

    async def _changed(self, command: EditPrompt | MovePrompt | CancelPrompt) -> QueueChanged:
        reply = await self._ask(command)
        if isinstance(reply, QueueChanged):
            return reply
        raise refused(reply)


def _taken(reply: Reply) -> TurnQueued | TurnAccepted:
    if isinstance(reply, TurnQueued | TurnAccepted):
        return reply
    raise refused(reply)
