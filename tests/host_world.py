"""What the tests of the host share: a machine with a disk, and prompts that are read beside."""

import asyncio
from typing import Any

from toys import settle

from tenure.messages.base import Event
from tenure.messages.tokens import HOST_ROLES, SEAT_ROLES
from tenure.messages.turn import (
    GetTurn,
    TextDelta,
    TurnEnded,
)
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.scripted import ScriptAnswer, Scripted
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat
from tenure.runtime.supervisor import address_of
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves


class Machine:
    """A disk with a workspace, and hosts on it in processes of their own."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.put_folder("/root")

    @property
    def clock(self) -> ManualClock:
        return self.disk.clock

    def leaves(self) -> Leaves:
        return memory_leaves(self.disk)

    def host(self, *answers: ScriptAnswer, **wishes: Any) -> Host:
        return Host.open("/root", leaves=self.leaves(), model=Scripted(answers), **wishes)


async def events_of(seat: Seat, text: str = "hello", **wishes: Any) -> list[Event]:
    return [event async for event in seat.prompt(text, **wishes)]


def reading(seat: Seat, text: str = "hello", **wishes: Any) -> "asyncio.Task[list[Event]]":
    """Prompt beside what the test does next."""
    return asyncio.get_running_loop().create_task(events_of(seat, text, **wishes))


async def streaming(seat: Seat, **wishes: Any) -> "asyncio.Task[list[Event]]":
    """A prompt whose turn has begun to speak, and speaks on when its gate is opened."""
    watching = seat._bus.subscribe(seat=seat.name)
    task = reading(seat, **wishes)
    async for published in watching:
        if isinstance(published.event, TextDelta):
            break
    watching.close()
    return task


def last(events: list[Event]) -> TurnEnded:
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert [event for event in events if isinstance(event, TurnEnded)] == [ended]
    return ended


def held() -> tuple[asyncio.Event, list[Any]]:
    """A gate, and an answer that waits for it in the middle."""
    gate = asyncio.Event()
    return gate, ["One ", gate, "two."]


def owners_of(*seats: str) -> set[str]:
    """The addresses of a host that has these seats."""
    of_seats = {address_of(seat, role) for seat in seats for role in SEAT_ROLES}
    return of_seats | set(HOST_ROLES)


async def lose(host: Host, machine: Machine, address: str) -> None:
    """Make an owner fail until it is given up."""
    supervisor = host._alive().supervisor
    for _ in range(4):
        owner = supervisor._slots[address].owner
        assert owner is not None
        owner.__class__ = type("Broken", (type(owner),), {"step": staticmethod(broken)})
        host._alive().bus.tell(address, GetTurn())
        await settle()
        machine.clock.advance(1)
        await settle()


def broken(state: Any, message: Any, taken: Any) -> Any:
    raise RuntimeError("broken by the test")
