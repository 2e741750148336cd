"""How a seat gets hold of a transcript.

    find -> take the claim -> read -> write the next epoch -> repair the tail -> settle calls

Nothing in here raises because of damage.  These functions block: they run in a
worker.
"""

from tenure.messages.session import (
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
    StorageFailed,
)
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, FileMark, HeldClaim
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.live import Claimed, LiveTranscript
from tenure.runtime.doors.transcripts.repair import made_whole
from tenure.runtime.doors.transcripts.scan import Scan, scan
from tenure.runtime.doors.transcripts.storage import (
    Changed,
    NotWritten,
    TranscriptFile,
    Uncertain,
    Written,
    open_file,
    reason_of,
)
from tenure.runtime.doors.transcripts.writing import release_claim, write_records

NotOpened = SessionNotFound | SessionInUse | SessionUnreadable | StorageFailed


class Opening:
    """A transcript that was opened, and how many calls were settled on the way."""

    __slots__ = ("live", "settled")

    def __init__(self, live: LiveTranscript, settled: int) -> None:
        self.live = live
        self.settled = settled


def open_session(
    ground: Ground, seat: str, session_id: SessionId, kept: int
) -> Opening | NotOpened:
    """Open a session of this root by its id.

    Args:
        kept: the epoch at which this seat parked it, which stays where claim record and
            file are as it left them; 0 for the next epoch in any case.
    """
    try:
        path = ground.layout.find(ground.leaves.files, session_id)
    except OSError as error:
        return StorageFailed(path=ground.layout.sessions, reason=reason_of(error))
    if path is None:
        return SessionNotFound(session_id=session_id, searched=ground.layout.sessions)
    return open_path(ground, seat, session_id, path, kept)


def open_path(
    ground: Ground, seat: str, session_id: SessionId, path: str, kept: int
) -> Opening | NotOpened:
    """Open a transcript whose path is known; `kept` as in `open_session`."""
    try:
        taken = ground.claims.take(claim_path := ground.layout.claim(session_id))
    except OSError as error:
        where = str(error.filename or claim_path)
        return StorageFailed(path=where, reason=f"{path} cannot be claimed: {reason_of(error)}")
    if isinstance(taken, ClaimBusy):  # guard: SESSION-5
        holder_seat = ground.seats.get(session_id, "")
        return SessionInUse(session_id=session_id, holder=taken.holder, seat=holder_seat)
    ground.seats[session_id] = seat
    opening: Opening | NotOpened | None = None
    try:
        opening = _open_claimed(ground, seat, session_id, path, taken, kept)
    except Unreadable as problem:
        opening = SessionUnreadable(path=path, reason=str(problem))
    except OSError as error:
        opening = StorageFailed(path=path, reason=reason_of(error))
    finally:
        if not isinstance(opening, Opening):
            del ground.seats[session_id]
            release_claim(taken)
    return opening


def _open_claimed(
    ground: Ground,
    seat: str,
    session_id: SessionId,
    path: str,
    claim: HeldClaim,
    kept: int,
) -> Opening:
    files = ground.leaves.files
    path = files.real_path(path)
    file, data = _read_whole(ground, path)
    try:
        found = scan(data, claim_epoch=claim.record.epoch if claim.record else None)
        if found.header.id != session_id:
            raise Unreadable(f"its header names the session {found.header.id!r}")
        epoch = _next_epoch(claim, found, file.mark, kept)
        claim.write(ClaimRecord(epoch=epoch, holder=ground.claims.me()))
        file = made_whole(ground, session_id, file, data, found)
        live = LiveTranscript(seat, session_id, epoch, path, Claimed(claim=claim, file=file))
        live.load(found)
        return Opening(live, _settle_while_opening(ground, live))
    except BaseException:
        file.close()
        raise


def _read_whole(ground: Ground, path: str) -> tuple[TranscriptFile, bytes]:
    files = ground.leaves.files
    try:
        kind = files.stat(path).kind
        if kind != "file":
            raise Unreadable("it is a folder" if kind == "folder" else "it is no regular file")
        file = open_file(files, path)
    except OSError as error:
        raise Unreadable(f"it cannot be opened for writing: {reason_of(error)}") from None
    try:
        return file, file.read()
    except BaseException:
        file.close()
        raise


def _next_epoch(claim: HeldClaim, found: Scan, mark: FileMark, kept: int) -> int:
    record = claim.record
    highest = max(record.epoch if record else 0, found.epoch_max)
    untouched = record is not None and record.parked == mark and record.epoch == highest
    # Whoever had it meanwhile moved the epoch, and may have parked it, too.
    return highest if untouched and highest == kept else highest + 1


def _settle_while_opening(ground: Ground, live: LiveTranscript) -> int:
    fresh, now_ms = ground.leaves.entropy.fresh, ground.leaves.clock.now_ms()
    calls = live.settling(fresh, now_ms)
    records = [*calls, *live.ending_passes(fresh, now_ms, calls)]
    if not records:
        return 0
    attempt = write_records(ground, live, records)
    match attempt.result:
        case Written():
            live.add(records, attempt.lines)
            return len(calls)
        case Changed():
            raise OSError(0, "another program changed it while it was opened")
        case NotWritten(reason=reason) | Uncertain(reason=reason):
            raise OSError(0, reason)
