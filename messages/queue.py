"""The vocabulary of a seat's queue: prompts that wait, how they are delivered, how they change."""

from typing import Literal, TypeVar

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.content import ImageBlock
from tenure.messages.entries import CustomEntry
from tenure.messages.limits import Overrides
from tenure.messages.tokens import QueueItemId, SessionToken, TurnId

QUEUE_ITEMS_MAX = 100
"""Prompts that wait in one session; a further one is refused."""
QUEUE_BYTES_MAX = 16 * 1024 * 1024
"""Their texts and images together."""

QUEUE_ENTRY = "tenure/queue"
"""The `customType` of the queue's entries in a transcript."""
DELIVERED_KEY = "tenure/queue/"
"""The message entry that delivers an item carries this and the item's id as its key.

One record says both that the prompt was said and that it waits no more, so no
crash can part the two.
"""

Delivery = Literal["redirect", "next_step", "turn_end", "next_turn"]
"""When a prompt that waits is delivered.

redirect: in the place of the running turn, which is stopped for it.  next_step:
to the running turn, behind its next model step and the tools of that step.
turn_end: to the running turn, when it would stop.  next_turn: as a turn of its
own.  What finds no running turn is delivered as a turn of its own.
"""

T = TypeVar("T")


class QueuedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that waits."""

    item_id: QueueItemId
    delivery: Delivery
    text: str
    images: tuple[ImageBlock, ...] = ()
    model: str = ""
    overrides: Overrides = Overrides()

    @property
    def bytes_given(self) -> int:
        """What it counts against `QUEUE_BYTES_MAX`."""
        text = len(self.text.encode("utf-8", "surrogatepass"))
        return text + sum(len(image.data) for image in self.images)


def place_for(deliveries: tuple[Delivery, ...], new: Delivery) -> int:
    """Where a new item stands: a redirect behind the redirects that lead, all else last."""
    if new != "redirect":
        return len(deliveries)
    return next((at for at, each in enumerate(deliveries) if each != "redirect"), len(deliveries))


def moved(items: tuple[T, ...], at: int, position: int) -> tuple[T, ...]:
    """The items with the one at an index moved to a position; 1 is the first."""
    rest = (*items[:at], *items[at + 1 :])
    to = min(max(position - 1, 0), len(rest))
    return (*rest[:to], items[at], *rest[to:])


# --- what stands in the transcript ---------------------------------------------------------


class Add(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="add"):
    item: QueuedPrompt


class Edit(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="edit"):
    item_id: QueueItemId
    text: str


class Move(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="move"):
    item_id: QueueItemId
    position: int


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="gone"):
    item_id: QueueItemId
    fate: Literal["returned", "cancelled"]


QueueRecord = Add | Edit | Move | Gone


def entry_of(record: QueueRecord) -> CustomEntry:
    return CustomEntry(custom_type=QUEUE_ENTRY, data=msgspec.to_builtins(record))


# --- commands --------------------------------------------------------------------------


class SteerTurn(Command, frozen=True, kw_only=True):
    """Say something to the running turn: it is delivered behind the next model step.

    Where no turn runs it starts one.  Answered `TurnQueued` once it is durable, or
    `TurnAccepted`.
    """

    text: str
    images: tuple[ImageBlock, ...] = ()
    token: SessionToken | None = None
    """None takes the session that is current when the command is taken."""
    idempotency_key: str = ""
    ask_deadline_s = None


class FollowUpTurn(Command, frozen=True, kw_only=True):
    """Say something to the running turn once it would stop; else as `SteerTurn`."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = None


class RedirectTurn(Command, frozen=True, kw_only=True):
    """Stop the running turn and start with this prompt: one operation, in order.

    The turn is stopped once the prompt is durable; what else waits goes on waiting.
    """

    text: str
    images: tuple[ImageBlock, ...] = ()
    token: SessionToken | None = None
    model: str = ""
    idempotency_key: str = ""
    ask_deadline_s = None


class EditPrompt(Command, frozen=True, kw_only=True):
    """Give a prompt that waits another text.  Answered `QueueChanged` once durable."""

    item_id: QueueItemId
    text: str
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = None


class MovePrompt(Command, frozen=True, kw_only=True):
    """Move a prompt that waits to a position; 1 is next.  Answered `QueueChanged`."""

    item_id: QueueItemId
    position: int
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = None


class CancelPrompt(Command, frozen=True, kw_only=True):
    """Take a prompt out of the queue.  Answered `QueueChanged` with its text."""

    item_id: QueueItemId
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = None


class ReleaseQueue(Command, frozen=True, kw_only=True):
    """Let everything that is held start, in its order.  Answered `QueueReleased`."""

    token: SessionToken | None = None
    idempotency_key: str = ""


