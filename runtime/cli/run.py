"""`tenure run`: one prompt, from start to end."""

import sys
from typing import Any

import click

from tenure.runtime.cli.options import conversation_of, conversation_options

PROMPT_BYTES_READ_MAX = 16 * 1024 * 1024
"""More of a piped prompt is not read; the turn's own bound is lower."""


@click.command("run")
@click.argument("prompt")
@conversation_options
def command(prompt: str, **options: Any) -> None:
    """Run one turn: PROMPT, or - to read it from stdin.

    The answer goes to stdout; tool calls and approvals to stderr.  Ctrl-C stops
    the turn; what was said and done until then stays in the session.  With
    --json every event is one line, the last one TurnEnded.

    \b
    Exit codes
      0    the model came to its end
      1    the turn failed, or was cut off
      3    refused: the session is in use, the model is not available, ...
      130  you stopped it
    """
    conversation = conversation_of(**options)
    text, stdin = prompt_of(prompt)

    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.running import run

    launch(lambda interrupts: run(conversation, text, stdin, interrupts))


def prompt_of(prompt: str) -> tuple[str, str]:
    """The text, and whether stdin is `free` or `taken`.  Bytes that are no text are replaced."""
    if prompt != "-":
        return prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "free"
    data = sys.stdin.buffer.read(PROMPT_BYTES_READ_MAX)
    return data.decode("utf-8", "replace"), "taken"
