"""`tenure replay`: step a recorded trace again, and compare."""

import click

from tenure.runtime.cli.options import json_option


@click.command("replay")
@click.argument("file", metavar="FILE")
@json_option
def command(file: str, as_json: bool) -> None:
    """Step the trace in FILE again and say whether the owners decide as recorded.

    Each owner's messages go through its step function of this version, from its
    first state.  Nothing is opened, run or written.

    \b
    Exit codes
      0  every step decided what it had decided
      1  an owner decides otherwise: its first difference is shown; or no trace
    """
    from tenure.runtime.cli.hosting import launch
    from tenure.runtime.cli.replaying import replay_file

    launch(lambda interrupts: replay_file(file, "json" if as_json else "text"))
