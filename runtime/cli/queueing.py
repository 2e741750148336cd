"""What `tenure queue` and `tenure steer` do: in the host that has the session, else in our own."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from tenure.messages.base import Refusal, Reply
from tenure.messages.queue import QueueItem, RedirectTurn
from tenure.messages.remote import NoHost
from tenure.messages.tokens import QueueItemId, SessionId
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.cli.hosting import SaidNo, open_seat
from tenure.runtime.cli.options import Conversation, Named
from tenure.runtime.cli.reaching import outside
from tenure.runtime.cli.screen import (
    JsonScreen,
    Screen,
    one_line,
    print_json,
    print_text,
    screen_of,
)
from tenure.runtime.cli.terminal import Interrupts
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import SessionFound, find_session
from tenure.runtime.errors import Refused
from tenure.runtime.finding import find_hosts, host_of_session, reach
from tenure.runtime.host import Host
from tenure.runtime.remote import RemoteHost
from tenure.runtime.seat_queue import Ask, SeatQueue

WHEN = {
    "redirect": "in the place of the running turn",
    "next_step": "behind the next step",
    "turn_end": "when the turn would stop",
    "next_turn": "as a turn of its own",
}

Say = Literal["steer", "follow_up", "redirect"]


class ItemAmbiguous(Refusal, frozen=True, kw_only=True):
    """No waiting prompt has an id that begins so, or several have."""

    text: str
    candidates: tuple[str, ...]

    @property
    def remedy(self) -> str:
        if not self.candidates:
            return f"no prompt that waits has an id that begins with {self.text!r}"
        return f"several ids begin with {self.text!r}: {', '.join(self.candidates)}"


class Place(msgspec.Struct, frozen=True):
    """A session as some host has it open, and where to print."""

    ask: Ask
    screen: Screen
    whose: Literal["ours", "theirs"]

    @property
    def queue(self) -> SeatQueue:
        return SeatQueue(self.ask)


async def in_session(
    given: Conversation, work: Callable[[Place], Awaitable[int]], interrupts: Interrupts
) -> int:
    """Do something in the host that has the session, else in one of our own."""
    screen = screen_of(given.form)
    interrupts.first(interrupts.end)
    try:
        async with outside() as leaves:
            found = await seat_elsewhere(leaves, given)
            if found is not None:
                remote, seat = found
                async with remote:
                    theirs = Place(lambda command: remote.ask(command, seat), screen, "theirs")
                    return await work(theirs)
        async with Host.open(given.root) as host:
            seat_here = await open_seat(host, given)
            return await work(Place(seat_here.ask, screen, "ours"))
    except SaidNo as said:
        screen.refusal(said.no)
    except Refused as refused:
        screen.refusal(refused.reply)
    return EXIT_REFUSED


async def seat_elsewhere(leaves: Leaves, given: Conversation) -> tuple[RemoteHost, str] | None:
    """The host that has the session, and its seat; without a session the only host's only seat.

    Raises:
        SaidNo: there is no such session, or several begin so.
    """
    if isinstance(given.start, Named):
        found = await leaves.workers.run(find_session, leaves, given.root, given.start.text)
        if not isinstance(found, SessionFound):
            raise SaidNo(found)
        return await _seat_of(leaves, given.root, found.session_id)
    hosts = await find_hosts(leaves, given.root)
    if len(hosts) != 1 or len(hosts[0].seats) != 1:
        return None
    return await reach(leaves.sockets, hosts[0].host_id, hosts[0].pid), hosts[0].seats[0]


async def _seat_of(
    leaves: Leaves, root: str, session_id: SessionId
) -> tuple[RemoteHost, str] | None:
    try:
        remote = await host_of_session(leaves, root, session_id)
    except Refused as refused:
        if isinstance(refused.reply, NoHost):
            return None
        raise
    seat = await remote.seat_of(session_id)
    if seat is None:
        await remote.close()
        return None
    return remote, seat


# --- what is done there ------------------------------------------------------------------------


async def list_items(place: Place) -> int:
    """Raises `Refused`."""
    items = await place.queue.ls()
    show_items(items, place.screen)
    return EXIT_DONE


async def add_item(place: Place, text: str) -> int:
    """Raises `Refused`."""
    if place.whose == "ours":
        raise Refused(NoHost(root="this workspace"))
    return shown(await place.queue.add(text), place.screen)


async def edit_item(place: Place, item: str, text: str) -> int:
    """Raises `Refused`."""
    item_id = await item_of(place.queue, item)
    return shown(await place.queue.edit(item_id, text), place.screen)


async def move_item(place: Place, item: str, position: int) -> int:
    """Raises `Refused`."""
    item_id = await item_of(place.queue, item)
    return shown(await place.queue.move(item_id, position), place.screen)


async def remove_item(place: Place, item: str) -> int:
    """Raises `Refused`."""
    item_id = await item_of(place.queue, item)
    gone = await place.queue.cancel(item_id)
    if isinstance(place.screen, JsonScreen):
        print_json(gone)
    else:
        print_text(f"{gone.text}\n")
    return EXIT_DONE


async def say(place: Place, text: str, how: Say) -> int:
    """Raises `Refused`."""
    if place.whose == "ours":
        raise Refused(NoHost(root="this workspace"))
    match how:
        case "steer":
            return shown(await place.queue.steer(text), place.screen)
        case "follow_up":
            return shown(await place.queue.follow_up(text), place.screen)
        case "redirect":
            reply = await place.ask(RedirectTurn(text=text))
            if isinstance(reply, Refusal):
                raise Refused(reply)
            return shown(reply, place.screen)


async def item_of(queue: SeatQueue, text: str) -> QueueItemId:
    """The one prompt whose position, or the beginning of whose id, is meant.

    Raises:
        Refused: `ItemAmbiguous`.
    """
    items = await queue.ls()
    fitting = tuple(item.item_id for item in items if item.item_id.startswith(text))
    if text.isdecimal() and 1 <= int(text) <= len(items) and text not in fitting:
        return items[int(text) - 1].item_id
    if len(fitting) != 1:
        raise Refused(ItemAmbiguous(text=text, candidates=fitting))
    return fitting[0]


def show_items(items: tuple[QueueItem, ...], screen: Screen) -> None:
    if isinstance(screen, JsonScreen):
        for item in items:
            print_json(item)
        return
    for item in items:
        held = "held, " if item.standing == "held" else ""
        when = f"{held}{WHEN[item.delivery]}"
        print_text(f"{item.position:3}  {item.item_id}  {one_line(item.text)}  ({when})\n")
    if not items:
        screen.note("nothing waits")


def shown(reply: Reply, screen: Screen) -> int:
    if isinstance(screen, JsonScreen):
        print_json(reply)
    elif isinstance(reply, TurnQueued):
        screen.note(f"waits: {reply.item_id}, {WHEN[reply.delivery]}")
    elif isinstance(reply, TurnAccepted):
        screen.note(f"started {reply.turn_id}")
    return EXIT_DONE
