"""`tenure sessions`: the commands that change sessions."""

from typing import Literal

import click

from tenure.runtime.cli.options import json_option, root_option, workspace

Position = Literal["at", "before"]


@click.command("rename")
@click.argument("session", metavar="ID")
@click.argument("name")
@root_option
@json_option
def rename(session: str, name: str, root: str | None, as_json: bool) -> None:
    """Give a session a name; an empty one takes its name away."""
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    form = "json" if as_json else "text"
    launch(lambda interrupts: changing.rename(workspace(root), session, name, form))


@click.command("fork")
@click.argument("session", metavar="ID")
@click.argument("entry", metavar="[ENTRY]", required=False)
@click.option("--before", "position", flag_value="before", help="Leave the entry itself out.")
@click.option("--name", default="", help="The name of the new session.")
@root_option
@json_option
def fork(
    session: str,
    entry: str | None,
    position: str | None,
    name: str,
    root: str | None,
    as_json: bool,
) -> None:
    """Begin a new session with a copy of another one, up to an entry, and print its id.

    ENTRY is an id from `tenure sessions tree`, or its first characters; without it
    the whole conversation is copied.
    """
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    form = "json" if as_json else "text"
    where: Position = "before" if position else "at"
    launch(lambda interrupts: changing.fork(workspace(root), session, entry, where, name, form))


@click.command("rewind")
@click.argument("session", metavar="ID")
@click.argument("entry", metavar="ENTRY", required=False)
@click.option("--before", "position", flag_value="before", help="Leave the entry itself out.")
@click.option("--beginning", is_flag=True, help="Go back to before the first message.")
@root_option
@json_option
def rewind(
    session: str,
    entry: str | None,
    position: str | None,
    beginning: bool,
    root: str | None,
    as_json: bool,
) -> None:
    """Let a session go on from an earlier entry; what came behind it stays in the file."""
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    if beginning == (entry is not None):
        raise click.UsageError("name an ENTRY, or give --beginning")
    form = "json" if as_json else "text"
    where: Position = "before" if position else "at"
    launch(lambda interrupts: changing.rewind(workspace(root), session, entry, where, form))


@click.command("rm")
@click.argument("sessions", metavar="ID...", nargs=-1, required=True)
@root_option
@json_option
def remove(sessions: tuple[str, ...], root: str | None, as_json: bool) -> None:
    """Delete sessions: their files are moved to .tenure/trash/sessions/."""
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    form = "json" if as_json else "text"
    launch(lambda interrupts: changing.remove(workspace(root), sessions, form))


@click.command("redact")
@click.argument("session", metavar="ID")
@click.option("--pattern", "patterns", multiple=True, help="A regular expression; repeatable.")
@click.option("--entry", "entries", multiple=True, help="An entry whose text goes; repeatable.")
@click.option("--with", "replacement", default="[redacted]", help="What is put in its place.")
@root_option
@json_option
def redact(
    session: str,
    patterns: tuple[str, ...],
    entries: tuple[str, ...],
    replacement: str,
    root: str | None,
    as_json: bool,
) -> None:
    """Take text out of a session for ever.

    The file is replaced and no copy of the old one is kept.  Other files that may
    hold the text are listed, and left alone.
    """
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    if not patterns and not entries:
        raise click.UsageError("say what is to go: --pattern REGEX or --entry ID")
    form = "json" if as_json else "text"
    launch(
        lambda interrupts: changing.redact(
            workspace(root), session, patterns, entries, replacement, form
        )
    )


@click.command("vacuum")
@click.argument("session", metavar="ID")
@root_option
@json_option
def vacuum(session: str, root: str | None, as_json: bool) -> None:
    """Leave the entries of other branches out of a session's file; the old file is kept."""
    from tenure.runtime.cli import changing
    from tenure.runtime.cli.hosting import launch

    form = "json" if as_json else "text"
    launch(lambda interrupts: changing.vacuum(workspace(root), session, form))


changing_commands = (rename, fork, rewind, remove, redact, vacuum)
