"""Observers: who sees everything that owners do, and changes nothing.

The trace is one; the watchers of the test harness are others.
"""

from typing import Any, Protocol

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.bus import Published
from tenure.runtime.step import Step, Taken


class Observer(Protocol):
    """Called on the event loop, at the moment itself; it must be quick and must not raise."""

    def stepped(
        self, owner: str, incarnation: int, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        """A step was taken; nothing of what it decided has left yet."""
        ...

    def raised(self, owner: str, incarnation: int, message: Message, error: Exception) -> None:
        """A step raised, and changed nothing."""
        ...

    def published(self, published: Published) -> None:
        """An event goes out."""
        ...

    def effect_started(self, owner: str, number: int, effect: Effect) -> None:
        """An effect is handed to its runner; `number` names it in this host run."""
        ...

    def effect_ended(self, owner: str, number: int, outcome: Outcome) -> None:
        """The terminal outcome of an effect, also of one whose owner is dead."""
        ...
