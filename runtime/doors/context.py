"""What a door handler is told of the effect that it carries out."""

from collections.abc import Callable
from dataclasses import dataclass

from tenure.messages.base import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A handler is `async (effect, context) -> Outcome`.

    It returns the effect's one terminal outcome.  What it raises, and a
    cancel that it lets pass, becomes `effect.failed(reason)`.
    """

    owner: str
    """The address of the owner that wants the effect: `main/session`."""
    seat: str
    """The seat of that owner; empty for an owner of the host."""
    progress: Callable[[Outcome], None]
    """Posts an outcome that is not the last: deltas of a stream."""
