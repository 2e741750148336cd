"""A new session that begins with a copy of another one's path, byte for byte.

The records keep their ids, their stamps and their sums, which cover their own line
alone.  The file appears whole or not at all: nobody knows its name before that, so
it needs no claim.  These functions block: they run in a worker.
"""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from tenure.messages.entries import EntryBody, Record, SessionInfoEntry
from tenure.messages.session import SessionNotFound, SessionUnreadable, StorageFailed
from tenure.messages.session_ops import EntryNotFound, Position, SessionForked
from tenure.messages.tokens import EntryId, SessionId
from tenure.runtime.doors.claims import make_folders_durably, sync_name
from tenure.runtime.doors.transcripts.branches import Branch, branch_of, target_place
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.scan import scan
from tenure.runtime.doors.transcripts.storage import (
    PERMISSIONS,
    close_quietly,
    folder_of,
    read_all,
    reason_of,
    write_all,
)
from tenure.runtime.doors.transcripts.tree import Tree

NotForked = SessionNotFound | SessionUnreadable | StorageFailed | EntryNotFound


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be copied: an immutable snapshot of the source."""

    source: SessionId
    source_path: str
    lines: tuple[bytes, ...]
    """Of the entries, without newlines."""
    behind: tuple[EntryBody, ...]
    """Written anew, behind them."""
    leaf: EntryId | None
    epoch: int
    seq: int


def planned_fork(
    session_id: SessionId,
    path: str,
    tree: Tree,
    entry_id: str | None,
    position: Position,
    name: str,
) -> Fork | EntryNotFound:
    """Choose what a fork copies.

    Args:
        entry_id: None stands for the leaf.
        name: of the new session; empty keeps that of the old one.
    """
    place = target_place(tree, entry_id, position)
    if place is None:
        return EntryNotFound(session_id=session_id, entry_id=entry_id or "")
    branch = branch_of(tree, place)
    stamps = [head.tenure for at in branch.places if (head := tree.heads[at]).tenure]
    return Fork(
        source=session_id,
        source_path=path,
        lines=tuple(tree.lines[at] for at in branch.places),
        behind=_renamed(branch, name),
        leaf=EntryId(tree.heads[branch.places[-1]].id) if branch.places else None,
        epoch=max((stamp.epoch for stamp in stamps if stamp), default=1),
        seq=max((stamp.seq for stamp in stamps if stamp), default=0),
    )


def fork_stored(
    ground: Ground, session_id: SessionId, entry_id: str | None, position: Position, name: str
) -> SessionForked | NotForked:
    """Fork a session from its file, whoever has it open: reading needs no claim."""
    files = ground.leaves.files
    path = ""
    try:
        path = ground.layout.find(files, session_id) or ""
        if not path:
            return SessionNotFound(session_id=session_id, searched=ground.layout.sessions)
        found = scan(read_all(files, path))
    except OSError as error:
        return StorageFailed(path=path or ground.layout.sessions, reason=reason_of(error))
    except Unreadable as problem:
        return SessionUnreadable(path=path, reason=str(problem))
    fork = planned_fork(session_id, path, found.tree, entry_id, position, name)
    return fork if isinstance(fork, EntryNotFound) else write_fork(ground, fork)


def write_fork(ground: Ground, fork: Fork) -> SessionForked | StorageFailed:
    """Make the new session's file: temporary file, sync, rename, sync of the folder."""
    session_id = SessionId(ground.leaves.entropy.uuid())
    now_ms = ground.leaves.clock.now_ms()
    path = ground.layout.new_session(session_id, now_ms)
    header = encode_header(session_id, now_ms, ground.layout.root, fork.source_path)
    behind = [encode_record(each, fork.epoch) for each in _records(ground, fork, now_ms)]
    data = b"".join((header, *(line + b"\n" for line in fork.lines), *behind))
    try:
        _put_whole(ground, path, data)
    except OSError as error:
        return StorageFailed(path=path, reason=reason_of(error))
    entries = len(fork.lines) + len(behind)
    return SessionForked(session_id=session_id, path=path, entries=entries, source=fork.source)


def _put_whole(ground: Ground, path: str, data: bytes) -> None:
    files, folder = ground.leaves.files, folder_of(path)
    make_folders_durably(files, folder)
    sync_name(files, folder)
    temporary = f"{path}.tmp"
    file = files.open(temporary, "create", permissions=PERMISSIONS)
    try:
        try:
            write_all(file, data)
            file.sync()
        finally:
            close_quietly(file)
        files.rename(temporary, path)
        files.sync_folder(folder)
    except OSError:
        for name in (temporary, path):
            with suppress(OSError):
                files.remove(name)
        raise


def _records(ground: Ground, fork: Fork, now_ms: int) -> list[Record]:
    records: list[Record] = []
    parent = fork.leaf
    for number, body in enumerate(fork.behind, start=1):
        record = Record(
            id=EntryId(ground.leaves.entropy.fresh()),
            parent_id=parent,
            timestamp_ms=now_ms,
            seq=fork.seq + number,
            turn=0,
            key="",
            body=body,
        )
        records.append(record)
        parent = record.id
    return records


def _renamed(branch: Branch, name: str) -> tuple[EntryBody, ...]:
    if not name:
        return branch.behind
    others: Sequence[EntryBody] = [
        each for each in branch.behind if not isinstance(each, SessionInfoEntry)
    ]
    return (*others, SessionInfoEntry(name=name))
