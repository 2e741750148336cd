"""What one can do with sessions besides opening and appending: names, branches, copies, ends."""

from typing import Literal

import msgspec

from tenure.messages.base import Command, Refusal, Reply
from tenure.messages.tokens import EntryId, SessionId, SessionToken

Position = Literal["at", "before"]
"""at: the entry is the last that stays.  before: the one that it hangs on is."""


class Redact(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Replace text in entries, for ever: their places, ids and structure stay."""

    patterns: tuple[str, ...] = ()
    """Regular expressions; every text that they match is replaced, in every entry."""
    entry_ids: tuple[EntryId, ...] = ()
    """Entries of which all text is replaced."""
    replacement: str = "[redacted]"


class Vacuum(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Leave out the entries of other branches and copies of entries; the old file is kept."""


Rewrite = Redact | Vacuum


# --- commands --------------------------------------------------------------------------


class RenameSession(Command, frozen=True, kw_only=True):
    """Give a session another name.  Answered `Appended`: a name is an entry."""

    name: str
    """Empty takes the name away."""
    session_id: SessionId | None = None
    """None stands for the seat's session."""
    token: SessionToken | None = None
    """For the seat's session: refused unless this is still it; None takes the current one."""
    idempotency_key: str = ""


class SetLabel(Command, frozen=True, kw_only=True):
    """Mark an entry of the seat's session.  Answered `Appended`."""

    entry_id: EntryId
    label: str
    """Empty takes the mark away."""
    token: SessionToken | None = None
    idempotency_key: str = ""


class ForkSession(Command, frozen=True, kw_only=True):
    """Begin a new session with a copy of a path.  Answered `SessionForked`; no seat opens it."""

    session_id: SessionId | None = None
    """None stands for the seat's session."""
    entry_id: EntryId | None = None
    """None stands for the leaf."""
    position: Position = "at"
    name: str = ""
    """Empty keeps the name of the old one."""
    idempotency_key: str = ""
    ask_deadline_s = 120.0


class RewindSession(Command, frozen=True, kw_only=True):
    """Go on from an earlier entry of the seat's session.  Answered `SessionRewound`.

    A running turn is stopped, as for a swap; the token moves.
    """

    entry_id: EntryId | None
    """None stands for the beginning: the next prompt is the first."""
    position: Position = "at"
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = 120.0


class DeleteSession(Command, frozen=True, kw_only=True):
    """Move a session to the trash.  Answered `SessionDeleted`.

    The seat's own is first swapped for a new one.
    """

    session_id: SessionId
    idempotency_key: str = ""
    ask_deadline_s = 120.0


class ClearSessions(Command, frozen=True, kw_only=True):
    """Move all sessions that nobody has open to the trash.  Answered `SessionsCleared`.

    The seat's own goes, too: the seat gets one new session.
    """

    idempotency_key: str = ""
    ask_deadline_s = 600.0


class RewriteSession(Command, frozen=True, kw_only=True):
    """Replace a session's file whole.  Answered `SessionRewritten`.

    For the seat's session a running turn is stopped, as for a swap, and the token moves.
    """

    rewrite: Redact | Vacuum
    session_id: SessionId | None = None
    """None stands for the seat's session."""
    token: SessionToken | None = None
    idempotency_key: str = ""
    ask_deadline_s = 600.0


# --- replies ---------------------------------------------------------------------------


class SessionForked(Reply, frozen=True, kw_only=True):
    """A new session begins with a copy of the other one's path.  No seat has it yet."""

    session_id: SessionId
    path: str
    entries: int
    source: SessionId


class SessionDeleted(Reply, frozen=True, kw_only=True):
    """The session is out of the list; its files were moved, and can be moved back."""

    session_id: SessionId
    kept_at: str
    """Where the transcript is now; empty where it had no file yet."""
    current: SessionToken | None = None
    """What the seat has now, where it had the deleted one."""


class SessionsCleared(Reply, frozen=True, kw_only=True):
    """All sessions that nobody has open were deleted."""

    deleted: tuple[SessionId, ...]
    kept_at: str
    """The folder that they were moved to."""
    in_use: tuple[SessionId, ...]
    """Open elsewhere, and left alone."""
    failed: tuple[str, ...]
    """Why others are still there: each begins with its path."""
    current: SessionToken | None = None
    """What the seat has now, where it had one of the deleted."""


class SessionRewound(Reply, frozen=True, kw_only=True):
    """The conversation goes on from an earlier entry; what came behind it stays in the file."""

    token: SessionToken
    leaf: EntryId | None
    dropped: tuple[str, ...] = ()
    """Texts that waited in the session's queue, given back."""


class SessionRewritten(Reply, frozen=True, kw_only=True):
    """The file was replaced whole; who reads or writes it begins anew."""

    token: SessionToken
    path: str
    changed: int
    """Lines that were changed or left out."""
    bytes_before: int
    bytes_after: int
    backup: str
    """Where the old file is kept; empty where nothing of it is."""
    left_lines: tuple[int, ...] = ()
    """Lines of the new file in which a pattern still matches an id, a name or a type."""
    copies: tuple[str, ...] = ()
    """Other files that may hold the old text: the command leaves them alone."""
    dropped: tuple[str, ...] = ()
    """Texts that waited in the session's queue, given back."""


# --- refusals --------------------------------------------------------------------------


class EntryNotFound(Refusal, frozen=True, kw_only=True):
    """No readable entry of this session has that id; nothing was changed."""

    session_id: SessionId
    entry_id: str

    @property
    def remedy(self) -> str:
        return (
            f"session {self.session_id} has no entry {self.entry_id!r}; "
            "`tenure sessions tree` lists its entries"
        )


class SessionEmpty(Refusal, frozen=True, kw_only=True):
    """The session has no file yet: there is nothing to change in it."""

    session_id: SessionId

    @property
    def remedy(self) -> str:
        return f"session {self.session_id} has no entries yet; there is nothing to change"


class BadPattern(Refusal, frozen=True, kw_only=True):
    """The pattern cannot be used; nothing was changed."""

    pattern: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"the pattern {self.pattern!r} cannot be used: {self.reason}. Nothing was changed"


class NothingToRewrite(Refusal, frozen=True, kw_only=True):
    """The file is already as it would be; it was not touched."""

    session_id: SessionId

    @property
    def remedy(self) -> str:
        return f"there is nothing to change in session {self.session_id}; it was not touched"
