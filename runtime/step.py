"""What a step is: `step(state, message, taken) -> Step`, pure and synchronous.

A step says what is now true (`state`), who is answered (`replies`), what others
may know (`events`), what goes to other owners (`mail`) and what is to be done
outside (`effects`).  It does none of it: the shell (`runtime/owner.py`) does, when
the step returns.  Replies, events and mail leave at once; effects on doors queue
behind each other.

A step reads as prose:

    return (
        Step(SavingPrompt(run=run, asker=taken.asker))
        .ask("session", AppendEntries(...), re=PromptSaved(turn_id=run.turn_id))
    )
"""

from collections.abc import Callable
from typing import Any, Generic, NewType, TypeVar

import msgspec

from tenure.messages.base import Command, Effect, Event, Message, Reply
from tenure.messages.tokens import Role

AskId = NewType("AskId", int)
"""Names one open ask of this host run: plain data, kept in a state or carried by an effect."""

S = TypeVar("S")
N = TypeVar("N")


class Taken(msgspec.Struct, frozen=True):
    """How a message was taken: everything a step may know besides state and message."""

    asker: AskId | None
    """Who waits for the answer; None for mail that was told."""
    now_ms: int
    """Wall-clock milliseconds since the epoch."""
    fresh: str
    """16 hexadecimal digits that nobody has seen before."""

    def id(self, number: int) -> str:
        """Many ids come from one `fresh`: the first is `fresh` itself."""
        return self.fresh if number == 0 else f"{self.fresh}-{number}"


class Tell(msgspec.Struct, frozen=True):
    """Mail that is not answered."""

    to: Role
    message: Command


class Ask(msgspec.Struct, frozen=True):
    """Mail that is answered with `Answered(re, reply)`, also when the other owner dies."""

    to: Role
    message: Command
    re: msgspec.Struct


class Forward(msgspec.Struct, frozen=True):
    """Hands a command on together with the duty to answer its asker."""

    to: Role
    message: Command
    asker: AskId | None


class Cancel(msgspec.Struct, frozen=True):
    """Cancels the running concurrent effects of this owner that have this key.

    Each still ends in its one terminal outcome.
    """

    key: str


Mail = Tell | Ask | Forward | Cancel


class Step(msgspec.Struct, Generic[S], frozen=True):
    """What a step decided.  Every method gives a new `Step`."""

    state: S
    replies: tuple[tuple[AskId, Reply], ...] = ()
    events: tuple[Event, ...] = ()
    mail: tuple[Mail, ...] = ()
    effects: tuple[Effect, ...] = ()

    def __class_getitem__(cls, of: Any) -> Any:
        # Only type checkers read the parameter, and typing's alias costs a microsecond a step.
        return cls

    def _with_mail(self, *mail: Mail) -> "Step[S]":
        return Step(self.state, self.replies, self.events, self.mail + mail, self.effects)

    def answer(self, asker: AskId | None, reply: Reply) -> "Step[S]":
        """Answer one asker.  A message that was told has none, and nothing is sent."""
        if asker is None:
            return self
        replies = (*self.replies, (asker, reply))
        return Step(self.state, replies, self.events, self.mail, self.effects)

    def emit(self, *events: Event) -> "Step[S]":
        return Step(self.state, self.replies, self.events + events, self.mail, self.effects)

    def tell(self, to: Role, message: Command) -> "Step[S]":
        return self._with_mail(Tell(to, message))

    def ask(self, to: Role, message: Command, re: msgspec.Struct) -> "Step[S]":
        return self._with_mail(Ask(to, message, re))

    def forward(self, to: Role, message: Command, asker: AskId | None) -> "Step[S]":
        return self._with_mail(Forward(to, message, asker))

    def cancel(self, key: str) -> "Step[S]":
        return self._with_mail(Cancel(key))

    def do(self, *effects: Effect) -> "Step[S]":
        return Step(self.state, self.replies, self.events, self.mail, self.effects + effects)

    def to(self, state: N) -> "Step[N]":
        """The same sendings, with another state."""
        return Step(state, self.replies, self.events, self.mail, self.effects)

    def then(self, step: "StepFunction[S]", message: Message, taken: Taken) -> "Step[S]":
        """Go on with a message that had to wait, from the state that this step reached."""
        further = step(self.state, message, taken)
        return Step(
            further.state,
            self.replies + further.replies,
            self.events + further.events,
            self.mail + further.mail,
            self.effects + further.effects,
        )


StepFunction = Callable[[S, Message, Taken], Step[S]]


class Held(msgspec.Struct, frozen=True):
    """A message that must wait, with how it was taken."""

    message: Command
    taken: Taken
