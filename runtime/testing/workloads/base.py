"""What a workload is: the operations of one part of a host, and how they are drawn and done."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_plan import Planner
    from tenure.runtime.testing.workload_run import Run
    from tenure.runtime.testing.world import World

HOSTS = ("a", "b")
SEATS = ("s0", "s1", "s2")


class Op(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One thing that a client does, `after_ms` behind the one before it."""

    client: int
    after_ms: int = 0
    beside: bool = False
    """The client does not wait for its end before it goes on."""


class AtSeat(Op, frozen=True, kw_only=True):
    """Something that is done at one seat of one host."""

    host: int
    seat: int


def usual_settings(planner: "Planner") -> dict[str, Any]:
    """Settings of a workload that needs none."""
    return {}


def nothing_there(world: "World") -> None:
    """The disk of a workload that needs nothing on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Operations of one part of a host, mixed with those of its seats.

    A plan of it is named by the workload and a seed.  So one that is added
    changes no plan of another.
    """

    name: str
    draws: "Mapping[str, Callable[[Planner], Op]]"
    """Its own operations: a name, and what draws one from the planner's chance."""
    does: "Mapping[type[Op], Callable[[Run, Any], Awaitable[None]]]"
    """How each of its operations is done."""
    themes: Mapping[str, Mapping[str, float]]
    """How often each operation comes, its own and those of seats (`SEAT_OPS`); one theme a plan.

    What a theme does not name comes as often as in a usual run of seats.
    """
    settings: "Callable[[Planner], dict[str, Any]]" = usual_settings
    """Settings of the hosts, in the layout of `settings.toml`."""
    crashing: tuple[str, ...] = ("session", "turn", "turn", "approval", "settings")
    """Which owners crash where a plan says so, by their roles."""
    prepare: "Callable[[World], None]" = nothing_there
    """Puts files on the disk and servers on the network, before the first host starts."""
    hosts: Literal["drawn", "two"] = "drawn"
    """Two for what only processes do to each other; else half of the plans have one."""
    sockets: Literal["none", "listen"] = "none"
    """Whether other processes can speak to the hosts."""
    share: float = 1.0
    """Its part of the runs of a search: seats have 6.  0 is run only when it is named."""
