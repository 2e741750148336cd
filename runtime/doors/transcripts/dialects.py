"""Which dialect a transcript is written in, and how an older one reads in the present one.

Read are: pi v3 (ours), pi v2 and v1, and the version 1 of an editor plugin, whose
entries are those of v3 under a lower number.  Lines that need no change keep
their bytes.
"""

import json
from typing import Annotated, Any, Literal

import msgspec

from tenure.runtime.doors.transcripts.codec import DIALECT_VERSION, Header, encode_value, portable


class Unreadable(Exception):
    """The file is no transcript that this version can read.

    The message is the reason, for people, without the path.
    """


def read_header(line: bytes, *, terminated: bool) -> Header:
    """The header in the first line of a file.

    Raises:
        Unreadable: there is none, or it is of a version that we do not know.
    """
    if not line and not terminated:
        raise Unreadable("the file is empty")
    try:
        return _decode_present(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_odd_header(line, terminated)


class _Present(Header, frozen=True, kw_only=True, tag_field="type", tag="session"):
    """A header as the present dialect has it."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    version: Literal[3]


_decode_present = msgspec.json.Decoder(_Present).decode


def _read_odd_header(line: bytes, terminated: bool) -> Header:
    """The header of another version, or the reason why it is none."""
    try:
        fields = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unreadable("it is not a text file") from None
    except (ValueError, RecursionError):
        raise Unreadable(_no_header(line, terminated)) from None
    if not isinstance(fields, dict) or fields.get("type") != "session":
        raise Unreadable("its first line is not a session header")
    return _checked(portable(fields))


def _no_header(line: bytes, terminated: bool) -> str:
    if line and not line.strip(b"\0"):
        return "it holds only zero bytes: the disk lost it"
    if b"\0" in line:
        return "it is not a text file"
    if not terminated and line.startswith(b"{"):
        return "its first line was cut off, and there is no other"
    return "its first line is not a session header"


def _checked(fields: dict[str, Any]) -> Header:
    session_id = fields.get("id")
    if not isinstance(session_id, str) or not session_id:
        raise Unreadable("its header names no session id")
    version = fields.get("version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Unreadable(f"its header has the version {version!r}, which is no version")
    if version > DIALECT_VERSION:
        raise Unreadable(
            f"it was written in version {version} of the dialect, and this program reads up to "
            f"{DIALECT_VERSION}; update tenure"
        )
    timestamp, cwd = fields.get("timestamp"), fields.get("cwd")
    return Header(
        id=session_id,
        version=version,
        timestamp=timestamp if isinstance(timestamp, str) else "",
        cwd=cwd if isinstance(cwd, str) else "",
    )


def converted(header: Header, lines: list[bytes]) -> list[bytes]:
    """The lines in the present dialect; the same list where they are in it already.

    The number of lines stays the same; a line that cannot be read stays as it is.
    """
    if header.version == DIALECT_VERSION:
        return lines
    fields = json.loads(lines[0].decode("utf-8"))
    result = [encode_value(portable(fields | {"version": DIALECT_VERSION}))]
    ids: list[str | None] = [None]  # by index among the readable lines, the header first
    previous: str | None = None
    for number, line in enumerate(lines[1:], start=2):
        entry = _entry_of(line)
        if entry is None:
            result.append(line)
            continue
        changes = _changes(entry, number, previous, ids)
        previous = changes.get("id", entry.get("id"))
        ids.append(previous)
        result.append(encode_value(portable(_merged(entry, changes))) if changes else line)
    return result


def _entry_of(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        return None
    return entry


def _changes(
    entry: dict[str, Any], number: int, previous: str | None, ids: list[str | None]
) -> dict[str, Any]:
    """The fields of an entry that differ in the present dialect; empty for none."""
    changes: dict[str, Any] = {}
    if not isinstance(entry.get("id"), str):
        # pi v1 has no ids: the entries are one chain in file order.  The line
        # number gives the same id each time the file is read.
        changes |= {"id": f"{number:08x}", "parentId": previous}
    kept = entry.get("firstKeptEntryIndex")
    if entry["type"] == "compaction" and isinstance(kept, int) and 0 <= kept < len(ids):
        changes["firstKeptEntryId"] = ids[kept]
    message = entry.get("message")
    if isinstance(message, dict) and message.get("role") == "hookMessage":
        changes["message"] = message | {"role": "custom"}
    return changes


def _merged(entry: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = entry | changes
    if "firstKeptEntryId" in changes:
        merged.pop("firstKeptEntryIndex", None)
    return {"type": merged.pop("type"), **merged}
