"""Changing an open session other than by an append: another leaf, or another past.

Both move the epoch: the claim record first, so that no record of the new epoch is
ever in a file whose claim does not know it.  The functions that say "in a worker"
block and change the disk alone; the transcript in memory follows on the event loop.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from tenure.messages.entries import CustomEntry, MessageEntry, Record
from tenure.messages.session import (
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    StorageFailed,
)
from tenure.messages.session_ops import (
    BadPattern,
    EntryNotFound,
    NothingToRewrite,
    Position,
    Redact,
    Rewrite,
    SessionEmpty,
    SessionRewritten,
)
from tenure.messages.tokens import EntryId, SessionToken
from tenure.runtime.doors.claims import ClaimRecord
from tenure.runtime.doors.transcripts.branches import branch_of, lines_to_keep, target_place
from tenure.runtime.doors.transcripts.cache import forget_rows
from tenure.runtime.doors.transcripts.codec import encode_record
from tenure.runtime.doors.transcripts.conversation import interrupted
from tenure.runtime.doors.transcripts.discarding import other_copies
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.live import (
    Claimed,
    Doubtful,
    Grip,
    LiveTranscript,
    Planned,
)
from tenure.runtime.doors.transcripts.redacting import compiled, redacted
from tenure.runtime.doors.transcripts.repair import is_there, note_doubt
from tenure.runtime.doors.transcripts.scan import Scan, scan
from tenure.runtime.doors.transcripts.storage import (
    Changed,
    NotWritten,
    Uncertain,
    free_name,
    open_file,
    reason_of,
    replace_whole,
)
from tenure.runtime.doors.transcripts.tree import ROOT
from tenure.runtime.doors.transcripts.writing import Attempt, write_records

REWIND = "tenure/rewind"

NotAltered = (
    EntryNotFound
    | SessionEmpty
    | BadPattern
    | NothingToRewrite
    | StorageFailed
    | AppendFailed
    | AppendUnknown
    | ChangedOutside
)


def refusal_of_rewind(
    live: LiveTranscript, entry_id: EntryId | None, position: Position
) -> EntryNotFound | SessionEmpty | None:
    """Why the leaf cannot move there; None where it can.  No I/O."""
    if isinstance(live.grip, Planned):
        return SessionEmpty(session_id=live.session_id)
    if entry_id is None or target_place(live.tree, entry_id, position) is not None:
        return None
    return EntryNotFound(session_id=live.session_id, entry_id=entry_id)


def refusal_of_rewrite(
    live: LiveTranscript, rewrite: Rewrite
) -> EntryNotFound | SessionEmpty | BadPattern | None:
    """Why the file cannot be rewritten so; None where it can.  No I/O."""
    if isinstance(live.grip, Planned):
        return SessionEmpty(session_id=live.session_id)
    if not isinstance(rewrite, Redact):
        return None
    for entry_id in rewrite.entry_ids:
        if live.tree.place_of(entry_id) is None:
            return EntryNotFound(session_id=live.session_id, entry_id=entry_id)
    patterns = compiled(rewrite)
    return patterns if isinstance(patterns, BadPattern) else None


# --- another leaf --------------------------------------------------------------------------


def rewind_records(
    live: LiveTranscript,
    entry_id: EntryId | None,
    position: Position,
    fresh: Callable[[], str],
    now_ms: int,
) -> tuple[Record, ...]:
    """The record that moves the leaf, and results for the calls that would stand open there.

    Args:
        entry_id: None stands for the beginning: the next entry is a root.
    """
    place = ROOT if entry_id is None else target_place(live.tree, entry_id, position)
    assert place is not None, "the target was looked for before"
    parent = None if place == ROOT else EntryId(live.tree.heads[place].id)
    record = Record(
        id=EntryId(fresh()),
        parent_id=parent,
        timestamp_ms=now_ms,
        seq=live.seq + 1,
        turn=0,
        key="",
        body=CustomEntry(custom_type=REWIND, data={"from": live.tree.leaf}),
    )
    return (record, *_results(live, record, place, fresh))


def _results(
    live: LiveTranscript, rewind: Record, place: int, fresh: Callable[[], str]
) -> list[Record]:
    """A result for each call that has none on the path to a place: TURN-7 holds there, too."""
    records: list[Record] = []
    for at, call in live.conversation.open_calls(live.tree.path(to=place)):
        stamp = live.tree.heads[at].tenure
        record = Record(
            id=EntryId(fresh()),
            parent_id=records[-1].id if records else rewind.id,
            timestamp_ms=rewind.timestamp_ms,
            seq=rewind.seq + 1 + len(records),
            turn=stamp.turn if stamp else 0,
            key="",
            body=MessageEntry(message=interrupted(call, rewind.timestamp_ms)),
        )
        records.append(record)
    return records


def write_rewind(ground: Ground, live: LiveTranscript, records: tuple[Record, ...]) -> Attempt:
    """In a worker.  The transcript has its next epoch already."""
    problem = _claim_epoch(ground, live.grip, live.epoch)
    if problem is not None:
        return Attempt(result=problem, grip=live.grip)
    return write_records(ground, live, records)


def _claim_epoch(ground: Ground, grip: Grip, epoch: int) -> Uncertain | NotWritten | Changed | None:
    if not isinstance(grip, Claimed):
        reason = grip.reason if isinstance(grip, Doubtful) else "it has no file yet"
        return Uncertain(reason=reason)
    try:
        if not grip.claim.in_place() or not grip.file.is_as_left():  # guard: SESSION-3
            return Changed()
        grip.claim.write(ClaimRecord(epoch=epoch, holder=ground.claims.me()))
    except (OSError, ValueError) as error:
        return NotWritten(reason=reason_of(error) if isinstance(error, OSError) else str(error))
    return None


def next_epoch(live: LiveTranscript) -> int:
    """One more than the transcript and its claim have."""
    claim = live.grip.claim
    recorded = claim.record.epoch if claim is not None and claim.record is not None else 0
    return max(live.epoch, recorded) + 1


# --- another past --------------------------------------------------------------------------


class Rewritten(msgspec.Struct, frozen=True):
    """The file was replaced."""

    found: Scan
    grip: Grip
    reply: SessionRewritten


class NotRewritten(msgspec.Struct, frozen=True):
    refusal: NotAltered
    grip: Grip


def rewrite_file(
    ground: Ground, live: LiveTranscript, rewrite: Rewrite, epoch: int
) -> Rewritten | NotRewritten:
    """In a worker: replace the whole file.  Never raises."""
    grip = live.grip
    if not isinstance(grip, Claimed):
        reason = grip.reason if isinstance(grip, Doubtful) else "it has no file yet"
        return NotRewritten(AppendUnknown(reason=reason), grip)
    try:
        old = grip.file.read()
        lines, left = _new_lines(ground, scan(old), rewrite, epoch)
    except _Refused as refused:
        return NotRewritten(refused.refusal, grip)
    except OSError as error:
        return NotRewritten(StorageFailed(path=live.path, reason=reason_of(error)), grip)
    new = b"\n".join(lines) + b"\n"
    if new == old:
        return NotRewritten(NothingToRewrite(session_id=live.session_id), grip)
    match _claim_epoch(ground, grip, epoch):
        case Changed():
            return NotRewritten(ChangedOutside(path=live.path), grip)
        case NotWritten(reason=reason) | Uncertain(reason=reason):
            return NotRewritten(StorageFailed(path=live.path, reason=reason), grip)
        case None:
            return _replace(ground, live, grip, rewrite, epoch, old, new, left)


class _Refused(Exception):
    def __init__(self, refusal: NotAltered) -> None:
        super().__init__(refusal.remedy)
        self.refusal = refusal


def _new_lines(
    ground: Ground, found: Scan, rewrite: Rewrite, epoch: int
) -> tuple[list[bytes], tuple[int, ...]]:
    """The lines of the new file without newlines, and where patterns still match."""
    if isinstance(rewrite, Redact):
        done = redacted(found.old_lines, rewrite)
        if isinstance(done, BadPattern):
            raise _Refused(done)
        return done.lines, done.left_lines
    branch = branch_of(found.tree, found.tree.leaf_place)
    lines = lines_to_keep(found, branch)
    parent, now_ms = found.tree.leaf, ground.leaves.clock.now_ms()
    for number, body in enumerate(branch.behind, start=1):
        record = Record(
            id=EntryId(ground.leaves.entropy.fresh()),
            parent_id=parent,
            timestamp_ms=now_ms,
            seq=found.seq_max + number,
            turn=0,
            key="",
            body=body,
        )
        lines.append(encode_record(record, epoch)[:-1])
        parent = record.id
    return lines, ()


def _replace(
    ground: Ground,
    live: LiveTranscript,
    grip: Claimed,
    rewrite: Rewrite,
    epoch: int,
    old: bytes,
    new: bytes,
    left: tuple[int, ...],
) -> Rewritten | NotRewritten:
    files, path = ground.leaves.files, grip.file.path
    backup = ""
    try:
        mode = files.stat(path).mode
        if not isinstance(rewrite, Redact):
            backup = free_name(files, f"{path}.bak")
            replace_whole(files, backup, old, mode)
    except OSError as error:
        return NotRewritten(StorageFailed(path=path, reason=reason_of(error)), grip)
    try:
        replace_whole(files, path, new, mode)
        file = open_file(files, path)
    except OSError as error:
        return _half_replaced(ground, live, grip, reason_of(error))
    grip.file.close()
    found = scan(new, claim_epoch=epoch)
    reply = SessionRewritten(
        token=SessionToken(session_id=live.session_id, epoch=epoch),
        path=live.path,
        changed=_changed(old, new),
        bytes_before=len(old),
        bytes_after=len(new),
        backup=backup,
        left_lines=left,
        copies=_copies(ground, path) if isinstance(rewrite, Redact) else (),
    )
    return Rewritten(found, Claimed(claim=grip.claim, file=file), reply)


def _half_replaced(
    ground: Ground, live: LiveTranscript, grip: Claimed, reason: str
) -> NotRewritten:
    """The old file is in place, or the new one, and perhaps not durably."""
    try:
        untouched = grip.file.is_as_left()
    except OSError:
        untouched = False
    if untouched:
        return NotRewritten(StorageFailed(path=live.path, reason=reason), grip)
    note_doubt(ground, live.session_id)
    doubtful = Doubtful(claim=grip.claim, file=grip.file, reason=reason)
    return NotRewritten(AppendUnknown(reason=reason), doubtful)


def _changed(old: bytes, new: bytes) -> int:
    """How many lines of the old file are not in the new one as they were."""
    return len(set(old.split(b"\n")) - set(new.split(b"\n")))


def _copies(ground: Ground, path: str) -> tuple[str, ...]:
    """Where else the text may stand.  What is derived is not kept: the cache of names goes."""
    files, cache = ground.leaves.files, ground.layout.cache
    with suppress(OSError):
        forget_rows(files, ground.claims, cache)
    try:
        cached = is_there(files, cache)
    except OSError:
        cached = True  # Nobody can say, so it is named.
    copies = [cache] if cached else []
    with suppress(OSError):
        copies += other_copies(ground, path)
    return tuple(copies)
