"""The states of a seat's session, one struct each: a field exists only where it means something."""

import msgspec
from msgspec.structs import replace

from tenure.messages.base import Command
from tenure.messages.entries import EntryBody
from tenure.messages.queue import QueuedText
from tenure.messages.session import (
    Damage,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
    StorageFailed,
)
from tenure.messages.session_ops import BadPattern, EntryNotFound, SessionEmpty
from tenure.messages.tokens import EntryId, SessionId, SessionToken, TurnId
from tenure.messages.transcripts import Opened, Owed, Target
from tenure.runtime.step import AskId, Held, Step, Taken


class Session(msgspec.Struct, frozen=True):
    """What the owner knows of its session; the transcript door holds the entries."""

    token: SessionToken
    path: str
    leaf: EntryId | None
    """The entry that the next one hangs on; None in an empty session."""
    seq: int
    entries: int
    last_turn: int
    """The highest turn number given out; a turn that was refused has one, too."""
    keys: tuple[tuple[str, tuple[EntryId, ...], int], ...]
    """The newest idempotency keys with their entries and last sequence number."""
    damage: Damage
    interrupted: TurnId | None = None
    """The turn that a crash, or the end of its host, left without its end."""


# --- appends: one in flight, later ones wait and form the next batch -----------------------


class Parcel(msgspec.Struct, frozen=True):
    """One accepted `AppendEntries`, and everybody who waits for its receipt."""

    askers: tuple[AskId | None, ...]
    entries: tuple[EntryBody, ...]
    turn_id: TurnId | None
    key: str
    taken_ms: int


class Settle(msgspec.Struct, frozen=True):
    """An accepted wish to write what is owed: it keeps its place among the appends."""

    asker: AskId | None
    owed: Owed


class Placed(msgspec.Struct, frozen=True):
    """A parcel whose entries have their ids."""

    parcel: Parcel
    entry_ids: tuple[EntryId, ...]
    seq: int
    """Of its last entry."""


class Quiet(msgspec.Struct, frozen=True):
    """Nothing is being written."""


class Writing(msgspec.Struct, frozen=True):
    """A batch is on its way to the disk."""

    batch: tuple[Placed, ...]
    waiting: tuple[Parcel | Settle, ...]


class Settling(msgspec.Struct, frozen=True):
    """Open tool calls are being given results, or open passes their ends."""

    asker: AskId | None
    owed: Owed
    waiting: tuple[Parcel | Settle, ...]


class Closed(msgspec.Struct, frozen=True):
    """The disk failed in a way that nobody can know: only opening again helps."""

    reason: str


class Outdated(msgspec.Struct, frozen=True):
    """Another program changed the file: it is opened again once no swap is under way."""

    path: str


Appends = Quiet | Writing | Settling | Closed | Outdated


NotOpened = (
    SessionNotFound
    | SessionInUse
    | SessionUnreadable
    | StorageFailed
    | EntryNotFound
    | SessionEmpty
    | BadPattern
)


# --- swaps -----------------------------------------------------------------------------


class Arrive(msgspec.Struct, frozen=True):
    """The seat wants to be there."""


class DeleteOld(msgspec.Struct, frozen=True):
    """The seat's old session is to be deleted, so the seat gets another."""


class ClearOld(msgspec.Struct, frozen=True):
    """All sessions are to be deleted, so the seat gets another."""


Purpose = Arrive | DeleteOld | ClearOld
ARRIVE = Arrive()


class Swap(msgspec.Struct, frozen=True):
    """Where the seat goes, who asked, and what for."""

    target: Target
    asker: AskId | None
    purpose: Purpose = ARRIVE


# --- states ----------------------------------------------------------------------------


class Waking(msgspec.Struct, frozen=True):
    """An incarnation begins: which session did this seat have?"""

    held: tuple[Held, ...] = ()


class Vacant(msgspec.Struct, frozen=True):
    """The seat has no session."""

    reason: str = ""
    """Why not, where it had one."""


class Live(msgspec.Struct, frozen=True):
    """The seat has a session, and its token is current."""

    session: Session
    appends: Appends


class Loading(msgspec.Struct, frozen=True):
    """A swap's target is being locked and loaded; what was before is undisturbed."""

    before: Live | Vacant
    swap: Swap
    held: tuple[Held, ...] = ()


class Draining(msgspec.Struct, frozen=True):
    """The target is loaded; the running turn is being stopped."""

    before: Live
    opened: Opened
    swap: Swap
    held: tuple[Held, ...]


class Flushing(msgspec.Struct, frozen=True):
    """The turn has ended; its last entries are on their way to the old file."""

    before: Live
    opened: Opened
    swap: Swap
    queued: tuple[QueuedText, ...]
    held: tuple[Held, ...]


