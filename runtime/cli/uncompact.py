"""`tenure uncompact`: the last compaction of a session is taken back."""

import click

from tenure.runtime.cli.compact import session_given
from tenure.runtime.cli.options import json_option, root_option


@click.command("uncompact")
@root_option
@click.option("--session", metavar="ID", help="This session; its first characters do.")
@json_option
def command(root: str | None, session: str | None, as_json: bool) -> None:
    """Take the last compaction of a session back, while nothing follows it.

    Without --session it is the newest session.

    \b
    Exit codes
      0  the conversation is as it was
      3  refused: messages follow the summary, the session is in use, ...
    """
    from tenure.runtime.cli.compacting import on_session, uncompact
    from tenure.runtime.cli.hosting import launch

    conversation = session_given(root, session, as_json)
    launch(lambda interrupts: on_session(conversation, interrupts, uncompact))
