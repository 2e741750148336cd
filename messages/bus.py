"""What the bus and the supervisor say: answers that no owner gave, and mail of their own."""

from typing import Literal

import msgspec

from tenure.messages.base import Event, Notice, Refusal, Reply


class Overloaded(Refusal, frozen=True, kw_only=True):
    """The owner's command lane is full; nothing was taken."""

    waiting: int
    """Commands in the lane."""

    @property
    def remedy(self) -> str:
        return f"the owner has {self.waiting} commands waiting; try again later"


class DeadlinePassed(Refusal, frozen=True, kw_only=True):
    """The asker's deadline passed first."""

    begun: bool
    """False: the owner had not begun, and never will.  True: it may still finish."""

    @property
    def remedy(self) -> str:
        if self.begun:
            return "no answer in time; it may still be done: look before you repeat it"
        return "no answer in time; it was not begun and will not be"


class OwnerStopped(Refusal, frozen=True, kw_only=True):
    """The owner stopped, or was restarted, before it answered."""

    begun: bool
    """False: it had not begun, and never will.  True: look before you repeat it."""
    reason: str = ""

    @property
    def remedy(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        if self.begun:
            return f"the owner stopped{why} before it answered; look before you repeat this"
        return f"the owner is stopped{why}; nothing was done"


class KeyReused(Refusal, frozen=True, kw_only=True):
    """This idempotency key came before, with another command."""

    idempotency_key: str

    @property
    def remedy(self) -> str:
        return (
            f"the idempotency key {self.idempotency_key!r} was used for another command; "
            "take a new one"
        )


class Unhandled(Refusal, frozen=True, kw_only=True):
    """This owner does not take this message."""

    message: str
    """The class name of what was sent."""

    @property
    def remedy(self) -> str:
        return f"this owner does not take {self.message}"


class Told(Reply, frozen=True, kw_only=True):
    """A one-way message is in the mailbox."""


class OwnerStarted(Notice, frozen=True, kw_only=True):
    """The first message to every incarnation of an owner: load your state from disk."""

    incarnation: int
    """1 for the first."""


class Answered(Notice, frozen=True, kw_only=True):
    """The answer to an `Ask` of this owner."""

    re: msgspec.Struct
    """What the asker wrote on the ask: a value of its own, typed."""
    reply: Reply


class OwnerRestarted(Event, frozen=True, kw_only=True):
    """An owner's step raised; a new incarnation starts from disk."""

    owner: str
    incarnation: int
    reason: str


class OwnerLost(Event, frozen=True, kw_only=True):
    """An owner is gone for good: its restarts are used up, or it was stopped."""

    owner: str
    reason: str


class MessageQuarantined(Event, frozen=True, kw_only=True):
    """A message made its owner's step raise.  It is kept, shown, and not tried again."""

    owner: str
    message: str
    """The class name."""
    reason: str


class EventsMissed(Event, frozen=True, kw_only=True):
    """This reader came too late, or was too slow, for these events."""

    seq_first: int
    seq_last: int


class Published(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """An event with its place in the host's one order of events: `(host_run, seq)`."""

    host_run: str
    seq_first: int
    seq_last: int
    """Equal to `seq_first` but for deltas that were joined for a slow reader."""
    seat: str
    """Empty for what belongs to the host."""
    event: Event


DeadLetterCause = Literal["owner_stopped", "late_reply", "dead_effect", "no_owner", "overloaded"]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message that reached nobody."""

    to: str
    message: str
    """The class name."""
    cause: DeadLetterCause


class OwnerView(Reply, frozen=True, kw_only=True):
    """What the supervisor sees of one owner."""

    owner: str
    state: str
    """The class name of its state."""
    incarnation: int
    restarts: int
    waiting: int
    """Messages in the mailbox."""
    effects: tuple[str, ...]
    """The effects that run or wait, by class name."""
