"""The files under `handoffs/` and the journal, brought together by whoever writes.

The journal holds the facts, the files are for people.  A file that somebody changed is a
revision, one that somebody added is a handoff, and one that is missing is made again.

These functions block: they run in a worker, under the vault's claim.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from tenure.messages.handoff import HandoffProblem
from tenure.runtime.doors.claims import make_folders_durably, replace_durably
from tenure.runtime.doors.files import FileStat
from tenure.runtime.doors.staged import TEMPORARY_PREFIX
from tenure.runtime.doors.vault.journal import Journal, Known
from tenure.runtime.doors.vault.markdown import read_handoff, render_handoff
from tenure.runtime.doors.vault.names import digest_of
from tenure.runtime.doors.vault.paths import VaultGround, reason_of
from tenure.runtime.doors.vault.records import HandoffRecord

FOLDER = "handoffs"
BY_FILE = "file"
READ_AGAIN_MAX = 32
RACY_MS = 2_000
"""A file that changed so shortly before it was read may change again unseen."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was read before."""

    size: int
    mtime_ns: int
    inode: int
    digest: str
    at_ms: int

    def is_still(self, found: FileStat) -> bool:
        same = (self.size, self.mtime_ns, self.inode) == (found.size, found.mtime_ns, found.inode)
        return same and found.mtime_ns // 1_000_000 < self.at_ms - RACY_MS


class Compared(msgspec.Struct, kw_only=True):
    """What the files say beside the journal."""

    records: list[HandoffRecord] = []
    """Revisions and additions, not yet numbered: 0."""
    missing: list[Known] = []
    problems: list[HandoffProblem] = []
    seen: dict[str, Seen] = {}


def compare(ground: VaultGround, journal: Journal, trust: dict[str, Seen]) -> Compared:
    """Look at every file; nothing is changed.

    Args:
        trust: files that need not be read again while they look the same.
    """
    compared = Compared(records=[], missing=[], problems=[], seen={})
    try:
        names = ground.names(FOLDER)
    except OSError as error:
        problem = HandoffProblem(kind="unreadable", where=FOLDER, text=reason_of(error))
        compared.problems.append(problem)
        return compared
    paths = [f"{FOLDER}/{name}" for name in names]
    for path in paths:
        _look_at(ground, journal, path, trust, compared)
    there = set(paths)
    moved = {record.revises for record in compared.records}
    compared.missing = [
        known
        for known in journal.handoffs.values()
        if known.last.path not in there and known.seq not in moved
    ]
    return compared


def _look_at(
    ground: VaultGround, journal: Journal, path: str, trust: dict[str, Seen], compared: Compared
) -> None:
    known = journal.paths.get(path)
    if known is not None and known.last.path != path:
        known = None
    try:
        before = trust.get(path)
        if known is not None and before is not None and before.digest == known.last.file_digest:
            found = ground.files.lstat(ground.at(path))
            if found.kind == "file" and before.is_still(found):
                compared.seen[path] = before
                return
        data, found = ground.read(path)
    except OSError as error:
        problem = HandoffProblem(kind="unreadable", where=path, text=reason_of(error))
        compared.problems.append(problem)
        return
    digest = digest_of(data)
    compared.seen[path] = Seen(
        size=found.size,
        mtime_ns=found.mtime_ns,
        inode=found.inode,
        digest=digest,
        at_ms=ground.leaves.clock.now_ms(),
    )
    if known is None or known.last.file_digest != digest:
        compared.records.append(_record(ground, journal, path, data, digest, known))


