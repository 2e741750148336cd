"""`tenure`: the command line.

Every command is a module of its own, and loads what it needs when it is used:
`tenure --version` answers without the runtime.
"""

import io
import os
import sys
from importlib import import_module

import click

from tenure import __version__

COMMANDS = {
    "run": "tenure.runtime.cli.run",
    "chat": "tenure.runtime.cli.chat",
    "sessions": "tenure.runtime.cli.sessions",
    "compact": "tenure.runtime.cli.compact",
    "uncompact": "tenure.runtime.cli.uncompact",
    "undo": "tenure.runtime.cli.undo",
    "policy": "tenure.runtime.cli.policy:policy",
    "audit": "tenure.runtime.cli.policy:audit",
    "sleep": "tenure.runtime.cli.continuity:sleep",
    "wake": "tenure.runtime.cli.continuity:wake",
    "ack": "tenure.runtime.cli.continuity:ack",
    "checkpoint": "tenure.runtime.cli.continuity:checkpoint",
    "recover": "tenure.runtime.cli.continuity:recover",
    "handoffs": "tenure.runtime.cli.continuity:handoffs",
    "queue": "tenure.runtime.cli.queue:queue",
    "steer": "tenure.runtime.cli.queue:steer",
    "resume": "tenure.runtime.cli.queue:resume",
    "hosts": "tenure.runtime.cli.remote:hosts",
    "stop": "tenure.runtime.cli.remote:stop",
    "approvals": "tenure.runtime.cli.remote:approvals",
    "approve": "tenure.runtime.cli.remote:approve",
    "deny": "tenure.runtime.cli.remote:deny",
    "questions": "tenure.runtime.cli.questions:questions",
    "answer": "tenure.runtime.cli.questions:answer",
    "index": "tenure.runtime.cli.index",
    "plugin": "tenure.runtime.cli.plugin",
    "doctor": "tenure.runtime.cli.doctor",
    "trace": "tenure.runtime.cli.trace",
    "replay": "tenure.runtime.cli.replay",
    "invariants": "tenure.runtime.cli.invariants",
    "sim": "tenure.runtime.cli.sim",
}
"""Each command's module, and what it is called there: `command` where nothing is said."""

EXIT_INTERRUPTED = 130


class Commands(click.Group):
    """The commands by name, loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        found = getattr(import_module(module), name or "command")
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # before the command could take Ctrl-C over
            ctx.exit(EXIT_INTERRUPTED)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 partly done, 130 stopped by you.",
)
@click.version_option(__version__, prog_name="tenure")
def tenure() -> None:
    """Run agent conversations on the files of a folder, durably.

    A conversation is a session: one file under .tenure/sessions.  Every step of
    it is on disk before the next one begins, so a crash loses nothing.
    """


def main() -> None:
    """The entry point of the installed command."""
    _fill_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    tenure(prog_name="tenure")


def _fill_missing_streams() -> None:
    """Whoever starts us may have closed them; a session's file must not take their place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # gives the lowest free one: this
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


if __name__ == "__main__":
    main()
