"""Opening a host for a command, and turning what goes wrong into a line and an exit code."""

import asyncio
import errno
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import click
import msgspec

from tenure.runtime.cli.options import Conversation, Fresh, Named
from tenure.runtime.cli.screen import No, Screen, damage_note, print_json, print_note
from tenure.runtime.cli.terminal import Interrupts
from tenure.runtime.cli.turns import EXIT_FAILED
from tenure.runtime.doors.transcripts import SessionFound, Unreadable
from tenure.runtime.errors import BadRoot, Refused, TenureError
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat

SEAT = "main"


class NoRoot(msgspec.Struct, frozen=True, kw_only=True, tag="BadRoot", tag_field="type"):
    """`BadRoot` as a program that reads JSON is told it."""

    message: str


class SaidNo(Exception):
    """A session could not be opened; what says so is inside."""

    def __init__(self, no: No) -> None:
        super().__init__(no.remedy)
        self.no = no


def launch(work: Callable[[Interrupts], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a command's work and leave with its exit code; failures are one plain line."""

    async def whole() -> int:
        interrupts = Interrupts()
        try:
            return await work(interrupts)
        except asyncio.CancelledError:
            return interrupts.exit_code

    try:
        sys.exit(asyncio.run(whole()))
    except BadRoot as error:
        context = click.get_current_context(silent=True)
        if context is not None and context.params.get("as_json"):
            print_json(NoRoot(message=str(error)))
            sys.exit(EXIT_FAILED)
        fail(str(error))
    except (TenureError, Unreadable) as error:
        fail(str(error))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # click leaves quietly where nobody reads on
        where = f"{error.filename}: " if error.filename else ""
        fail(f"{where}{error.strerror or error}")


def fail(reason: str) -> NoReturn:
    print_note(f"tenure: {reason}")
    sys.exit(EXIT_FAILED)


async def open_seat(host: Host, conversation: Conversation) -> Seat:
    """The seat with the session that is meant.

    Raises:
        SaidNo: there is no such session, several begin so, or it cannot be opened.
    """
    try:
        match conversation.start:
            case Fresh():
                return await host.new_seat(SEAT)
            case Named(text=text):
                return await host.seat(SEAT, session=(await session_of(host, text)).session_id)
            case _:
                return await host.seat(SEAT)
    except Refused as refused:
        raise SaidNo(refused.reply) from refused


async def session_of(host: Host, text: str) -> SessionFound:
    """The one session whose id is, or begins with, this text.  Raises `SaidNo`."""
    found = await host.sessions.find(text)
    if isinstance(found, SessionFound):
        return found
    raise SaidNo(found)


async def tell_opening(host: Host, seat: Seat, screen: Screen) -> None:
    """Say which session this is, and what is wrong with it or with the settings."""
    settings = await host.settings.get()
    for problem in settings.problems:
        screen.note(f"{settings.path}: {problem}")
    session = await seat.session()
    screen.note(f"session {session.token.session_id}")
    if session.damage.count:
        screen.note(damage_note(session.damage, session.path))
    if session.interrupted is not None:
        screen.note("its last turn was interrupted; `tenure resume`, or /resume, goes on with it")
    held = sum(item.standing == "held" for item in await seat.queue.ls())
    if held:
        screen.note(f"{held} prompts are held; `tenure queue ls`, or /queue, shows them")
