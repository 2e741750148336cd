"""The SessionActor's vocabulary: which session a seat has, and what is appended to it."""

from typing import Literal

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.content import ImageBlock
from tenure.messages.entries import EntryBody
from tenure.messages.limits import Overrides
from tenure.messages.queue import QueuedPrompt
from tenure.messages.tokens import EntryId, Holder, SessionId, SessionToken, TurnId

# --- commands --------------------------------------------------------------------------


class OpenSession(Command, frozen=True, kw_only=True):
    """Swap this seat to a session that exists.  Answered `SessionOpened`."""

    session_id: SessionId
    idempotency_key: str = ""
    ask_deadline_s = 120.0


class OpenNewSession(Command, frozen=True, kw_only=True):
    """Swap this seat to a new, empty session.  Nothing is written until its first entry."""

    name: str = ""
    idempotency_key: str = ""
    ask_deadline_s = 120.0


class ContinueSession(Command, frozen=True, kw_only=True):
    """Keep the seat's session; without one open the newest, or a new one where there is none.

    A session that another process has open is passed over.
    """

    idempotency_key: str = ""
    ask_deadline_s = 120.0


class AppendEntries(Command, frozen=True, kw_only=True):
    """Append to the session that the token names.  Answered `Appended` once durable.

    What was taken will be written or refused, however slow the disk: no deadline
    of its own would tell its sender which.
    """

    token: SessionToken
    entries: tuple[EntryBody, ...]
    turn_id: TurnId | None = None
    idempotency_key: str = ""
    """Kept in the transcript itself: a repeat after a crash gets the first answer."""
    ask_deadline_s = None


class StartTurn(Command, frozen=True, kw_only=True):
    """Start a turn.  Answered `TurnAccepted` once the prompt is durable."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    token: SessionToken | None = None
    """None takes the session that is current when the command is taken."""
    model: str = ""
    """A model string for this turn alone; empty takes the host's."""
    overrides: Overrides = Overrides()
    """Thinking and budget of this turn alone."""
    when_busy: Literal["refuse", "queue"] = "refuse"
    idempotency_key: str = ""
    ask_deadline_s = None


class CancelTurn(Command, frozen=True, kw_only=True):
    """Stop whatever turn runs when this is taken: it travels in the lane of the prompts."""

    token: SessionToken | None = None


class SettleCalls(Command, frozen=True, kw_only=True):
    """A TurnActor asks, after a restart or a save that failed: write a result for each call
    that has none.  Answered `CallsSettled`.
    """

    ask_deadline_s = None


class ParkSeat(Command, frozen=True, kw_only=True):
    """Give up claim and file descriptors of an idle seat until its next command."""


class GetSession(Query, frozen=True, kw_only=True):
    """Answered `SessionView`, or `NoSession`."""


# --- replies ---------------------------------------------------------------------------


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a transcript, counted; nothing of it is lost."""

    unreadable_lines: int = 0
    altered_records: int = 0
    """Records whose checksum does not fit their bytes."""
    unverified_records: int = 0
    """Records without our checksum: another program wrote them."""
    out_of_epoch_records: int = 0
    torn_bytes: int = 0
    """Bytes of an unfinished last line; a writer keeps them in `<session>.torn`."""

    @property
    def count(self) -> int:
        """Damaged places.  Unverified records are not damage."""
        torn = 1 if self.torn_bytes else 0
        return self.unreadable_lines + self.altered_records + self.out_of_epoch_records + torn


class SessionOpened(Reply, frozen=True, kw_only=True):
    """The seat has this session, and the token is current."""

    token: SessionToken
    path: str
    entries: int
    damage: Damage = Damage()
    dropped: tuple[str, ...] = ()
    """Texts that waited in the old session's queue, given back."""
    interrupted: TurnId | None = None
    """A turn of the session that has no end: `ResumeTurn` goes on with it."""


class Appended(Reply, frozen=True, kw_only=True):
    """The receipt: these entries are on disk and will survive a crash."""

    token: SessionToken
    entry_ids: tuple[EntryId, ...]
    seq: int
    """The sequence number of the last of them."""