class Committing(msgspec.Struct, frozen=True):
    """The seat's record is being written: the moment the swap happens."""

    before: Live | Vacant
    opened: Opened
    swap: Swap
    queued: tuple[QueuedText, ...]
    held: tuple[Held, ...]


class HandingOver(msgspec.Struct, frozen=True):
    """Another process wants the session; the running turn is being stopped."""

    before: Live
    askers: tuple[AskId | None, ...]
    """Who waits until the session is let go of."""
    held: tuple[Held, ...] = ()


class Yielding(msgspec.Struct, frozen=True):
    """The turn has ended; its last entries are on their way to the file."""

    before: Live
    askers: tuple[AskId | None, ...]
    queued: tuple[QueuedText, ...]
    held: tuple[Held, ...]


class Releasing(msgspec.Struct, frozen=True):
    """Everything is written; file and claim are being let go of."""

    session: Session
    askers: tuple[AskId | None, ...]
    queued: tuple[QueuedText, ...]
    held: tuple[Held, ...]


class Reopening(msgspec.Struct, frozen=True):
    """The seat's own session is loaded again: after a restart, a park or a change outside."""

    session_id: SessionId
    last_turn: int
    """The highest turn number given out before; the disk knows only turns that wrote."""
    held: tuple[Held, ...] = ()


class Unwinding(msgspec.Struct, frozen=True):
    """A compaction is to be taken back: is the seat idle, and what came after it?"""

    before: Live
    asker: AskId | None
    held: tuple[Held, ...] = ()


class Rewinding(msgspec.Struct, frozen=True):
    """The record that moves the leaf is on its way to the disk."""

    before: Live
    entry_id: EntryId
    """The compaction."""
    asker: AskId | None
    held: tuple[Held, ...]


class Restoring(msgspec.Struct, frozen=True):
    """The leaf is moved; the session is opened again at its next epoch."""

    session: Session
    entry_id: EntryId
    asker: AskId | None
    held: tuple[Held, ...]


class Parking(msgspec.Struct, frozen=True):
    """Is the seat idle?  The turn was asked, then the compaction."""

    before: Live
    asker: AskId | None
    held: tuple[Held, ...] = ()


class LettingGo(msgspec.Struct, frozen=True):
    """An idle seat gives up its claim and its files."""

    session: Session
    asker: AskId | None
    held: tuple[Held, ...] = ()


class Parked(msgspec.Struct, frozen=True):
    """Nothing is held; the next command opens the session again."""

    session: Session


State = (
    Waking
    | Vacant
    | Live
    | Loading
    | Draining
    | Flushing
    | Committing
    | HandingOver
    | Yielding
    | Releasing
    | Reopening
    | Unwinding
    | Rewinding
    | Restoring
    | Parking
    | LettingGo
    | Parked
)


Holding = (
    Waking
    | Loading
    | Draining
    | Flushing
    | Committing
    | HandingOver
    | Yielding
    | Releasing
    | Reopening
    | Unwinding
    | Rewinding
    | Restoring
    | Parking
    | LettingGo
)
"""States in which a command waits."""


class Resume(msgspec.Struct, frozen=True):
    """A step that ends a wait, and what waited: it is stepped again, in its order."""

    step: Step[State]
    held: tuple[Held, ...] = ()


# --- what the owner wrote on its asks ------------------------------------------------------


class TurnWasDrained(msgspec.Struct, frozen=True):
    pass


class TurnWasLookedAt(msgspec.Struct, frozen=True):
    pass


class CompactionWasLookedAt(msgspec.Struct, frozen=True):
    pass


class ToolsWereLookedAt(msgspec.Struct, frozen=True):
    """Whether tools hold a handover up."""


# --- pure helpers ------------------------------------------------------------------------

TURNS_PER_EPOCH_MAX = 1_000_000
"""Turn numbers are given out in ranges, one an epoch.

Numbers of turns that wrote nothing are in no transcript: whoever has the session
next does not know them, and a late stop for one must not meet a turn of theirs.
"""


def hold(state: Holding, message: Command, taken: Taken) -> State:
    return replace(state, held=(*state.held, Held(message, taken)))


def widened(step: Step[Live]) -> Step[State]:
    return step.to(step.state)


def session_of(opened: Opened, last_turn: int) -> Session:
    """What was opened, as this seat has it from now on.

    Args:
        last_turn: the highest turn number that the seat gave out in this session.
    """
    before = (opened.token.epoch - 1) * TURNS_PER_EPOCH_MAX
    return Session(
        token=opened.token,
        path=opened.path,
        leaf=opened.leaf,
        seq=opened.seq,
        entries=opened.entries,
        last_turn=max(opened.last_turn, last_turn, before),
        keys=opened.keys,
        damage=opened.damage,
        interrupted=opened.interrupted,
    )
