"""Changing a session that no seat of this host has: it is claimed for the moment.

These functions block: they run in a worker.
"""

from tenure.messages.entries import Record, SessionInfoEntry
from tenure.messages.session import (
    Appended,
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
)
from tenure.messages.session_ops import Rewrite, SessionRewritten
from tenure.messages.tokens import EntryId, SessionId, SessionToken
from tenure.runtime.doors.transcripts.altering import (
    NotAltered,
    Rewritten,
    next_epoch,
    refusal_of_rewrite,
    rewrite_file,
)
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.live import LiveTranscript
from tenure.runtime.doors.transcripts.opening import NotOpened, Opening, open_session
from tenure.runtime.doors.transcripts.storage import Changed, NotWritten, Uncertain, Written
from tenure.runtime.doors.transcripts.writing import Dropped, let_go, write_records

FOR_THE_MOMENT = ""
"""The seat that is shown as the holder meanwhile: none has it."""


def rename_stored(
    ground: Ground, session_id: SessionId, name: str
) -> Appended | NotOpened | AppendFailed | AppendUnknown | ChangedOutside:
    """Append a name."""
    opened = open_session(ground, FOR_THE_MOMENT, session_id, kept=0)
    if not isinstance(opened, Opening):
        return opened
    live = opened.live
    try:
        return _append_name(ground, live, name)
    finally:
        let_go(ground, session_id, live.grip, Dropped())


def rewrite_stored(
    ground: Ground, session_id: SessionId, rewrite: Rewrite
) -> SessionRewritten | NotOpened | NotAltered:
    """Replace the file."""
    opened = open_session(ground, FOR_THE_MOMENT, session_id, kept=0)
    if not isinstance(opened, Opening):
        return opened
    live = opened.live
    try:
        refusal = refusal_of_rewrite(live, rewrite)
        if refusal is not None:
            return refusal
        done = rewrite_file(ground, live, rewrite, next_epoch(live))
        live.grip = done.grip
        return done.reply if isinstance(done, Rewritten) else done.refusal
    finally:
        let_go(ground, session_id, live.grip, Dropped())


def _append_name(
    ground: Ground, live: LiveTranscript, name: str
) -> Appended | AppendFailed | AppendUnknown | ChangedOutside:
    record = Record(
        id=EntryId(ground.leaves.entropy.fresh()),
        parent_id=live.tree.leaf,
        timestamp_ms=ground.leaves.clock.now_ms(),
        seq=live.seq + 1,
        turn=0,
        key="",
        body=SessionInfoEntry(name=name),
    )
    attempt = write_records(ground, live, (record,))
    live.grip = attempt.grip
    match attempt.result:
        case Written():
            token = SessionToken(session_id=live.session_id, epoch=live.epoch)
            return Appended(token=token, entry_ids=(record.id,), seq=record.seq)
        case NotWritten(reason=reason):
            return AppendFailed(reason=reason)
        case Uncertain(reason=reason):
            return AppendUnknown(reason=reason)
        case Changed():
            return ChangedOutside(path=live.path)
