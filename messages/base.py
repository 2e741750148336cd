"""What every message is: an immutable, typed value with its class name as its tag.

A message is one of six things, and its name says which:

    Command   asks an owner to change something      imperative verb + noun   StartTurn
    Query     asks an owner for something            Get...                   GetSettings
    Reply     answers a command or a query           noun or adjective        Appended, Stale
    Event     a fact, for whoever listens            noun + past participle   TurnStarted
    Effect    what a step wants done outside         imperative + the thing   CallModel
    Outcome   how an effect went                     the effect's noun        ModelCallDone

`Notice` is the seventh, for the runtime's own mail to owners (an owner was
started, an ask was answered).  Messages cross process borders as JSON objects
whose `type` is the class name.
"""

from typing import ClassVar, Self

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The root of the vocabulary."""


class Command(Message, frozen=True, kw_only=True):
    """Asks one owner to change something; answered with a `Reply`."""

    control: ClassVar[bool] = False
    """True only for what may overtake: a stop that names its turn."""

    ask_deadline_s: ClassVar[float | None] = 30.0
    """How long an asker waits unless it says otherwise; None waits for ever."""


class Query(Command, frozen=True, kw_only=True):
    """Asks one owner for something and changes nothing."""


class Reply(Message, frozen=True, kw_only=True):
    """Answers a command or a query, once."""


class Refusal(Reply, frozen=True, kw_only=True):
    """A reply that says no, and holds what the asker needs to go on.

    `remedy` is the sentence shown to people: what was wrong, and what to do.
    """

    @property
    def remedy(self) -> str:
        return f"refused: {type(self).__name__}"


class Event(Message, frozen=True, kw_only=True):
    """A fact.  Published to subscribers and to the trace; never answered."""

    def joined(self, later: "Event") -> Self | None:
        """This event and `later` as one, where nothing is lost by it; else None.

        Only deltas of a stream can be joined.  A slow reader gets joined
        deltas instead of a queue that grows.
        """
        return None


class Outcome(Message, frozen=True, kw_only=True):
    """How an effect went, or how far it is.  Mail to the owner that wanted it."""

    def joined(self, later: "Outcome") -> Self | None:
        """As `Event.joined`, for progress that waits in a mailbox."""
        return None


class Effect(Message, frozen=True, kw_only=True):
    """What a step wants done outside.  It ends in exactly one terminal outcome."""

    concurrent: ClassVar[bool] = False
    """False: runs in order behind the owner's other effects.  True: beside them."""

    @property
    def key(self) -> str:
        """The name by which a `Cancel` finds a running concurrent effect."""
        return type(self).__name__

    def failed(self, reason: str) -> Outcome:
        """The outcome when the handler raised, was cancelled, or never started.

        Args:
            reason: one sentence for people.
        """
        raise TypeError(f"{type(self).__name__} must say how it fails")


class Notice(Message, frozen=True, kw_only=True):
    """The runtime's own mail to an owner."""
