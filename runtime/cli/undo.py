"""`tenure undo`: the last change that a tool of a session made to files is taken back."""

from functools import partial

import click

from tenure.runtime.cli.compact import session_given
from tenure.runtime.cli.options import json_option, root_option


@click.command("undo")
@root_option
@click.option("--session", metavar="ID", help="This session; its first characters do.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--force", is_flag=True, help="Also where a file changed since; that is kept.")
@json_option
def command(
    root: str | None, session: str | None, dry_run: bool, force: bool, as_json: bool
) -> None:
    """Take back the last change that a tool of a session made to files.

    Without --session it is the newest.  A file that somebody changed since is
    left alone and shown, unless it is forced.

    \b
    Exit codes
      0  undone, or shown
      3  refused: there is nothing to undo, the file changed since, ...
    """
    from tenure.runtime.cli.compacting import on_session
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.undoing import show_undo, undo

    conversation = session_given(root, session, as_json)
    work = show_undo if dry_run else partial(undo, "overwrite" if force else "refuse")
    launch(lambda interrupts: on_session(conversation, interrupts, work))
