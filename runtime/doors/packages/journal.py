"""The journal: the one open transaction, and which backup serves while it is open.

It is replaced whole and durable before anything is moved, and removed when all is
recorded.  Readers look into it; only the holder of the claim acts on it.

These functions block: they run in a worker.
"""

import msgspec

from tenure.runtime.doors.claims import replace_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.disk import above, read_file
from tenure.runtime.doors.packages.layout import Layout

JOURNAL_BYTES_MAX = 65_536


class Placing(msgspec.Struct, frozen=True, kw_only=True, tag="placing", tag_field="step"):
    """`incoming` takes the target's place, whose copy goes to `backup`.

    It is done when the target's seal bears `incoming_job`.
    """

    job: str
    name: str
    incoming: str
    incoming_job: str
    backup: str
    """Empty where there was no target."""


class Removing(msgspec.Struct, frozen=True, kw_only=True, tag="removing", tag_field="step"):
    """The target goes to `backup`, which still serves."""

    job: str
    name: str
    backup: str


class Removed(msgspec.Struct, frozen=True, kw_only=True, tag="removed", tag_field="step"):
    """The removal is decided: its copies are superfluous, all of these."""

    job: str
    name: str
    copies: tuple[str, ...]


Journal = Placing | Removing | Removed


class DamagedJournal(msgspec.Struct, frozen=True):
    """There is a journal, and it cannot be read."""


def read_journal(files: Files, layout: Layout) -> Journal | DamagedJournal | None:
    data = read_file(files, layout.journal, JOURNAL_BYTES_MAX)
    if data is None:
        return None
    try:
        journal: Journal = msgspec.json.decode(data, type=Journal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return DamagedJournal()
    return journal


def write_journal(files: Files, layout: Layout, journal: Journal) -> None:
    replace_durably(files, layout.journal, msgspec.json.encode(journal) + b"\n")


def close_journal(files: Files, layout: Layout) -> None:
    files.remove(layout.journal)
    files.sync_folder(above(layout.journal))


def backup_of(journal: Journal | DamagedJournal | None, name: str) -> str:
    """The folder that serves a name whose target is missing; empty where none does."""
    match journal:
        case Placing(name=placed, backup=backup) | Removing(name=placed, backup=backup):
            return backup if placed == name else ""
        case _:
            return ""
