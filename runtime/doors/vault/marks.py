"""Who was at work and left no handoff: the marks of sessions.

A live seat leaves a mark of its own: the seat record of its host, with the claim of its
session.  Where the host is dead and nobody has taken the session over, the session died.
A checkpoint leaves a mark in `.tenure/marks/`, and ClawVault its flag.  A mark is over
when the journal says so, of the mark as it is now.

These functions block: they run in a worker.
"""

from contextlib import suppress
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from tenure.messages.handoff import Checkpoint, Notice
from tenure.runtime.doors.claims import (
    ClaimRecord,
    make_folders_durably,
    read_record,
    replace_durably,
)
from tenure.runtime.doors.safe_names import safe_name
from tenure.runtime.doors.vault.checkpoints import newest_checkpoint, read_checkpoint
from tenure.runtime.doors.vault.clawvault import clawvault_checkpoint, read_flag
from tenure.runtime.doors.vault.journal import Journal
from tenure.runtime.doors.vault.names import digest_of, iso
from tenure.runtime.doors.vault.paths import VaultGround, reason_of
from tenure.runtime.doors.vault.records import MarkName
from tenure.runtime.doors.vault.spans import session_paths

CLAWVAULT = "clawvault"
NO_HANDOFF = "it left no handoff: what was not written down may be lost"
RECORD_BYTES_MAX = 65_536


