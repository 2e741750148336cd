"""A slot: an address with all that outlives one incarnation of its owner."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from tenure.messages.bus import OwnerView
from tenure.messages.tokens import HOST_ROLES, Role
from tenure.runtime.bus import Box
from tenure.runtime.effects import EffectRunner, Handlers
from tenure.runtime.owner import Owner


def address_of(seat: str, role: Role) -> str:
    """`settings` for an owner of the host, `main/session` for one of a seat."""
    return role if role in HOST_ROLES else f"{seat}/{role}"


class OwnerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What `runtime/system.py` says of one kind of owner."""

    role: Role
    owner: type[Owner]
    let_go: Callable[[str], Awaitable[None]] | None = None
    """Gives back what the doors hold for a seat, when an incarnation of its owner has ended."""


class Slot(Box):
    """An address with all that outlives an incarnation."""

    __slots__ = (
        "effects",
        "ending",
        "incarnation",
        "restarted_at",
        "restarting",
        "restarts",
        "spec",
    )

    def __init__(self, address: str, seat: str, spec: OwnerSpec, handlers: Handlers) -> None:
        super().__init__(address, seat)
        self.spec = spec
        self.effects = EffectRunner(handlers, address, seat)
        self.incarnation = 0
        self.restarts = 0
        self.restarted_at: deque[float] | None = None
        self.restarting: asyncio.Task[None] | None = None
        """Starts the next incarnation, when the effects of the dead one have ended."""
        self.ending: asyncio.Task[None] | None = None
        """Ends the address for good."""

    def view(self) -> OwnerView:
        """What is to be seen of its owner now."""
        return OwnerView(
            owner=self.address,
            state=self._state(),
            incarnation=self.incarnation,
            restarts=self.restarts,
            waiting=len(self.mailbox),
            effects=self.effects.under_way,
        )

    def _state(self) -> str:
        if self.closed:
            return "Stopping"
        return type(self.owner.state).__name__ if self.owner else "Restarting"
