"""The prompts that wait in a seat, and what the TurnActor wrote on its asks about them."""

import msgspec

from tenure.messages.queue import Cancel, Edit, Move, QueuedPrompt
from tenure.messages.tokens import QueueItemId, SessionToken, TurnId
from tenure.runtime.step import AskId


class Direct(msgspec.Struct, frozen=True):
    """The prompt came while nothing ran."""


class Queued(msgspec.Struct, frozen=True):
    """The prompt waited first."""

    prompt: QueuedPrompt


class Resumed(msgspec.Struct, frozen=True):
    """There is no prompt: a turn that was interrupted goes on."""

    turn_id: TurnId
    """The turn that was interrupted."""


Origin = Direct | Queued | Resumed


class Armed(msgspec.Struct, frozen=True):
    """It is delivered when it is due."""

    prompt: QueuedPrompt
    turn_id: TurnId
    """Of the turn that it starts, where it starts one."""
    token: SessionToken


class Kept(msgspec.Struct, frozen=True):
    """It was found in the transcript, or could not be delivered: held until it is released."""

    prompt: QueuedPrompt


class Adding(msgspec.Struct, frozen=True):
    """It is on its way to the disk; its asker waits for the receipt."""

    item: Armed
    asker: AskId | None


class Queue(msgspec.Struct, frozen=True):
    """The prompts that wait, next first."""

    items: tuple[Armed | Kept, ...] = ()
    adding: tuple[Adding, ...] = ()

    @property
    def armed(self) -> tuple[Armed, ...]:
        return tuple(item for item in self.items if isinstance(item, Armed))

    @property
    def kept(self) -> tuple[Kept, ...]:
        return tuple(item for item in self.items if isinstance(item, Kept))

    def at(self, item_id: QueueItemId) -> int:
        """The index of an item; -1 where it does not wait."""
        return next((n for n, each in enumerate(self.items) if each.prompt.item_id == item_id), -1)


# --- what the owner wrote on its asks ----------------------------------------------------------


class ItemAdded(msgspec.Struct, frozen=True):
    item_id: QueueItemId


class ItemChanged(msgspec.Struct, frozen=True):
    asker: AskId | None
    change: Edit | Move


class ItemCancelled(msgspec.Struct, frozen=True):
    asker: AskId | None
    change: Cancel
    item: Armed | Kept
    at: int
    """Where it stood: it goes back there where it could not be taken out of the file."""


class ItemReentered(msgspec.Struct, frozen=True):
    item_id: QueueItemId


class ItemDelivered(msgspec.Struct, frozen=True):
    turn_id: TurnId
    item_id: QueueItemId
