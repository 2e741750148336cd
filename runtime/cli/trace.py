"""`tenure trace`: keep what owners decide in a run, to be stepped again later."""

from typing import Any

import click

from tenure.runtime.cli.options import conversation_of, conversation_options
from tenure.runtime.cli.run import prompt_of


@click.group("trace")
def command() -> None:
    """Record what the owners of a run decide; `tenure replay` steps it again."""


@command.command("record")
@click.argument("file", metavar="FILE")
@click.argument("prompt")
@conversation_options
def record(file: str, prompt: str, **options: Any) -> None:
    """Run one turn, as `tenure run` does, and record every step of it in FILE.

    FILE must not exist.  It gets one JSON object a step: the message that an
    owner took, and what it decided.  It holds the whole conversation, so keep
    it as you keep a transcript.  The exit codes are those of `tenure run`.
    """
    conversation = conversation_of(**options)
    from tenure.runtime.doors.files import RealFiles

    files = RealFiles()
    path = files.real_path(file)
    try:
        files.lstat(path)
    except FileNotFoundError:
        pass
    else:
        raise click.UsageError(f"{file}: there is such a file; name one that does not exist")
    text, stdin = prompt_of(prompt)

    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.running import run

    launch(lambda interrupts: run(conversation, text, stdin, interrupts, trace=path))
