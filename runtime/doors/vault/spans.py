"""How far into a session a handoff reaches, and what came after it.

Sessions are only looked at: their transcripts belong to the transcript door.

These functions block: they run in a worker.
"""

import msgspec

from tenure.messages.handoff import SessionLink
from tenure.runtime.doors.files import File
from tenure.runtime.doors.safe_names import TRANSCRIPT_SUFFIX, named_session
from tenure.runtime.doors.vault.paths import VaultGround

LINE_BYTES_MAX = 16_777_216
_PART_BYTES = 65_536


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Our own field of an entry."""

    epoch: int = 0
    seq: int = 0


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """As much of an entry as tells where it stands."""

    type: str = ""
    id: str = ""
    tenure: _Place = _Place()


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What a session holds behind the last entry that a handoff covers."""

    entries: int
    """-1 where the covered entry is not in the transcript any more."""


def session_paths(ground: VaultGround, text: str) -> dict[str, str]:
    """The transcripts of the sessions whose id is, or begins with, this text."""
    try:
        names = ground.files.list(f"{ground.home}/sessions")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found = {
        session: f"{ground.home}/sessions/{name}"
        for name, _ in names
        if name.endswith(TRANSCRIPT_SUFFIX)
        and (session := named_session(name)).startswith(text)
        and session
    }
    return {text: found[text]} if text in found else found


def link_of(
    ground: VaultGround, session_id: str, path: str, after: SessionLink | None
) -> SessionLink:
    """The session up to its last complete line.

    Args:
        after: where the handoff before this one ended.

    Raises:
        OSError: the transcript cannot be read.
    """
    file = ground.files.open(path, "read")
    try:
        end = _end_of_lines(file, file.stat().size)
        last = _entry_before(file, end)
        begins = after.bytes if after is not None and _covers(file, after, end) else 0
        return SessionLink(
            session_id=session_id,
            epoch=last.tenure.epoch,
            first_entry=_first_entry(file, begins, end),
            last_entry=last.id,
            entries=last.tenure.seq,
            bytes=end,
        )
    finally:
        file.close()


def gap_after(ground: VaultGround, link: SessionLink) -> Gap:
    """The entries behind the last one that is covered.

    Raises:
        OSError: the transcript cannot be read.
    """
    path = session_paths(ground, link.session_id).get(link.session_id)
    if path is None:
        return Gap(entries=-1)
    file = ground.files.open(path, "read")
    try:
        size = file.stat().size
        if _covers(file, link, size):
            return Gap(entries=_newlines(file, link.bytes, size))
        data = file.read_at(0, size)
    finally:
        file.close()
    # The file was written anew: the entry is looked for where it stands now.
    at = data.find(f'"id":"{link.last_entry}"'.encode()) if link.last_entry else -1
    return Gap(entries=-1 if at < 0 else max(0, data[at:].count(b"\n") - 1))


def _covers(file: File, link: SessionLink, end: int) -> bool:
    """Whether the covered part still ends with the entry that it ended with."""
    if not 0 < link.bytes <= end:
        return False
    return _entry_before(file, link.bytes).id == link.last_entry


def _end_of_lines(file: File, size: int) -> int:
    """The end of the last line that has its newline."""
    at = size
    while at > 0:
        begin = max(0, at - _PART_BYTES)
        found = file.read_at(begin, at - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        at = begin
    return 0


def _entry_before(file: File, end: int) -> _Entry:
    """The entry whose line ends there; an empty one where that is none."""
    begin, line = end - 1, b""
    while begin > 0 and len(line) < LINE_BYTES_MAX:
        part_begin = max(0, begin - _PART_BYTES)
        part = file.read_at(part_begin, begin - part_begin)
        found = part.rfind(b"\n")
        line = part[found + 1 :] + line
        if found >= 0:
            break
        begin = part_begin
    return _decoded(line)


def _first_entry(file: File, begin: int, end: int) -> str:
    """The id of the first entry from there on; the header is none."""
    at = begin
    while at < end:
        line = _line_at(file, at, end)
        entry = _decoded(line)
        if entry.type != "session" and entry.id:
            return entry.id
        at += len(line) + 1
    return ""


def _line_at(file: File, begin: int, end: int) -> bytes:
    line = b""
    while begin + len(line) < end and len(line) < LINE_BYTES_MAX:
        part = file.read_at(begin + len(line), min(_PART_BYTES, end - begin - len(line)))
        text, newline, _ = part.partition(b"\n")
        line += text
        if newline or not part:
            break
    return line


def _newlines(file: File, begin: int, end: int) -> int:
    count, at = 0, begin
    while at < end:
        part = file.read_at(at, min(_PART_BYTES, end - at))
        if not part:
            break
        count += part.count(b"\n")
        at += len(part)
    return count


def _decoded(line: bytes) -> _Entry:
    try:
        return msgspec.json.decode(line, type=_Entry)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Entry()
