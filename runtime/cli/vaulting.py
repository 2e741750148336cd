"""How a command asks the HandoffActor: in this process, without an event loop."""

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import click
import msgspec

from tenure.messages.base import Command, Event, Refusal, Reply
from tenure.messages.handoff import VaultFailed
from tenure.runtime.doors.blocking import blocking_leaves
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.vault.names import one_line
from tenure.runtime.system_alone import handoff_alone

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REFUSED = 3
EXIT_PARTLY = 4

MARKER = ".clawvault.json"
"""ClawVault's: a folder with it is a vault."""


class Desk:
    """Where one command asks, and prints what it is told."""

    def __init__(self, given: dict[str, Any], tell: Callable[[Event], None] | None = None) -> None:
        self.as_json: bool = given["as_json"]
        leaves = blocking_leaves()
        self.root = vault_root(leaves, given["root"])
        self._alone = handoff_alone(
            leaves, self.root, tell if tell is not None else lambda event: None
        )

    def ask(self, command: Command) -> Reply:
        """Ask; a reply that says no is printed, and the command ends."""
        reply = self._alone.ask(command)
        if isinstance(reply, Refusal):
            if self.as_json:
                say_json(reply)
            else:
                note(reply.remedy)
            sys.exit(EXIT_FAILED if isinstance(reply, VaultFailed) else EXIT_REFUSED)
        return reply


def vault_root(leaves: Leaves, given: str | None) -> str:
    """The vault that is meant: the given one, else the nearest folder upward that is one."""
    files = leaves.files
    root = files.real_path(given if given is not None else ".")
    if given is None:
        folder = root
        while not _is_vault(leaves, folder) and folder != "/":
            folder = folder.rpartition("/")[0] or "/"
        root = folder if _is_vault(leaves, folder) else root
    try:
        kind = files.stat(root).kind
    except OSError as error:
        fail(f"{root}: {error.strerror}; name a folder that you can read")
    if kind != "folder":
        fail(f"{root}: this is a {kind}, not a folder; name a folder")
    return root


def _is_vault(leaves: Leaves, folder: str) -> bool:
    for name, kind in ((".tenure", "folder"), (MARKER, "file")):
        try:
            if leaves.files.stat(f"{folder.rstrip('/')}/{name}").kind == kind:
                return True
        except OSError:
            continue  # there is none here, or none that we may see
    return False


def say_json(value: Any) -> None:
    """One object, one line, at once."""
    try:
        line = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a name of the file system that is no Unicode
        line = json.dumps(msgspec.to_builtins(value))
    say(line)


def say(line: str) -> None:
    """A line of the answer; whoever reads it has it at once."""
    click.echo(line)
    sys.stdout.flush()


def say_items(heading: str, items: Iterable[str]) -> None:
    """A heading and its items, one a line; nothing where there are none."""
    lines = [f"  {one_line(item)}" for item in items]
    if lines:
        say("\n".join([heading, *lines]))


def note(text: str) -> None:
    """Something about the answer: stderr."""
    click.echo(one_line(text), err=True)


def fail(reason: str) -> NoReturn:
    note(f"tenure: {reason}")
    sys.exit(EXIT_FAILED)
