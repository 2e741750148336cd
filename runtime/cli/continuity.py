"""`tenure sleep`, `wake`, `ack`, `checkpoint`, `recover`, `handoffs`: from session to session.

These are run at every beginning and end of a session, so they load little: one owner, on
a world without an event loop.
"""

from collections.abc import Callable
from typing import Any

import click

from tenure.runtime.cli.options import json_option, root_option

EXIT_DIED = 10
"""`wake --exit-code`: the brief was delivered, and a session had died."""


def _stage_option(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(f"--{name}", name, is_flag=True, help=what)


def _list_option(name: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(f"--{name}", metavar="TEXT", multiple=True, help=f"{what}  Repeatable.")


@click.command("sleep")
@click.argument("summary", nargs=-1)
@_list_option("next", "What to do next.")
@_list_option("blocked", "What stands in the way.")
@_list_option("decision", "What was decided.")
@_list_option("question", "What is open.")
@_list_option("feeling", "How it went.")
@click.option("--session", metavar="ID", default="", help="The session that ends.")
@click.option("--transcript", metavar="FILE", default="", help="Where the session was recorded.")
@_stage_option("index", "Have the notes indexed.")
@_stage_option("observe", "Have the transcript observed; --transcript implies it.")
@_stage_option("reflect", "Have the week reflected on.")
@click.option("--git/--no-git", "git", default=None, help="Commit the handoff's file.")
@click.option("--key", metavar="KEY", default="", help="The same key gives the same receipt.")
@click.option("--require-next", is_flag=True, help="Refuse where no next step or blocker is said.")
@click.option("--input-json", is_flag=True, help="Read summary and lists from stdin, as JSON.")
@root_option
@json_option
def sleep(**given: Any) -> None:
    """Leave a handoff for the next session.

    SUMMARY says what was worked on; several are several items, and `-` reads one from
    stdin.  A comma is a comma.  The receipt is printed as soon as the handoff is durable;
    then what became of each further step.  Exit code 4: it is saved, and a step failed.

    --input-json takes an object with `summary`, `next`, `blocked`, `decisions`,
    `questions`, `feelings`: texts, or lists of texts.
    """
    from tenure.runtime.cli.sleeping import run_sleep

    run_sleep(given)


@click.command("wake")
@click.option(
    "-n", "--handoffs", "handoffs", type=click.IntRange(0), default=3, show_default=True,
    help="How many handoffs it tells of.",
)  # fmt: skip
@click.option(
    "--budget", metavar="CHARS", type=click.IntRange(200), default=12_000, show_default=True,
    help="How long the brief may be.",
)  # fmt: skip
@click.option("--full", is_flag=True, help="Every item of a handoff, within the budget.")
@click.option("--exit-code", is_flag=True, help=f"Exit {EXIT_DIED} where a session had died.")
@root_option
@json_option
def wake(**given: Any) -> None:
    """Give the brief: who died, what was left, what is open.

    It comes again, with the same id, until `tenure ack ID` says that it was taken in.
    """
    from tenure.runtime.cli.waking import run_wake

    run_wake(given)


@click.command("ack")
@click.argument("brief_id", metavar="BRIEF_ID")
@root_option
@json_option
def ack(**given: Any) -> None:
    """Say that a brief was taken in: what it told of a session's death is over."""
    from tenure.runtime.cli.waking import run_ack

    run_ack(given)


@click.command("checkpoint")
@click.option("--working-on", metavar="TEXT", default="", help="What is being worked on.")
@click.option("--focus", metavar="TEXT", default="", help="What matters right now.")
@click.option("--blocked", metavar="TEXT", default="", help="What stands in the way.")
@click.option("--urgent", is_flag=True, help="Mark it as urgent.")
@click.option("--session", metavar="ID", default="", help="The session that it is of.")
@click.option("--key", metavar="KEY", default="", help="The same key gives the same receipt.")
@root_option
@json_option
def checkpoint(**given: Any) -> None:
    """Note where the session stands, durably, in case it dies."""
    from tenure.runtime.cli.sleeping import run_checkpoint

    run_checkpoint(given)


@click.command("recover")
@root_option
@json_option
def recover(**given: Any) -> None:
    """Show which sessions died, the newest checkpoint and the newest handoff.

    Nothing is changed: `tenure wake` delivers, and `tenure ack` clears.
    """
    from tenure.runtime.cli.waking import run_recover

    run_recover(given)


@click.group("handoffs")
def handoffs() -> None:
    """List, show and check the handoffs of a vault.  Nothing is changed."""


@handoffs.command("ls")
@root_option
@json_option
def list_them(**given: Any) -> None:
    """List the handoffs, the newest first."""
    from tenure.runtime.cli.handing import run_list

    run_list(given)


@handoffs.command("show")
@click.argument("name", metavar="HANDOFF")
@root_option
@json_option
def show(**given: Any) -> None:
    """Show one handoff: a number, an id, or the beginning of one."""
    from tenure.runtime.cli.handing import run_show

    run_show(given)


@handoffs.command("verify")
@root_option
@json_option
def verify(**given: Any) -> None:
    """Check the journal line by line, and every file against it.

    Exits 0 where all is sound, else 1.
    """
    from tenure.runtime.cli.handing import run_verify

    run_verify(given)
