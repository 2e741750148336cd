"""What `tenure approvals`, `approve` and `deny` do: the requests of every host of a root."""

from contextlib import suppress

import msgspec

from tenure.messages.approval import Allow, Applied, Choice, Expired
from tenure.messages.base import Refusal, Reply
from tenure.messages.bus import OwnerStopped
from tenure.messages.tokens import RequestId
from tenure.runtime.cli.approving import show_request
from tenure.runtime.cli.reaching import Form, outside, refuse
from tenure.runtime.cli.screen import (
    JsonScreen,
    one_line,
    print_json,
    print_text,
    screen_of,
    shortly,
)
from tenure.runtime.cli.turns import EXIT_DONE
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.errors import Refused
from tenure.runtime.finding import find_hosts, reach
from tenure.runtime.remote import SeatApproval


class SeveralRequests(Refusal, frozen=True, kw_only=True):
    """Several open requests begin like this."""

    text: str
    candidates: tuple[RequestId, ...]

    @property
    def remedy(self) -> str:
        count = len(self.candidates)
        return f"{self.text!r} is the beginning of {count} requests; write more of it"


class Place(msgspec.Struct, frozen=True):
    """Where a request is open."""

    host_id: str
    pid: int
    approval: SeatApproval


async def list_requests(root: str, form: Form) -> int:
    """`tenure approvals ls`."""
    screen = screen_of(form)
    async with outside() as leaves:
        places = await _open_requests(leaves, root)
    for place in places:
        if isinstance(screen, JsonScreen):
            print_json(place.approval)
        else:
            print_text(_row(place) + "\n")
    if not places:
        screen.note("nothing waits for an answer")
    return EXIT_DONE


async def show_one(root: str, text: str, form: Form) -> int:
    """`tenure approvals show`."""
    screen = screen_of(form)
    async with outside() as leaves:
        place = await _find(leaves, root, text)
    if isinstance(place, Refusal):
        return refuse(screen, place)
    if isinstance(screen, JsonScreen):
        print_json(place.approval)
    else:
        show_request(place.approval.request)
    return EXIT_DONE


async def answer(root: str, text: str, choice: Choice, form: Form) -> int:
    """`tenure approve` and `tenure deny`."""
    screen = screen_of(form)
    async with outside() as leaves:
        place = await _find(leaves, root, text)
        if isinstance(place, Expired):
            reply: Reply = await _answer_closed(leaves, root, place, choice)
        elif isinstance(place, Refusal):
            reply = place
        else:
            reply = await _answer_open(leaves, place, choice)
    if not isinstance(reply, Applied):
        return refuse(screen, reply)
    if isinstance(screen, JsonScreen):
        print_json(reply)
        return EXIT_DONE
    print_text(f"applied to {reply.request_id}\n")
    if isinstance(choice, Allow) and choice.scope == "always" and not reply.remembered:
        screen.note("this could not be written into the settings; it holds once")
    return EXIT_DONE


async def _answer_open(leaves: Leaves, place: Place, choice: Choice) -> Reply:
    request_id = place.approval.request.request_id
    try:
        async with await reach(leaves.sockets, place.host_id, place.pid) as remote:
            return await remote.answer(request_id, choice, place.approval.seat)
    except Refused as refused:
        return refused.reply
    except ConnectionRefusedError:  # its host ended meanwhile, and the request with it
        return Expired(request_id=request_id)


async def _answer_closed(leaves: Leaves, root: str, expired: Expired, choice: Choice) -> Reply:
    """No request is open under this id: whoever closed it can say more."""
    for hello in await find_hosts(leaves, root):
        with suppress(Refused, ConnectionRefusedError):  # it ended meanwhile
            async with await reach(leaves.sockets, hello.host_id, hello.pid) as remote:
                for seat in remote.hello.seats:
                    reply = await remote.answer(expired.request_id, choice, seat)
                    if not isinstance(reply, Expired | OwnerStopped):
                        return reply
    return expired


async def _find(leaves: Leaves, root: str, text: str) -> Place | Refusal:
    """The one open request whose id is, or begins with, this text."""
    places = await _open_requests(leaves, root)
    ids = {place.approval.request.request_id: place for place in places}
    exact = ids.get(RequestId(text))
    begun = [place for name, place in ids.items() if text and name.startswith(text)]
    found = [exact] if exact is not None else begun
    if len(found) == 1:
        return found[0]
    if not found:
        return Expired(request_id=RequestId(text))
    candidates = sorted(place.approval.request.request_id for place in found)
    return SeveralRequests(text=text, candidates=tuple(candidates))


async def _open_requests(leaves: Leaves, root: str) -> list[Place]:
    places: list[Place] = []
    for hello in await find_hosts(leaves, root):
        with suppress(Refused, ConnectionRefusedError):  # it ended meanwhile
            async with await reach(leaves.sockets, hello.host_id, hello.pid) as remote:
                requests = await remote.approvals()
                places += (Place(hello.host_id, hello.pid, each) for each in requests)
    return places


def _row(place: Place) -> str:
    request = place.approval.request
    preview = request.preview.summary if request.preview is not None else ""
    what = preview or shortly(request.arguments)
    return f"{request.request_id}  {place.approval.seat}  {request.tool}: {one_line(what)}"
