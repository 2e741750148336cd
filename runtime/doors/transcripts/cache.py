"""What is known of all sessions, in one file: derived, deletable at any time, never believed.

A row counts only for a file whose identity, size and times are as they were.  The
cache is read by everybody and written by commands that may write, under its claim;
who finds the claim taken leaves it to the other.
"""

import msgspec

from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import (
    ClaimBusy,
    Claims,
    make_folders_durably,
    replace_durably,
)
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.transcripts.storage import folder_of, read_all

VERSION = 1


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a list of sessions."""

    id: SessionId
    """Empty where the file cannot be read."""
    path: str
    created_ms: int
    updated_ms: int
    """The last message of user or model; else the header's time, else the file's."""
    name: str
    first_text: str
    """The first text of the user, on one line, shortened."""
    messages: int
    bytes: int
    damage: int
    """Damaged places; see `Damage.count`."""
    problem: str
    """Why the file cannot be read; empty where it can."""


Rows = dict[str, tuple[FileStat, SessionSummary]]
"""By path: the file as it was, and what was in it."""


class _Cache(msgspec.Struct, frozen=True):
    version: int
    rows: list[tuple[FileStat, SessionSummary]]


_decode = msgspec.json.Decoder(_Cache).decode


def read_rows(files: Files, path: str) -> Rows:
    """The rows of a cache file; none where it is missing, damaged, or of another version."""
    try:
        cache = _decode(read_all(files, path))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    if cache.version != VERSION:
        return {}
    return {row[1].path: row for row in cache.rows}


def write_rows(files: Files, claims: Claims, path: str, rows: Rows) -> None:
    """Replace the cache file; another process that does the same right now goes first.

    Raises:
        OSError: the old cache, or none, is in place.
    """
    taken = claims.take(path)
    if isinstance(taken, ClaimBusy):  # guard: CLAIM-1
        return
    try:
        make_folders_durably(files, folder_of(path))
        replace_durably(files, path, msgspec.json.encode(_Cache(VERSION, list(rows.values()))))
    finally:
        taken.release()


def forget_rows(files: Files, claims: Claims, path: str) -> None:
    """Remove the cache file: it may hold words that were taken out of a session.

    Raises:
        OSError: it may still be there.
    """
    try:
        files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    taken = claims.take(path)
    try:
        files.remove(path)
        files.sync_folder(folder_of(path))
    except FileNotFoundError:
        pass
    finally:
        if not isinstance(taken, ClaimBusy):
            taken.release()
