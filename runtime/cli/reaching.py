"""What the commands do that speak to a host of another process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from tenure.messages.base import Refusal, Reply
from tenure.messages.bus import Unhandled
from tenure.messages.handover import HandedOver, HandoverPending, HandOverSession
from tenure.messages.remote import NoHost
from tenure.messages.session import GetSession, SessionView
from tenure.messages.tokens import SessionId, SessionToken, TurnId, turn_session
from tenure.messages.turn import GetTurn, StopTurn, TurnNotRunning, TurnStopping, TurnView
from tenure.runtime.cli.screen import (
    JsonScreen,
    Screen,
    one_line,
    print_json,
    print_text,
    screen_of,
)
from tenure.runtime.cli.story import entry_lines
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.transcripts import SessionAmbiguous, SessionFound, find_session
from tenure.runtime.errors import Refused
from tenure.runtime.finding import find_hosts, host_of_session, reach
from tenure.runtime.following import follow
from tenure.runtime.remote import RemoteHost

Form = Literal["json", "text"]

ASK_AGAIN_S = 0.1


class SeveralTurns(Refusal, frozen=True, kw_only=True):
    """More than one turn runs, and nothing says which is meant."""

    turn_ids: tuple[TurnId, ...]

    @property
    def remedy(self) -> str:
        turns = "\n".join(f"  {turn_id}" for turn_id in self.turn_ids)
        return f"several turns run; name one with --turn:\n{turns}"


@asynccontextmanager
async def outside() -> AsyncIterator[Leaves]:
    """The real world, without a host of our own."""
    leaves = system_leaves()
    try:
        yield leaves
    finally:
        await leaves.workers.close()


def refuse(screen: Screen, no: Reply | SessionAmbiguous) -> int:
    """Print what says no; gives the exit code."""
    if isinstance(no, Refusal | SessionAmbiguous):
        screen.refusal(no)
    else:
        screen.refusal(Unhandled(message=type(no).__name__))
    return EXIT_REFUSED


async def list_hosts(root: str, form: Form) -> int:
    """`tenure hosts`."""
    screen = screen_of(form)
    async with outside() as leaves:
        found = await find_hosts(leaves, root)
    for hello in found:
        if isinstance(screen, JsonScreen):
            print_json(hello)
        else:
            print_text(f"{hello.pid:8}  {hello.host_id}  {' '.join(hello.seats)}\n")
    if not found:
        screen.note(NoHost(root=root).remedy)
    return EXIT_DONE


async def follow_session(root: str, text: str, since: Literal["start", "now"], form: Form) -> int:
    """`tenure sessions follow`: until it is interrupted."""
    screen = screen_of(form)
    async with outside() as leaves:
        found = await leaves.workers.run(find_session, leaves, root, text)
        if not isinstance(found, SessionFound):
            return refuse(screen, found)
        async for entry in follow(leaves, found.path, since):
            if isinstance(screen, JsonScreen):
                print_json(entry)
            else:
                print_text("".join(f"{line}\n" for line in entry_lines(entry)))
    return EXIT_DONE


# --- stop ----------------------------------------------------------------------------------------


async def stop_turn(root: str, session: str | None, turn: str | None, form: Form) -> int:
    """`tenure stop`."""
    screen = screen_of(form)
    async with outside() as leaves:
        try:
            reply: Reply | SessionAmbiguous = await _stop(leaves, root, session, turn)
        except Refused as refused:
            reply = refused.reply
    if not isinstance(reply, TurnStopping):
        return refuse(screen, reply)
    if isinstance(screen, JsonScreen):
        print_json(reply)
    else:
        print_text(f"stopping {reply.turn_id}\n")
        for text in reply.dropped:
            screen.note(f"not started: {one_line(text)}")
    return EXIT_DONE


async def _stop(
    leaves: Leaves, root: str, session: str | None, turn: str | None
) -> Reply | SessionAmbiguous:
    if turn is not None:
        turn_id = TurnId(turn)
        async with await host_of_session(leaves, root, turn_session(turn_id)) as remote:
            return await _stop_in(remote, turn_session(turn_id), turn_id)
    if session is not None:
        found = await leaves.workers.run(find_session, leaves, root, session)
        if not isinstance(found, SessionFound):
            return found
        async with await host_of_session(leaves, root, found.session_id) as remote:
            return await _stop_in(remote, found.session_id, None)
    return await _stop_the_only_one(leaves, root)


async def _stop_in(remote: RemoteHost, session_id: SessionId, turn_id: TurnId | None) -> Reply:
    seat = await remote.seat_of(session_id)
    if seat is None:
        return NoHost(root=remote.hello.root, session_id=session_id)
    if turn_id is None:
        turn_id = await _running_in(remote, seat)
    if turn_id is None:
        return TurnNotRunning(turn_id=None)
    return await remote.ask(StopTurn(turn_id=turn_id), seat)


async def _stop_the_only_one(leaves: Leaves, root: str) -> Reply:
    hosts = await find_hosts(leaves, root)
    running: list[tuple[str, str, TurnId]] = []
    for hello in hosts:
        async with await reach(leaves.sockets, hello.host_id, hello.pid) as remote:
            for seat in remote.hello.seats:
                turn_id = await _running_in(remote, seat)
                if turn_id is not None:
                    running.append((hello.host_id, seat, turn_id))
    if not hosts:
        return NoHost(root=root)
    if len(running) != 1:
        turns = tuple(turn_id for _, _, turn_id in running)
        return SeveralTurns(turn_ids=turns) if turns else TurnNotRunning(turn_id=None)
    (host_id, seat, turn_id), *_ = running
    async with await reach(leaves.sockets, host_id) as remote:
        return await remote.ask(StopTurn(turn_id=turn_id), seat)


async def _running_in(remote: RemoteHost, seat: str) -> TurnId | None:
    view = await remote.ask(GetTurn(), seat)
    return view.turn_id if isinstance(view, TurnView) else None


# --- handover ------------------------------------------------------------------------------------


async def hand_over(root: str, text: str, wait_s: float, form: Form) -> int:
    """`tenure sessions handover`."""
    screen = screen_of(form)
    async with outside() as leaves:
        found = await leaves.workers.run(find_session, leaves, root, text)
        if not isinstance(found, SessionFound):
            return refuse(screen, found)
        try:
            reply = await _have_it_let_go(leaves, root, found.session_id, wait_s)
        except Refused as refused:
            return refuse(screen, refused.reply)
    if not isinstance(reply, HandedOver):
        return refuse(screen, reply)
    if isinstance(screen, JsonScreen):
        print_json(reply)
    else:
        print_text(f"session {reply.token.session_id} is free\n")
        for waiting in reply.dropped:
            screen.note(f"not started: {one_line(waiting)}")
    return EXIT_DONE


async def _have_it_let_go(leaves: Leaves, root: str, session_id: SessionId, wait_s: float) -> Reply:
    """Ask, and ask again while a tool holds it up.

    Raises:
        Refused: nobody has it, or who has it does not answer.
    """
    clock = leaves.clock
    ends_s = clock.monotonic_s() + wait_s
    token: SessionToken | None = None
    while True:
        try:
            async with await host_of_session(leaves, root, session_id) as remote:
                seat, token = await _place_of(remote, session_id, token)
                if seat is None:
                    raise Refused(NoHost(root=remote.hello.root, session_id=session_id))
                reply = await remote.ask(HandOverSession(session_id=session_id), seat)
        except Refused as refused:
            if token is not None and isinstance(refused.reply, NoHost):
                return HandedOver(token=token)  # between two looks the tool ended
            raise
        if not isinstance(reply, HandoverPending) or clock.monotonic_s() >= ends_s:
            return reply
        await clock.sleep(ASK_AGAIN_S)


async def _place_of(
    remote: RemoteHost, session_id: SessionId, before: SessionToken | None
) -> tuple[str | None, SessionToken | None]:
    """The seat that has the session, and its token there."""
    seat = await remote.seat_of(session_id)
    if seat is None:
        return None, before
    view = await remote.ask(GetSession(), seat)
    return seat, view.token if isinstance(view, SessionView) else before
