"""What checkers share: their base, and memories that do not grow for ever."""

from collections.abc import Hashable
from typing import ClassVar, Generic, TypeVar

from tenure.messages.tokens import HOST_ROLES, Role, SessionId, TurnId, turn_session
from tenure.runtime.testing.watch import Watcher

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

KEPT_MAX = 20_000
"""A production host runs for months: what was longest ago is forgotten first."""


class Checker(Watcher):
    """Works out by itself, from what it sees, whether its invariants hold.

    It never calls the code whose invariant it checks.
    """

    invariants: ClassVar[tuple[str, ...]]


class Recent(dict[K, V], Generic[K, V]):
    """A dict that forgets its oldest entries."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > KEPT_MAX:
            del self[next(iter(self))]


class Over(Recent[tuple[str, TurnId], bool]):
    """Turns that are over, by host, and whether they had started.

    The number of a turn that never started is not on disk: when its session is
    opened again, another turn may get it.
    """

    def reopened(self, host: str, session: SessionId) -> None:
        for place, started in list(self.items()):
            if not started and place[0] == host and turn_session(place[1]) == session:
                del self[place]


def seat_of(owner: str) -> str:
    """`main` for `main/turn`; empty for an owner of the host."""
    return owner.rpartition("/")[0]


def role_of(owner: str) -> str:
    """The role in an address: `session` of `main/session`."""
    return owner.rpartition("/")[2]


def address_at(owner: str, role: Role) -> str:
    """Where mail of this owner for a role goes."""
    return role if role in HOST_ROLES else f"{seat_of(owner)}/{role}"
