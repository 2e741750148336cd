"""The transcript door's vocabulary: what a SessionActor wants of a file, and how it went."""

from typing import Literal

import msgspec

from tenure.messages.base import Effect, Outcome
from tenure.messages.entries import Record
from tenure.messages.queue import QueuedPrompt
from tenure.messages.session import (
    Appended,
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    Damage,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
    StorageFailed,
)
from tenure.messages.session_ops import (
    BadPattern,
    EntryNotFound,
    NothingToRewrite,
    Position,
    Redact,
    SessionDeleted,
    SessionEmpty,
    SessionForked,
    SessionRewound,
    SessionRewritten,
    SessionsCleared,
    Vacuum,
)
from tenure.messages.tokens import EntryId, QueueItemId, SessionId, SessionToken, TurnId


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What the step needs to know of an open transcript; the door holds the entries."""

    token: SessionToken
    path: str
    leaf: EntryId | None
    seq: int
    entries: int
    last_turn: int
    keys: tuple[tuple[str, tuple[EntryId, ...], int], ...]
    """The newest idempotency keys with their entries and sequence number, oldest first."""
    damage: Damage
    settled: int
    """Tool calls without a result that were given one while opening."""
    queue: tuple[QueuedPrompt, ...] = ()
    """The prompts that wait, next first."""
    interrupted: TurnId | None = None
    """The turn whose messages are the last and that has no end."""


class ById(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session_id: SessionId


class Newest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The newest that nobody has open; a new one where there is none."""


