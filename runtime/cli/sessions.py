"""`tenure sessions`: the sessions of a workspace: what looks at them, and what changes them."""

from typing import Literal

import click

from tenure.runtime.cli.options import json_option, root_option, workspace
from tenure.runtime.cli.remote import follow, handover
from tenure.runtime.cli.sessions_changing import changing_commands


@click.group("sessions")
def command() -> None:
    """List, show, search, export, check, follow and hand over the sessions of a workspace."""


command.add_command(follow)
command.add_command(handover)


@command.command("ls")
@root_option
@json_option
def list_them(root: str | None, as_json: bool) -> None:
    """List the sessions, the newest first: id, last message, messages, first words.

    With --json one object a session.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import list_sessions

    form = "json" if as_json else "text"
    launch(lambda interrupts: list_sessions(workspace(root), form))


@command.command("show")
@click.argument("session", metavar="ID")
@root_option
@json_option
def show(session: str, root: str | None, as_json: bool) -> None:
    """Show a session: the conversation as it stands, with what is damaged marked.

    ID is the session's id, its first characters, or its name.  With --json one object:
    every line of the file, and the messages as a model is shown them.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import show_session

    form = "json" if as_json else "text"
    launch(lambda interrupts: show_session(workspace(root), session, form))


@command.command("tree")
@click.argument("session", metavar="ID")
@root_option
@json_option
def tree(session: str, root: str | None, as_json: bool) -> None:
    """Show the branches of a session, one entry a line.

    `*` marks the conversation as it stands, `<` the entry that the next one hangs on.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import show_tree

    form = "json" if as_json else "text"
    launch(lambda interrupts: show_tree(workspace(root), session, form))


@command.command("search")
@click.argument("text")
@click.option("--titles", "scope", flag_value="titles", help="Look at names and first words only.")
@click.option(
    "--everything",
    "scope",
    flag_value="everything",
    default="everything",
    help="Look at everything that was said (the default).",
)
@root_option
@json_option
def search(
    text: str, scope: Literal["titles", "everything"], root: str | None, as_json: bool
) -> None:
    """Find sessions by what was said in them, whatever the case; the newest first."""
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import search_sessions

    form = "json" if as_json else "text"
    launch(lambda interrupts: search_sessions(workspace(root), text, scope, form))


@command.command("export")
@click.argument("session", metavar="ID")
@click.option("--dir", "folder", metavar="DIR", help="Write a file there; else print the text.")
@root_option
@json_option
def export(session: str, folder: str | None, root: str | None, as_json: bool) -> None:
    """Print a session as a Markdown document, or with --json as one JSON document.

    With --dir the document becomes a file there, named by title and time, and its
    path is printed.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import export_session

    kind: Literal["markdown", "json"] = "json" if as_json else "markdown"
    launch(lambda interrupts: export_session(workspace(root), session, kind, folder))


@command.command("verify")
@click.argument("session", metavar="[ID]", default="")
@root_option
@json_option
def verify(session: str, root: str | None, as_json: bool) -> None:
    """Check a transcript: lines, sums, ids, chain, epochs, and the results of tool calls.

    Without ID every session is checked.  Exits 0 where all is sound, else 1.  Nothing is
    changed.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import verify_session, verify_sessions

    form = "json" if as_json else "text"
    if session:
        launch(lambda interrupts: verify_session(workspace(root), session, form))
    else:
        launch(lambda interrupts: verify_sessions(workspace(root), form))


for each in changing_commands:
    command.add_command(each)
