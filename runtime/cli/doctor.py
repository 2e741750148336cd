"""`tenure doctor`: what is wrong in a workspace, and what is safe to do about it."""

import click

from tenure.runtime.cli.options import json_option, root_option, workspace


@click.command("doctor")
@root_option
@json_option
def command(root: str | None, as_json: bool) -> None:
    """Look at the packages and the sessions of a workspace, and change nothing.

    \b
    Exit codes
      0  nothing is wrong
      1  something is; each finding says what is safe to do
    """
    from tenure.runtime.cli.doctoring import examine
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: examine(workspace(root), "json" if as_json else "text"))
