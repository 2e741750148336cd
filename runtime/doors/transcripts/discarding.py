"""Deleting sessions: their files are moved out of the list, durably, and can be moved back.

These functions block: they run in a worker.
"""

from contextlib import suppress

from tenure.messages.session import SessionInUse, SessionNotFound, StorageFailed
from tenure.messages.session_ops import SessionDeleted, SessionsCleared
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import ClaimBusy, make_folders_durably, sync_name
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.layout import header_id
from tenure.runtime.doors.transcripts.storage import folder_of, free_name, reason_of
from tenure.runtime.doors.transcripts.writing import release_claim

NotDiscarded = SessionNotFound | SessionInUse | StorageFailed


def discard(ground: Ground, session_id: SessionId) -> SessionDeleted | NotDiscarded:
    """Move one session to the trash, with what lies beside its file; nobody may have it open."""
    path = ""
    try:
        path = ground.layout.find(ground.leaves.files, session_id) or ""
    except OSError as error:
        return StorageFailed(path=ground.layout.sessions, reason=reason_of(error))
    if not path:
        return SessionNotFound(session_id=session_id, searched=ground.layout.sessions)
    return _discard_path(ground, session_id, path)


def discard_all(ground: Ground) -> SessionsCleared | StorageFailed:
    """Move every session that nobody has open.  What cannot be read is left alone."""
    try:
        ids = ground.layout.session_ids(ground.leaves.files)
    except OSError as error:
        return StorageFailed(path=ground.layout.sessions, reason=reason_of(error))
    deleted: list[SessionId] = []
    in_use: list[SessionId] = []
    failed: list[str] = []
    for named, path in ids.items():
        # Who has a renamed file open claims it by the id in its header.
        session_id = SessionId(header_id(ground.leaves.files, path) or named)
        match _discard_path(ground, session_id, path):
            case SessionDeleted():
                deleted.append(session_id)
            case SessionInUse():
                in_use.append(session_id)
            case SessionNotFound():
                pass  # another process deleted it meanwhile
            case StorageFailed(path=where, reason=reason):
                failed.append(f"{where}: {reason}")
    return SessionsCleared(
        deleted=tuple(deleted),
        kept_at=ground.layout.trash,
        in_use=tuple(in_use),
        failed=tuple(failed),
    )


def _discard_path(
    ground: Ground, session_id: SessionId, path: str
) -> SessionDeleted | NotDiscarded:
    seat = ground.seats.get(session_id)
    if seat is not None:  # guard: SESSION-5
        return SessionInUse(session_id=session_id, holder=ground.claims.me(), seat=seat)
    try:
        taken = ground.claims.take(ground.layout.claim(session_id))
    except OSError as error:
        return StorageFailed(path=path, reason=f"it cannot be claimed: {reason_of(error)}")
    if isinstance(taken, ClaimBusy):  # guard: CLAIM-1
        return SessionInUse(session_id=session_id, holder=taken.holder)
    try:
        kept_at = _move(ground.leaves.files, path, ground.layout.trash)
    except FileNotFoundError:
        return SessionNotFound(session_id=session_id, searched=ground.layout.sessions)
    except OSError as error:
        return StorageFailed(path=path, reason=reason_of(error))
    finally:
        release_claim(taken)
    return SessionDeleted(session_id=session_id, kept_at=kept_at)


def _move(files: Files, path: str, trash: str) -> str:
    """Move a transcript and its companions; the transcript goes first: then it is deleted."""
    files.stat(path)
    make_folders_durably(files, trash)
    sync_name(files, trash)
    name = path.rpartition("/")[2]
    kept_at = free_name(files, f"{trash}/{name}")
    files.rename(path, kept_at)
    try:
        files.sync_folder(trash)
        files.sync_folder(folder_of(path))
    except OSError:
        # Said to be there still: so it is.
        with suppress(OSError):
            files.rename(kept_at, path)
        raise
    with suppress(OSError):  # the session is deleted; these only keep it company
        for beside in companions(files, path):
            files.rename(beside, free_name(files, f"{kept_at}{beside.removeprefix(path)}"))
        files.sync_folder(trash)
        files.sync_folder(folder_of(path))
    return kept_at


def companions(files: Files, path: str) -> list[str]:
    """The files that lie beside a transcript: torn tails, backups, unfinished rewrites."""
    folder, _, name = path.rpartition("/")
    names = [each for each, kind in files.list(folder) if kind == "file"]
    return [f"{folder}/{each}" for each in names if each.startswith(f"{name}.")]


def other_copies(ground: Ground, path: str) -> tuple[str, ...]:
    """Every other file that is known to hold what a session said, or may hold it."""
    files, layout = ground.leaves.files, ground.layout
    found = list(companions(files, path))
    name = path.rpartition("/")[2]
    found += [each for each in _below(files, layout.trash) if name in each]
    for folder in (f"{layout.home}/checkpoints", f"{layout.home}/traces"):
        found += _below(files, folder)
    for other in layout.transcripts(files):
        if other != path and layout.parent_of(files, other) == path:
            found.append(other)
    return tuple(found)


def _below(files: Files, folder: str) -> list[str]:
    try:
        names = files.list(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found: list[str] = []
    for name, kind in names:
        path = f"{folder}/{name}"
        found += _below(files, path) if kind == "folder" else [path]
    return found