class StoredMark(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a checkpoint's mark."""

    id: str
    session: str
    checkpoint: str
    """The name of the checkpoint's file."""
    at_ms: int


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One mark as it was found."""

    name: MarkName
    kind: str
    session: str
    at: str
    checkpoint: str = ""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The marks that stand, and what could not be read."""

    marks: tuple[Mark, ...]
    skipped: tuple[str, ...]


class _SeatRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: str


# --- finding ------------------------------------------------------------------------------------


def find_marks(ground: VaultGround, journal: Journal, session: str | None = None) -> Found:
    """The marks that are not over.

    Args:
        session: only this session's, a live seat's too; by default all that mean that
            a session died.
    """
    marks: list[Mark] = []
    skipped: list[str] = []
    _seat_marks(ground, session, marks, skipped)
    _checkpoint_marks(ground, session, marks, skipped)
    if session is None:
        _clawvault_mark(ground, marks, skipped)
    standing = [each for each in marks if each.name not in journal.over]
    return Found(marks=tuple(standing), skipped=tuple(skipped))


def notices_of(ground: VaultGround, journal: Journal) -> tuple[tuple[Notice, ...], tuple[str, ...]]:
    """The sessions that died, the newest last, and what could not be read."""
    found = find_marks(ground, journal)
    delivered = {name for brief in journal.open_briefs() for name in brief.record.notices}
    notices, skipped = [], list(found.skipped)
    for mark in found.marks:
        checkpoint, passed = _checkpoint_of(ground, mark)
        skipped += (each for each in passed if each not in skipped)
        notices.append(
            Notice(
                id=mark.name.id,
                digest=mark.name.digest,
                kind=mark.kind,  # type: ignore[arg-type]
                session=mark.session,
                since=mark.at,
                state="delivered" if mark.name in delivered else "pending",
                checkpoint=checkpoint,
                warning=NO_HANDOFF,
            )
        )
    return tuple(sorted(notices, key=lambda each: each.since)), tuple(skipped)


def _seat_marks(
    ground: VaultGround, session: str | None, marks: list[Mark], skipped: list[str]
) -> None:
    hosts = f"{ground.home}/hosts"
    for host, kind in _listed(ground, hosts, skipped):
        if kind != "folder":
            continue
        for record, _ in _listed(ground, f"{hosts}/{host}/seats", skipped):
            if not record.endswith(".json"):
                continue
            path = f"{hosts}/{host}/seats/{record}"
            try:
                data = _read(ground, path)
                session_id = msgspec.json.decode(data, type=_SeatRecord).session_id
            except OSError as error:
                skipped.append(f"{path}: {reason_of(error)}")
                continue
            except (msgspec.MsgspecError, UnicodeDecodeError):
                skipped.append(f"{path}: it is damaged")
                continue
            if session is None or session == session_id:
                marks += _of_seat(ground, unquote(host), record, session_id, session is None)


def _of_seat(
    ground: VaultGround, host_id: str, record: str, session_id: str, of_dead: bool
) -> tuple[Mark, ...]:
    claim = _claim(ground, session_id)
    if claim is None or claim.parked is not None or claim.holder.host_id != host_id:
        return ()  # it was left in order, or somebody has taken the session over
    if of_dead and ground.leaves.processes.alive(claim.holder.process):
        return ()
    path = session_paths(ground, session_id).get(session_id)
    size = 0
    if path is not None:
        with suppress(OSError):
            size = ground.files.stat(path).size
    seat = unquote(record.removesuffix(".json"))
    # What the session holds is part of the mark: a handoff closes it up to there.
    digest = digest_of(f"{claim.epoch}\n{size}".encode())
    mark_id = f"seat-{digest_of(f'{host_id}/{seat}/{session_id}'.encode())[:16]}"
    name = MarkName(id=mark_id, digest=digest)
    at = iso(claim.holder.since_ms)
    return (Mark(name=name, kind="seat", session=session_id, at=at),)


def _checkpoint_marks(
    ground: VaultGround, session: str | None, marks: list[Mark], skipped: list[str]
) -> None:
    for name, _ in _listed(ground, ground.marks, skipped):
        if not name.endswith(".json"):
            continue
        try:
            data = _read(ground, f"{ground.marks}/{name}")
            stored = msgspec.json.decode(data, type=StoredMark)
        except OSError as error:
            skipped.append(f"{ground.marks}/{name}: {reason_of(error)}")
            continue
        except (msgspec.MsgspecError, UnicodeDecodeError):
            # Something stood there: that a session was at work is all that is known.
            skipped.append(f"{ground.marks}/{name}: it is damaged")
            stored = StoredMark(id=name.removesuffix(".json"), session="", checkpoint="", at_ms=0)
        if session is not None and stored.session != session:
            continue
        if session is None and _is_live(ground, stored.session):
            continue
        marks.append(
            Mark(
                name=MarkName(id=stored.id, digest=digest_of(data)),
                kind="checkpoint",
                session=stored.session,
                at=iso(stored.at_ms),
                checkpoint=stored.checkpoint,
            )
        )


def _clawvault_mark(ground: VaultGround, marks: list[Mark], skipped: list[str]) -> None:
    try:
        flag = read_flag(ground)
    except OSError as error:
        skipped.append(f"ClawVault's flag: {reason_of(error)}")
        return
    if flag is not None:
        name = MarkName(id=CLAWVAULT, digest=flag.digest)
        marks.append(Mark(name=name, kind=CLAWVAULT, session="", at=flag.since))


def _checkpoint_of(ground: VaultGround, mark: Mark) -> tuple[Checkpoint | None, tuple[str, ...]]:
    if mark.kind == CLAWVAULT:
        return clawvault_checkpoint(ground)
    if mark.kind != "checkpoint":
        return None, ()
    try:
        if mark.checkpoint:
            return as_found(read_checkpoint(ground, mark.checkpoint)), ()
        problem = "its mark does not say which it is"
    except OSError as error:
        problem = reason_of(error)
    except ValueError as error:
        problem = str(error)
    skipped = (f"checkpoint {mark.checkpoint}: {problem}",)
    try:
        newest, passed = newest_checkpoint(ground)
    except OSError as error:
        return None, (*skipped, reason_of(error))
    return (as_found(newest) if newest else None), (*skipped, *passed)


def as_found(stored: Checkpoint) -> Checkpoint:
    """A stored checkpoint without what only its file has."""
    return Checkpoint(**{name: getattr(stored, name) for name in Checkpoint.__struct_fields__})


# --- setting and removing ------------------------------------------------------------------------


def set_mark(ground: VaultGround, journal: Journal, stored: StoredMark) -> StoredMark:
    """Note that a session is at work; durable when this returns.  The claim is held.

    A mark of this session that was delivered belongs to one that died: it stays, and a
    new one is made.

    Raises:
        OSError: the mark is as it was.
    """
    told = {name.id for each in journal.briefs.values() for name in each.record.notices}
    for mark in find_marks(ground, journal, stored.session).marks:
        if mark.kind == "checkpoint" and mark.name.id not in told:
            stored = replace(stored, id=mark.name.id)
    make_folders_durably(ground.files, ground.marks)
    data = msgspec.json.encode(stored) + b"\n"
    replace_durably(ground.files, _path(ground, stored.id), data)
    return stored


def remove_marks(ground: VaultGround, names: tuple[MarkName, ...]) -> None:
    """Remove the files of marks that are over, as far as they can be removed: the journal
    says that they are over, and the next writer tries again."""
    for name in names:
        with suppress(OSError):
            path = _path(ground, name.id)
            if digest_of(_read(ground, path)) == name.digest:
                ground.files.remove(path)


def _path(ground: VaultGround, mark_id: str) -> str:
    return f"{ground.marks}/{safe_name(mark_id)}.json"


def _claim(ground: VaultGround, session_id: str) -> ClaimRecord | None:
    path = f"{ground.home}/claims/sessions/{safe_name(session_id)}"
    try:
        found = read_record(ground.files, path)
    except OSError:
        return None
    return found if isinstance(found, ClaimRecord) else None


def _is_live(ground: VaultGround, session_id: str) -> bool:
    claim = _claim(ground, session_id) if session_id else None
    if claim is None or claim.parked is not None:
        return False
    return ground.leaves.processes.alive(claim.holder.process)


def _listed(ground: VaultGround, folder: str, skipped: list[str]) -> tuple[tuple[str, str], ...]:
    try:
        return ground.files.list(folder)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        skipped.append(f"{folder}: {reason_of(error)}")
        return ()


def _read(ground: VaultGround, path: str) -> bytes:
    file = ground.files.open(path, "read")
    try:
        return file.read_at(0, RECORD_BYTES_MAX)
    finally:
        file.close()
