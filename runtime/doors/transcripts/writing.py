"""How records get into the file of a live transcript, and how it is let go of.

These functions block: they run in a worker.  They change the disk, never the
transcript in memory: that follows on the event loop, once the disk has it.
"""

from collections.abc import Sequence

import msgspec

from tenure.messages.entries import Record
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, HeldClaim
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.live import (
    Claimed,
    Doubtful,
    Grip,
    LiveTranscript,
    Planned,
)
from tenure.runtime.doors.transcripts.repair import note_doubt
from tenure.runtime.doors.transcripts.storage import (
    Changed,
    NotWritten,
    Sync,
    TranscriptFile,
    Uncertain,
    WriteResult,
    Written,
    create_file,
    reason_of,
)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """How a write went."""

    result: WriteResult
    grip: Grip
    """How the transcript is held now."""
    lines: tuple[bytes, ...] = ()
    """The records as they stand in the file, with their newlines."""


def write_records(ground: Ground, live: LiveTranscript, records: Sequence[Record]) -> Attempt:
    """Write one batch: whole and synced, or not at all.  Never raises."""
    try:
        attempt = _write(ground, live, records)
    except Exception as error:
        # A bug must not leave a transcript open for writing behind half a write.
        reason = f"the write ended in an unexpected way: {error!r}"
        held = live.grip
        file = None if isinstance(held, Planned) else held.file
        grip = Doubtful(claim=held.claim, file=file, reason=reason)
        attempt = Attempt(result=Uncertain(reason=reason), grip=grip)
    if isinstance(attempt.result, Uncertain) and not isinstance(live.grip, Doubtful):
        note_doubt(ground, live.session_id)
    return attempt


def _write(ground: Ground, live: LiveTranscript, records: Sequence[Record]) -> Attempt:
    grip = live.grip
    try:
        lines = tuple(encode_record(record, live.epoch) for record in records)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        return Attempt(result=NotWritten(reason=f"an entry is no JSON: {error}"), grip=grip)
    if isinstance(grip, Doubtful):  # guard: SESSION-3
        return Attempt(result=Uncertain(reason=grip.reason), grip=grip)
    match grip:
        case Planned():
            return _write_first(ground, live, grip, lines)
        case Claimed(claim=claim, file=file):
            result = _append(claim, file, lines, ground.sync)
            if isinstance(result, Uncertain):
                grip = Doubtful(claim=claim, file=file, reason=result.reason)
            return Attempt(result=result, grip=grip, lines=lines)


def _append(
    claim: HeldClaim, file: TranscriptFile, lines: tuple[bytes, ...], sync: Sync
) -> WriteResult:
    try:
        held = claim.in_place()
    except OSError as error:
        return NotWritten(reason=reason_of(error))
    if not held:  # guard: SESSION-5
        return Changed()
    return file.append(lines, sync)


def _write_first(
    ground: Ground, live: LiveTranscript, grip: Planned, lines: tuple[bytes, ...]
) -> Attempt:
    """The first append makes the session: claim, epoch, folders, file, names."""
    try:
        claim = grip.claim or _take(ground, live.session_id)
    except OSError as error:
        claim_path = ground.layout.claim(live.session_id)
        reason = f"{error.filename or claim_path} cannot be claimed: {reason_of(error)}"
        return Attempt(result=NotWritten(reason=reason), grip=grip)
    if claim is None:
        return Attempt(result=NotWritten(reason="another process has this session"), grip=grip)
    grip = msgspec.structs.replace(grip, claim=claim)
    try:
        claim.write(ClaimRecord(epoch=live.epoch, holder=ground.claims.me()))
    except (OSError, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        reason = f"the claim of {live.path} cannot be written: {why}"
        return Attempt(result=NotWritten(reason=reason), grip=grip)
    header = encode_header(live.session_id, grip.created_ms, ground.layout.root)
    data = b"".join((header, *grip.first_lines, *lines))
    made = create_file(ground.leaves.files, live.path, data)
    match made:
        case NotWritten():
            return Attempt(result=made, grip=grip)
        case Uncertain(reason=reason):
            doubtful = Doubtful(claim=claim, file=None, reason=reason)
            return Attempt(result=made, grip=doubtful)
        case _:
            return Attempt(result=Written(), grip=Claimed(claim=claim, file=made), lines=lines)


def _take(ground: Ground, session_id: SessionId) -> HeldClaim | None:
    taken = ground.claims.take(ground.layout.claim(session_id))
    return None if isinstance(taken, ClaimBusy) else taken


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    """The seat gave it up of its own accord: it may have it again at the same epoch."""


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """The seat is gone, or what it knew is not to be trusted."""


Farewell = Parked | Dropped


def let_go(ground: Ground, session_id: SessionId, grip: Grip, farewell: Farewell) -> str:
    """Close the file and release the claim, whatever happens; what failed on the way, or empty."""
    problem = ""
    try:
        if isinstance(grip, Claimed) and isinstance(farewell, Parked):
            _leave_mark(ground, grip)
    except OSError as error:
        problem = reason_of(error)
    finally:
        if not isinstance(grip, Planned) and grip.file is not None:
            grip.file.close()
        ground.seats.pop(session_id, None)
        if grip.claim is not None:
            problem = release_claim(grip.claim) or problem
    return problem


def release_claim(claim: HeldClaim) -> str:
    """Let go of a claim; what the system had to say against it, or empty."""
    try:
        claim.release()
    except OSError as error:
        return f"its lock could not be closed: {reason_of(error)}"
    return ""


def _leave_mark(ground: Ground, grip: Claimed) -> None:
    """Write down how the file was left, so that the next opening knows it again."""
    before = grip.claim.record
    epoch = before.epoch if before else 0
    mark = grip.file.mark
    grip.claim.write(ClaimRecord(epoch=epoch, holder=ground.claims.me(), parked=mark))
