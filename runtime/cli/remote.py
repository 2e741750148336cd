"""Commands for a host of another process: find it, stop its turns, answer its requests."""

from typing import Literal

import click

from tenure.runtime.cli.options import json_option, root_option, workspace

HANDOVER_S = 30.0

Scope = Literal["once", "session", "always"]

scope_option = click.option(
    "--scope",
    type=click.Choice(("once", "session", "always")),
    default="once",
    show_default=True,
    help="How long the answer holds.",
)


@click.command("hosts")
@root_option
@json_option
def hosts(root: str | None, as_json: bool) -> None:
    """List the hosts that run in a workspace: pid, id, seats.

    With --json one object a host.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.reaching import list_hosts

    launch(lambda interrupts: list_hosts(workspace(root), _form(as_json)))


@click.command("stop")
@click.option("--session", metavar="ID", help="Stop the turn of this session.")
@click.option("--turn", metavar="ID", help="Stop this turn, and no other.")
@root_option
@json_option
def stop(session: str | None, turn: str | None, root: str | None, as_json: bool) -> None:
    """Stop a turn that another process runs: the only one, or the one that is named.

    Answered at once, with the prompts that waited behind it; what was said and
    done until then stays in the session.
    """
    if session is not None and turn is not None:
        raise click.UsageError("--turn names the session as well: give one of --session and --turn")

    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.reaching import stop_turn

    launch(lambda interrupts: stop_turn(workspace(root), session, turn, _form(as_json)))


@click.group("approvals")
def approvals() -> None:
    """Look at the calls that wait for an answer, in every host of a workspace."""


@approvals.command("ls")
@root_option
@json_option
def list_approvals(root: str | None, as_json: bool) -> None:
    """List the open requests: id, seat, and what the call would do.

    With --json one object a request, with its arguments and its diff.
    """
    from tenure.runtime.cli.answering import list_requests
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: list_requests(workspace(root), _form(as_json)))


@approvals.command("show")
@click.argument("request", metavar="REQUEST")
@root_option
@json_option
def show_approval(request: str, root: str | None, as_json: bool) -> None:
    """Show one request whole: its arguments, and what it would change."""
    from tenure.runtime.cli.answering import show_one
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: show_one(workspace(root), request, _form(as_json)))


@click.command("approve")
@click.argument("request", metavar="REQUEST")
@scope_option
@root_option
@json_option
def approve(request: str, scope: Scope, root: str | None, as_json: bool) -> None:
    """Let a call run.  REQUEST is its id, or the first characters of it.

    An answer counts once: where another was faster, it is refused (exit code 3).
    """
    from tenure.messages.approval import Allow
    from tenure.runtime.cli.answering import answer
    from tenure.runtime.cli.hosting import launch

    choice = Allow(scope=scope)
    launch(lambda interrupts: answer(workspace(root), request, choice, _form(as_json)))


@click.command("deny")
@click.argument("request", metavar="REQUEST")
@click.option("--reason", default="", help="What the model is told.")
@click.option("--stop", "ends_turn", is_flag=True, help="End the turn as well.")
@scope_option
@root_option
@json_option
def deny(
    request: str, reason: str, ends_turn: bool, scope: Scope, root: str | None, as_json: bool
) -> None:
    """Do not let a call run; the turn goes on, unless --stop ends it.

    REQUEST is its id, or the first characters of it.
    """
    from tenure.messages.approval import Choice, Deny, Stop
    from tenure.runtime.cli.answering import answer
    from tenure.runtime.cli.hosting import launch

    if ends_turn and (reason or scope != "once"):
        raise click.UsageError("--stop ends the turn: it takes neither a reason nor a scope")
    choice: Choice = Stop() if ends_turn else Deny(reason=reason, scope=scope)
    launch(lambda interrupts: answer(workspace(root), request, choice, _form(as_json)))


@click.command("handover")
@click.argument("session", metavar="ID")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=HANDOVER_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to ask again while a tool that was told to stop still runs.",
)
@root_option
@json_option
def handover(session: str, wait_s: float, root: str | None, as_json: bool) -> None:
    """Have the process that has a session let go of it, so that another can open it.

    Its turn is stopped, what is owed is written, and the prompts that waited are
    given back.  ID is the session's id, or its first characters.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.reaching import hand_over

    launch(lambda interrupts: hand_over(workspace(root), session, wait_s, _form(as_json)))


@click.command("follow")
@click.argument("session", metavar="ID")
@click.option("--all", "from_start", is_flag=True, help="Begin with what is there already.")
@root_option
@json_option
def follow(session: str, from_start: bool, root: str | None, as_json: bool) -> None:
    """Show a session as it is written, by whatever process, until Ctrl-C.

    With --json one object an entry.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.reaching import follow_session

    since: Literal["start", "now"] = "start" if from_start else "now"
    launch(lambda interrupts: follow_session(workspace(root), session, since, _form(as_json)))


def _form(as_json: bool) -> Literal["json", "text"]:
    return "json" if as_json else "text"
