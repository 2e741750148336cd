"""`tenure sessions`: look at the sessions of a workspace.  Nothing here writes."""

import click

from tenure.runtime.cli.options import json_option, root_option, workspace


@click.group("sessions")
def command() -> None:
    """Look at the sessions of a workspace; nothing is changed by it."""


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

    ID is the session's id, or its first characters.  With --json one object:
    every line of the file, and the messages as a model is shown them.
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.looking import show_session

    form = "json" if as_json else "text"
    launch(lambda interrupts: show_session(workspace(root), session, form))
