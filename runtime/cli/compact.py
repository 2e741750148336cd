"""`tenure compact`: a summary takes the place of a session's older messages."""

from functools import partial

import click

from tenure.runtime.cli.options import (
    Conversation,
    Named,
    Newest,
    json_option,
    root_option,
    workspace,
)


@click.command("compact")
@root_option
@click.option("--session", metavar="ID", help="This session; its first characters do.")
@click.option(
    "--instructions", metavar="TEXT", default="", help="What the summary is to keep, in your words."
)
@json_option
def command(root: str | None, session: str | None, instructions: str, as_json: bool) -> None:
    """Put a summary in the place of the older messages of a session.

    Without --session it is the newest.  Nothing is deleted: the messages stay in
    the file, and `tenure uncompact` takes the summary back.  Who writes it is
    set by compaction.model in the settings; by default it is put together by
    rule.

    \b
    Exit codes
      0  compacted
      3  refused: there is nothing to compact, the session is in use, ...
    """
    from tenure.runtime.cli.compacting import compact, on_session
    from tenure.runtime.cli.hosting import launch

    conversation = session_given(root, session, as_json)
    work = partial(compact, instructions)
    launch(lambda interrupts: on_session(conversation, interrupts, work))


def session_given(root: str | None, session: str | None, as_json: bool) -> Conversation:
    return Conversation(
        root=workspace(root),
        start=Newest() if session is None else Named(text=session),
        model=None,
        base_url="",
        approve="deny",
        form="json" if as_json else "text",
    )
