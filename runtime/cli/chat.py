"""`tenure chat`: turn after turn on one session."""

from typing import Any

import click

from tenure.runtime.cli.options import conversation_of, conversation_options


@click.command("chat")
@conversation_options
def command(**options: Any) -> None:
    """Talk: every line is a prompt.

    Ctrl-C stops the running turn, and a second one leaves.  /help lists the
    other commands.  Through a pipe each line waits for the turn before it.
    """
    conversation = conversation_of(**options)

    from tenure.runtime.cli.chatting import chat
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: chat(conversation, interrupts))