class CallsSettled(Reply, frozen=True, kw_only=True):
    token: SessionToken
    settled: int
    last_turn: int
    """The number of the last turn that was started in the session."""
    queue: tuple[QueuedPrompt, ...] = ()
    """What waits, as the transcript says."""


class SeatParked(Reply, frozen=True, kw_only=True):
    token: SessionToken


SeatState = Literal["live", "swapping", "handing_over", "parked", "closed_for_writing"]


class SessionView(Reply, frozen=True, kw_only=True):
    token: SessionToken
    path: str
    leaf: EntryId | None
    seq: int
    last_turn: int
    state: SeatState
    damage: Damage
    interrupted: TurnId | None = None
    """A turn of the session that has no end: `ResumeTurn` goes on with it."""


# --- refusals --------------------------------------------------------------------------


class NoSession(Refusal, frozen=True, kw_only=True):
    """This seat has no session yet."""

    reason: str = ""

    @property
    def remedy(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"this seat has no session{why}; open one first"


class Stale(Refusal, frozen=True, kw_only=True):
    """The token is not current: nothing was written, here or elsewhere."""

    current: SessionToken

    @property
    def remedy(self) -> str:
        return (
            "the session changed hands since you looked; nothing was written. "
            f"Current: {self.current.session_id} at epoch {self.current.epoch}"
        )


class SessionNotFound(Refusal, frozen=True, kw_only=True):
    session_id: SessionId
    searched: str

    @property
    def remedy(self) -> str:
        return f"no session {self.session_id!r} in {self.searched}; `tenure sessions ls` lists them"


class SessionInUse(Refusal, frozen=True, kw_only=True):
    """Another process, or another seat of this one, has the session open."""

    session_id: SessionId
    holder: Holder | None
    """None where the holder has taken the lock and not yet written who it is."""
    seat: str = ""
    """The seat, where the holder is this very host."""

    @property
    def remedy(self) -> str:
        if self.seat:
            return f"session {self.session_id} is open in seat {self.seat!r} of this host"
        who = f"process {self.holder.process.pid}" if self.holder else "another process"
        return f"session {self.session_id} is in use by {who}; close it there, or open another"


class SessionUnreadable(Refusal, frozen=True, kw_only=True):
    path: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.path}: {self.reason}. The file was not changed"


class StorageFailed(Refusal, frozen=True, kw_only=True):
    """The disk said no before anything changed."""

    path: str
    reason: str

    @property
    def remedy(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.reason}. Nothing was changed"


class AppendFailed(Refusal, frozen=True, kw_only=True):
    """Not written: the file is as it was before."""

    reason: str

    @property
    def remedy(self) -> str:
        return f"not written: {self.reason}. The transcript is as it was; {self._what_to_do}"

    @property
    def _what_to_do(self) -> str:
        if "no space" in self.reason or "quota" in self.reason:
            return "make room and try again"
        return "put that right and try again"


class AppendUnknown(Refusal, frozen=True, kw_only=True):
    """The disk failed while it made sure: the entries may or may not survive.

    The session is closed for writing and must be opened again.
    """

    reason: str

    @property
    def remedy(self) -> str:
        return (
            f"the disk could not confirm the write: {self.reason}. "
            "Open the session again to see what it holds"
        )


class ChangedOutside(Refusal, frozen=True, kw_only=True):
    """Another program changed the file; nothing was written, and it is opened again."""

    path: str

    @property
    def remedy(self) -> str:
        return f"{self.path} was changed by another program; look at it and send this again"


class SeatBusy(Refusal, frozen=True, kw_only=True):
    """The seat works, so it cannot be parked."""

    @property
    def remedy(self) -> str:
        return "the seat has a turn, a swap or a write under way; wait for it to end"


# --- events ----------------------------------------------------------------------------


class SessionChanged(Event, frozen=True, kw_only=True):
    """The seat's active session is now this one."""

    token: SessionToken
    path: str


class EntriesAppended(Event, frozen=True, kw_only=True):
    """These entries are durable."""

    token: SessionToken
    entry_ids: tuple[EntryId, ...]
    seq: int
    turn_id: TurnId | None