class ResumeTurn(Command, frozen=True, kw_only=True):
    """Go on with a turn that was interrupted by a crash or by the end of its host.

    Answered `TurnAccepted`, or `NothingToResume`.
    """

    token: SessionToken | None = None
    model: str = ""
    idempotency_key: str = ""
    ask_deadline_s = None


class GetQueue(Query, frozen=True, kw_only=True):
    """Answered `QueueView`."""


# --- commands between owners -------------------------------------------------------------


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="cancel"):
    item_id: QueueItemId


class ChangeQueue(Command, frozen=True, kw_only=True):
    """The SessionActor checked the token, and hands on a change."""

    token: SessionToken
    change: Edit | Move | Cancel
    ask_deadline_s = None


class ArmQueue(Command, frozen=True, kw_only=True):
    """The SessionActor hands on a release, with numbers for the turns that it may start."""

    token: SessionToken
    last_turn: int
    """`QUEUE_ITEMS_MAX` numbers above this one are free."""


class AdmitPrompt(Command, frozen=True, kw_only=True):
    """A TurnActor has a prompt that is due: it comes in again, and its token is compared."""

    item_id: QueueItemId
    turn_id: TurnId
    token: SessionToken
    ask_deadline_s = None


class RunPrompt(Command, frozen=True, kw_only=True):
    """The SessionActor checked the token of a prompt that is due."""

    item_id: QueueItemId
    turn_id: TurnId
    token: SessionToken
    ask_deadline_s = None


class ContinueTurn(Command, frozen=True, kw_only=True):
    """The SessionActor checked the token, minted the id, and hands on a resumption."""

    turn_id: TurnId
    token: SessionToken
    model: str
    resumes: TurnId
    ask_deadline_s = None


# --- replies ---------------------------------------------------------------------------


class QueuedText(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that a drain holds, to be given back by whoever asked for the drain."""

    item_id: QueueItemId
    text: str


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt that waits, as it is shown."""

    item_id: QueueItemId
    position: int
    """1 is next."""
    delivery: Delivery
    standing: Literal["waiting", "held"]
    """held: it starts only when the queue is released."""
    text: str
    images: int
    model: str


class QueueView(Reply, frozen=True, kw_only=True):
    items: tuple[QueueItem, ...]


class QueueChanged(Reply, frozen=True, kw_only=True):
    """The change is durable."""

    item_id: QueueItemId
    text: str
    """Of the prompt as it is now, or was when it was taken out."""


class QueueReleased(Reply, frozen=True, kw_only=True):
    released: int
    """How many were held."""


# --- refusals --------------------------------------------------------------------------


class QueueFull(Refusal, frozen=True, kw_only=True):
    """Nothing was accepted."""

    items: int
    items_max: int
    bytes_given: int
    """With the prompt that was refused."""
    bytes_max: int

    @property
    def remedy(self) -> str:
        return (
            f"{self.items} prompts wait and {self.items_max} may, in all {self.bytes_given} bytes "
            f"of {self.bytes_max}; wait for some to start, or take some out of the queue"
        )


class PromptGone(Refusal, frozen=True, kw_only=True):
    """No such prompt waits: it was delivered, given back or taken out, or never was."""

    item_id: QueueItemId

    @property
    def remedy(self) -> str:
        return f"no prompt {self.item_id} waits any more; nothing was changed"


class NothingToResume(Refusal, frozen=True, kw_only=True):
    @property
    def remedy(self) -> str:
        return "no turn was interrupted in this session; send a prompt"


# --- events ----------------------------------------------------------------------------


class PromptQueued(Event, frozen=True, kw_only=True):
    """A prompt waits, durably."""

    item_id: QueueItemId
    delivery: Delivery
    text: str
    position: int


class PromptEdited(Event, frozen=True, kw_only=True):
    item_id: QueueItemId
    text: str


class PromptMoved(Event, frozen=True, kw_only=True):
    item_id: QueueItemId
    position: int


class PromptCancelled(Event, frozen=True, kw_only=True):
    """A prompt was taken out of the queue on demand."""

    item_id: QueueItemId
    text: str


class PromptDelivered(Event, frozen=True, kw_only=True):
    """A prompt that waited is in the transcript, in this turn."""

    item_id: QueueItemId
    turn_id: TurnId
    text: str


class PromptReturned(Event, frozen=True, kw_only=True):
    """A prompt will not be delivered: here is its text."""

    item_id: QueueItemId
    text: str
    cause: str


class PromptSuspended(Event, frozen=True, kw_only=True):
    """A prompt waits until the queue is released."""

    item_id: QueueItemId
    text: str
    reason: str


class PromptReleased(Event, frozen=True, kw_only=True):
    """A prompt that was held waits for its turn again."""

    item_id: QueueItemId
