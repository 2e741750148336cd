"""`tenure queue`, `tenure steer` and `tenure resume`: what waits in a session, and what goes on."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import click

from tenure.runtime.cli.compact import session_given
from tenure.runtime.cli.options import Conversation, json_option, root_option

if TYPE_CHECKING:
    from tenure.runtime.cli.queueing import Place

    Work = Callable[[Place], Awaitable[int]]

session_option = click.option(
    "--session",
    metavar="ID",
    help="This session; its first characters do.  Default: the newest, or the one that is open.",
)


@click.group("queue")
def queue() -> None:
    """The prompts that wait in a session.

    They are kept in the session's file.  After a crash they are held: nothing of
    them starts before `tenure resume --queue`, or /release in a chat.
    """


@queue.command("ls")
@session_option
@root_option
@json_option
def list_queue(session: str | None, root: str | None, as_json: bool) -> None:
    """List what waits: position, id, when it is delivered, text."""
    from tenure.runtime.cli.queueing import list_items

    _launch(session_given(root, session, as_json), list_items)


@queue.command("add")
@click.argument("text")
@session_option
@root_option
@json_option
def add(text: str, session: str | None, root: str | None, as_json: bool) -> None:
    """Add a prompt behind the turn that another process runs."""
    from tenure.runtime.cli.queueing import add_item

    _launch(session_given(root, session, as_json), lambda place: add_item(place, text))


@queue.command("edit")
@click.argument("item", metavar="ITEM")
@click.argument("text")
@session_option
@root_option
@json_option
def edit(item: str, text: str, session: str | None, root: str | None, as_json: bool) -> None:
    """Give a prompt that waits another text.  ITEM is its id, or the first characters of it."""
    from tenure.runtime.cli.queueing import edit_item

    _launch(session_given(root, session, as_json), lambda place: edit_item(place, item, text))


@queue.command("mv")
@click.argument("item", metavar="ITEM")
@click.argument("position", type=click.IntRange(min=1))
@session_option
@root_option
@json_option
def move(item: str, position: int, session: str | None, root: str | None, as_json: bool) -> None:
    """Move a prompt that waits to a position; 1 is next."""
    from tenure.runtime.cli.queueing import move_item

    _launch(session_given(root, session, as_json), lambda place: move_item(place, item, position))


@queue.command("rm")
@click.argument("item", metavar="ITEM")
@session_option
@root_option
@json_option
def remove(item: str, session: str | None, root: str | None, as_json: bool) -> None:
    """Take a prompt out of the queue; its text is printed."""
    from tenure.runtime.cli.queueing import remove_item

    _launch(session_given(root, session, as_json), lambda place: remove_item(place, item))


@click.command("steer")
@click.argument("text")
@click.option(
    "--follow-up",
    "delivery",
    flag_value="follow_up",
    help="Say it once the turn would stop.",
)
@click.option(
    "--redirect",
    "delivery",
    flag_value="redirect",
    help="Stop the turn and go on with this.",
)
@session_option
@root_option
@json_option
def steer(
    text: str,
    delivery: Literal["follow_up", "redirect"] | None,
    session: str | None,
    root: str | None,
    as_json: bool,
) -> None:
    """Say something to a turn that another process runs, behind its next step.

    \b
    Exit codes
      0  it waits, durably, or has started a turn
      3  refused: no process has the session open, ...
    """
    from tenure.runtime.cli.queueing import say

    given = session_given(root, session, as_json)
    _launch(given, lambda place: say(place, text, delivery or "steer"))


@click.command("resume")
@click.option("--queue", "what", flag_value="queue", help="Start the prompts that are held, too.")
@session_option
@root_option
@json_option
def resume(
    what: Literal["queue"] | None, session: str | None, root: str | None, as_json: bool
) -> None:
    """Go on with a turn that a crash, or the end of its process, interrupted.

    Calls that need an approval are denied; resume in `tenure chat` to be asked.
    Where another process has the session, the turn goes on there.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.resuming import resume_session

    given = session_given(root, session, as_json)
    launch(lambda interrupts: resume_session(given, what or "turn", interrupts))


def _launch(given: Conversation, work: "Work") -> None:
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.queueing import in_session

    launch(lambda interrupts: in_session(given, work, interrupts))