class Fresh(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A new session, named by the door; it gets its file with its first entry."""

    name: str = ""


class Again(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The session that this seat had: after a restart, a park, or a change outside."""

    session_id: SessionId
    epoch: int = 0
    """Of the seat that parked it: kept where nobody had the session meanwhile.  0 for the next."""


class Rewind(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Another leaf: the conversation goes on from there."""

    entry_id: EntryId | None
    """None stands for the beginning."""
    position: Position


class Changed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The session that this seat has, changed other than by an append: at its next epoch.

    It is only looked at while the target is loaded; `AlterTranscript` does it.
    """

    session_id: SessionId
    change: Rewind | Redact | Vacuum


Target = ById | Newest | Fresh | Again | Changed


class ReadSeat(Effect, frozen=True, kw_only=True):
    """Which session did this seat have, earlier in this host run?"""

    def failed(self, reason: str) -> Outcome:
        return SeatVacant(reason=reason)


class SeatVacant(Outcome, frozen=True, kw_only=True):
    reason: str = ""


class SeatRemembered(Outcome, frozen=True, kw_only=True):
    session_id: SessionId


class OpenTranscript(Effect, frozen=True, kw_only=True):
    """Lock, re-read the claim, write its next epoch, repair, read."""

    target: Target

    def failed(self, reason: str) -> Outcome:
        return TranscriptNotOpened(refusal=StorageFailed(path="", reason=reason))


class TranscriptOpened(Outcome, frozen=True, kw_only=True):
    opened: Opened


class TranscriptNotOpened(Outcome, frozen=True, kw_only=True):
    refusal: (
        SessionNotFound
        | SessionInUse
        | SessionUnreadable
        | StorageFailed
        | EntryNotFound
        | SessionEmpty
        | BadPattern
    )


class AlterTranscript(Effect, frozen=True, kw_only=True):
    """Move the leaf, or replace the file, of a session that is open and quiet."""

    token: SessionToken
    change: Rewind | Redact | Vacuum

    def failed(self, reason: str) -> Outcome:
        return TranscriptNotAltered(refusal=AppendUnknown(reason=reason))


class TranscriptAltered(Outcome, frozen=True, kw_only=True):
    opened: Opened
    """The same session at its next epoch."""
    reply: SessionRewound | SessionRewritten


class TranscriptNotAltered(Outcome, frozen=True, kw_only=True):
    refusal: (
        EntryNotFound
        | SessionEmpty
        | BadPattern
        | NothingToRewrite
        | StorageFailed
        | AppendFailed
        | AppendUnknown
        | ChangedOutside
    )


class FindEntry(Effect, frozen=True, kw_only=True):
    """Is this an entry of the session?  It is to get a label."""

    asker: int | None
    token: SessionToken
    entry_id: EntryId
    label: str

    def failed(self, reason: str) -> Outcome:
        session_id = self.token.session_id
        refusal = EntryNotFound(session_id=session_id, entry_id=self.entry_id)
        return EntryMissing(asker=self.asker, refusal=refusal)


class EntryFound(Outcome, frozen=True, kw_only=True):
    asker: int | None
    token: SessionToken
    entry_id: EntryId
    label: str


class EntryMissing(Outcome, frozen=True, kw_only=True):
    asker: int | None
    refusal: EntryNotFound


class RenameTo(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session_id: SessionId
    name: str


class ForkAt(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session_id: SessionId
    entry_id: EntryId | None
    """None stands for the leaf."""
    position: Position
    name: str


class Discard(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session_id: SessionId
    current: SessionToken | None
    """What the seat has now, where it had the session."""


class DiscardAll(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    current: SessionToken | None


class RewriteWith(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    session_id: SessionId
    rewrite: Redact | Vacuum


class ChangeStored(Effect, frozen=True, kw_only=True):
    """Do something with sessions that this seat does not have, each under its own claim."""

    asker: int | None
    """Who waits for the answer: it comes back with the outcome, whatever the seat has then."""
    change: RenameTo | ForkAt | Discard | DiscardAll | RewriteWith

    def failed(self, reason: str) -> Outcome:
        return StoredNotChanged(asker=self.asker, refusal=StorageFailed(path="", reason=reason))


class StoredChanged(Outcome, frozen=True, kw_only=True):
    asker: int | None
    reply: Appended | SessionForked | SessionDeleted | SessionsCleared | SessionRewritten


class StoredNotChanged(Outcome, frozen=True, kw_only=True):
    asker: int | None
    refusal: (
        SessionNotFound
        | SessionInUse
        | SessionUnreadable
        | StorageFailed
        | EntryNotFound
        | SessionEmpty
        | BadPattern
        | NothingToRewrite
        | AppendFailed
        | AppendUnknown
        | ChangedOutside
    )


class AppendRecords(Effect, frozen=True, kw_only=True):
    """Write and sync one batch behind `after`; on a mismatch write nothing."""

    token: SessionToken
    after: EntryId | None
    """The leaf the batch hangs on: the door's last durable entry must be this one."""
    records: tuple[Record, ...]

    def failed(self, reason: str) -> Outcome:
        return RecordsUncertain(session_id=self.token.session_id, reason=reason)


class RecordsAppended(Outcome, frozen=True, kw_only=True):
    session_id: SessionId


class RecordsRefused(Outcome, frozen=True, kw_only=True):
    """Nothing was written: the file is as it was."""

    session_id: SessionId
    reason: str


class RecordsUncertain(Outcome, frozen=True, kw_only=True):
    """A sync or a cut failed: what the disk holds is not known."""

    session_id: SessionId
    reason: str


class TranscriptChanged(Outcome, frozen=True, kw_only=True):
    """The file is not the one that was opened, or has not the length it was left with."""

    session_id: SessionId
    path: str


class NoteSeat(Effect, frozen=True, kw_only=True):
    """Write down which session the seat has: the moment a swap commits."""

    session_id: SessionId

    def failed(self, reason: str) -> Outcome:
        return SeatNotNoted(reason=reason)


class SeatNoted(Outcome, frozen=True, kw_only=True):
    pass


class SeatNotNoted(Outcome, frozen=True, kw_only=True):
    reason: str


class CloseTranscript(Effect, frozen=True, kw_only=True):
    """Let go of a session: file, lock, entries in memory.  Harmless where it is not open."""

    session_id: SessionId
    returned: tuple[QueueItemId, ...] = ()
    """What waited in it and is given back: written before the file is let go of."""

    def failed(self, reason: str) -> Outcome:
        return TranscriptClosed(session_id=self.session_id, reason=reason)


class TranscriptClosed(Outcome, frozen=True, kw_only=True):
    session_id: SessionId
    reason: str = ""


Owed = Literal["calls", "passes"]
"""calls: tool calls of the leaf's path without a result.  passes: compactions whose audit
has no end."""


class SettleTranscript(Effect, frozen=True, kw_only=True):
    """Write what is owed: a synthetic result for each call, or an end for each pass."""

    token: SessionToken
    owed: Owed = "calls"

    def failed(self, reason: str) -> Outcome:
        return RecordsUncertain(session_id=self.token.session_id, reason=reason)


class TranscriptSettled(Outcome, frozen=True, kw_only=True):
    opened: Opened
    """The same session at the same epoch, with its new leaf."""