def _record(
    ground: VaultGround, journal: Journal, path: str, data: bytes, digest: str, known: Known | None
) -> HandoffRecord:
    """What the file says, as a revision of what it was, or as a new handoff."""
    said = read_handoff(data)
    try:
        source, problem = data.decode(), said.problem
    except UnicodeDecodeError:
        source, problem = "", "it is not UTF-8: its bytes are in the file alone"
    if known is None:
        known = _moved_from(ground, journal, said.id)
    new_id = said.id if said.id and len(said.id) <= 64 else digest[:16]
    taken = {each.first.id for each in journal.handoffs.values()}
    if new_id in taken:
        new_id = digest_of(f"{path}\n{digest}".encode())[:16]
    return HandoffRecord(
        seq=0,
        id=known.first.id if known is not None else new_id,
        at_ms=ground.leaves.clock.now_ms(),
        text=said.text,
        path=path,
        file_digest=digest,
        digest=digest,
        author=BY_FILE,
        session=said.session,
        revises=known.seq if known is not None else 0,
        source=source,
        problem=problem,
    )


def _moved_from(ground: VaultGround, journal: Journal, handoff_id: str) -> Known | None:
    """The handoff that this file was, before somebody renamed it."""
    for known in journal.handoffs.values():
        if handoff_id and known.first.id == handoff_id and not is_there(ground, known.last.path):
            return known
    return None


def numbered(journal: Journal, records: list[HandoffRecord]) -> Iterator[HandoffRecord]:
    """The records with the numbers that follow."""
    for place, record in enumerate(records, journal.last_seq + 1):
        yield msgspec.structs.replace(record, seq=place)


# --- files ---------------------------------------------------------------------------------------


def bytes_of(record: HandoffRecord) -> bytes:
    """The file of a record, as it was written or found."""
    if record.author == BY_FILE:
        return record.source.encode()
    return render_handoff(
        record.text,
        handoff_id=record.id,
        seq=record.seq,
        at_ms=record.at_ms,
        author=record.author,
        session=record.session,
    )


def write_file(ground: VaultGround, record: HandoffRecord) -> None:
    """Make the readable file of a record, durably, and never over another.

    Raises:
        OSError: it is not there.
    """
    data = bytes_of(record)
    if digest_of(data) != record.file_digest:
        raise OSError(0, "the journal does not hold its bytes")
    ground.create(record.path, data)


def rebuild(ground: VaultGround, missing: list[Known]) -> list[HandoffProblem]:
    """Make lost files again; what could not be made."""
    problems = []
    _clear_stage(ground)
    for known in missing:
        try:
            write_file(ground, known.last)
        except FileExistsError:
            continue  # something unreadable has its name: it is reported as that
        except OSError as error:
            text = f"it is missing and was not made again: {reason_of(error)}"
            where = known.last.path
            problems.append(HandoffProblem(kind="missing", where=where, text=text))
    return problems


def _clear_stage(ground: VaultGround) -> None:
    """Remove the temporary files of writers that died: the claim is ours."""
    with suppress(OSError):
        folder = ground.inside(FOLDER)
        for name, kind in ground.files.list(folder):
            if name.startswith(TEMPORARY_PREFIX) and kind == "file":
                ground.files.remove(f"{folder}/{name}")


def is_there(ground: VaultGround, path: str) -> bool:
    """Whether there is anything under this name."""
    try:
        ground.files.lstat(ground.at(path))
    except OSError:
        return False
    return True


# --- what was read before ----------------------------------------------------------------------


def load_seen(ground: VaultGround) -> dict[str, Seen]:
    """What the cache knows; nothing where it is missing or damaged."""
    try:
        file = ground.files.open(f"{ground.cache}/handoffs.json", "read")
    except OSError:
        return {}
    try:
        return msgspec.json.decode(file.read_at(0, file.stat().size), type=dict[str, Seen])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    finally:
        file.close()


def save_seen(ground: VaultGround, trusted: dict[str, Seen], seen: dict[str, Seen]) -> None:
    """Keep it for the next time; where that fails, the files are read again.

    A few files are read again sooner than a cache is written.
    """
    if sum(trusted.get(path) != each for path, each in seen.items()) <= READ_AGAIN_MAX:
        return
    with suppress(OSError, UnicodeEncodeError):
        make_folders_durably(ground.files, ground.cache)
        replace_durably(ground.files, f"{ground.cache}/handoffs.json", msgspec.json.encode(seen))
