"""What a tool's change to files leaves behind so that it can be undone.

A checkpoint is an intent in the transcript, durable before the tool runs, and a
result once it ended.  What the files held lies in `.tenure/checkpoints/`, named
by its own SHA-256.
"""

from typing import Any, Literal

import msgspec

from tenure.messages.base import Command, Effect, Event, Outcome, Refusal, Reply
from tenure.messages.entries import CustomEntry
from tenure.messages.tokens import CallId, RequestId, SessionId, SessionToken, TurnId

CHECKPOINT = "tenure/checkpoint"
"""The `custom_type` of the entries of checkpoints and of what undid them."""

ABSENT = "absent"
"""The digest of a file that does not exist."""

Content = Literal["kept", "not_needed", "too_large"]


class FileImage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name of the workspace, as it was at a moment."""

    path: str
    """Relative to the root, every link above it followed."""
    kind: Literal["absent", "file", "folder", "link", "other"]
    digest: str
    """SHA-256 of a file's bytes; of anything else its kind."""
    size: int = 0
    """Bytes."""
    mode: int = 0
    """Permission bits."""
    content: Content = "not_needed"
    """Whether `.tenure/checkpoints/` has the bytes."""
    missing: tuple[str, ...] = ()
    """The folders above it that did not exist, topmost first."""
    trash: str = ""
    """Where a name that was deleted is kept, relative to the root."""


# --- entries ---------------------------------------------------------------------------


def intent_entry(
    checkpoint: str, session_id: SessionId, call: tuple[TurnId, CallId, str], images: Any
) -> CustomEntry:
    """Written before the tool runs.  `call` is turn, call and tool."""
    turn_id, call_id, tool = call
    return CustomEntry(
        custom_type=CHECKPOINT,
        data={
            "phase": "intent",
            "checkpoint": checkpoint,
            "session": session_id,
            "turn": turn_id,
            "call": call_id,
            "tool": tool,
            "before": msgspec.to_builtins(images),
        },
    )


def result_entry(checkpoint: str, after: tuple[FileImage, ...]) -> CustomEntry:
    """Written when the tool ended, with what the files were then."""
    return CustomEntry(
        custom_type=CHECKPOINT,
        data={
            "phase": "result",
            "checkpoint": checkpoint,
            "after": msgspec.to_builtins(after),
        },
    )


def undo_entry(checkpoint: str, undo: str) -> CustomEntry:
    """Written before an undo touches a file."""
    return CustomEntry(
        custom_type=CHECKPOINT, data={"phase": "undo", "checkpoint": checkpoint, "undo": undo}
    )


def undone_entry(checkpoint: str, undo: str, outcome: "UndoOutcome") -> CustomEntry:
    """Written when an undo ended, well or not."""
    data: dict[str, Any] = {"phase": "undone", "checkpoint": checkpoint, "undo": undo}
    match outcome:
        case FilesRestored(replaced=replaced):
            data |= {"status": "done", "replaced": msgspec.to_builtins(replaced)}
        case FilesNotRestored(reason=reason):
            data |= {"status": "failed", "reason": reason}
    return CustomEntry(custom_type=CHECKPOINT, data=data)


# --- looking at files, and keeping them ------------------------------------------------------


class ResolveCall(Effect, frozen=True, kw_only=True):
    """Follow the links of the files that a call names."""

    request_id: RequestId
    tool: str
    arguments: dict[str, Any]
    concurrent = True

    @property
    def key(self) -> str:
        return f"resolve {self.request_id}"

    def failed(self, reason: str) -> Outcome:
        return CallNotResolved(request_id=self.request_id, reason=reason)


class CallResolved(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    paths: tuple[str, ...]
    """Relative to the root; absolute where they are outside."""


class CallNotResolved(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    reason: str


class KeepFiles(Effect, frozen=True, kw_only=True):
    """Make durable what the files of a call hold, before the call may change them."""

    request_id: RequestId
    tool: str
    arguments: dict[str, Any]
    paths: tuple[str, ...]
    """Where the links led when the call was decided."""
    concurrent = True

    @property
    def key(self) -> str:
        return f"keep {self.request_id}"

    def failed(self, reason: str) -> Outcome:
        return FilesNotKept(request_id=self.request_id, reason=reason)


class FilesKept(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    images: tuple[FileImage, ...]
    """None where the tool is going to refuse the call itself."""


class FilesNotKept(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    reason: str


# --- undo: commands and replies ----------------------------------------------------------------

WhenChanged = Literal["refuse", "overwrite"]


class UndoChange(Command, frozen=True, kw_only=True):
    """Undo the last change to files that a tool of the session made.

    Answered `ChangeUndone`, `NothingToUndo`, `ChangedSince`, `UndoUncertain`,
    `CannotUndo`, `UndoFailed`, `UndoBusy` or `Stale`; where it is only to be shown
    `UndoShown`.
    """

    token: SessionToken | None = None
    checkpoint: str = ""
    """Refuse unless this is the last change; empty takes whatever is the last."""
    when_changed: WhenChanged = "refuse"
    """What to do with files that changed since, or of which nobody knows."""
    only_show: Literal["no", "yes"] = "no"
    ask_deadline_s = 120.0


class RunUndo(Command, frozen=True, kw_only=True):
    """The SessionActor hands on an undo whose token is current."""

    token: SessionToken
    checkpoint: str
    when_changed: WhenChanged
    only_show: Literal["no", "yes"]
    ask_deadline_s = None


Certainty = Literal["certain", "uncertain"]
"""uncertain: the tool, or an earlier undo, began and nobody wrote how it ended."""


class UndoRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One change that can be undone."""

    checkpoint: str
    turn_id: TurnId
    call_id: CallId
    tool: str
    before: tuple[FileImage, ...]
    after: tuple[FileImage, ...]
    """Empty where it is uncertain."""
    certainty: Certainty

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(image.path for image in self.before))


class FileRestore(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an undo, and what the file is until then."""

    does: Literal["write", "remove", "move", "make_folder"]
    path: str
    source: str = ""
    """Where a move begins."""
    before: FileImage
    now: FileImage
    diff: str = ""


class ChangeUndone(Reply, frozen=True, kw_only=True):
    """The files are as they were before the change."""

    record: UndoRecord
    steps: tuple[FileRestore, ...]
    warning: str = ""


class UndoShown(Reply, frozen=True, kw_only=True):
    """What an undo would do; nothing was changed."""

    record: UndoRecord
    steps: tuple[FileRestore, ...]


class NothingToUndo(Refusal, frozen=True, kw_only=True):
    @property
    def remedy(self) -> str:
        return "there is nothing to undo: no tool of this session changed a file"


class ChangedSince(Refusal, frozen=True, kw_only=True):
    """Somebody else changed the files since; undoing would lose that."""

    record: UndoRecord
    steps: tuple[FileRestore, ...]

    @property
    def remedy(self) -> str:
        named = ", ".join(self.record.paths)
        return (
            f"{named} changed since {self.record.tool} wrote it; nothing was undone. "
            "Look at the difference, and force the undo to take the older content back "
            "(what is there now is kept)"
        )


class UndoUncertain(Refusal, frozen=True, kw_only=True):
    """Nobody knows whether the change was made, or undone before."""

    record: UndoRecord
    steps: tuple[FileRestore, ...]

    @property
    def remedy(self) -> str:
        named = ", ".join(self.record.paths)
        return (
            f"it is not known how {self.record.tool} left {named}: it was interrupted. "
            "Look at the difference, and force the undo to take the older content back "
            "(what is there now is kept)"
        )


class NotTheLast(Refusal, frozen=True, kw_only=True):
    """Another change is the last by now."""

    record: UndoRecord

    @property
    def remedy(self) -> str:
        named = ", ".join(self.record.paths)
        return f"the last change is another one by now: {self.record.tool} of {named}"


class CannotUndo(Refusal, frozen=True, kw_only=True):
    record: UndoRecord
    reason: str

    @property
    def remedy(self) -> str:
        return f"{', '.join(self.record.paths)}: {self.reason}; nothing was undone"


class UndoFailed(Refusal, frozen=True, kw_only=True):
    """The change stays on the stack."""

    record: UndoRecord
    reason: str

    @property
    def remedy(self) -> str:
        named = ", ".join(self.record.paths)
        return f"{named} could not be restored: {self.reason}. The change can still be undone"


class UndoBusy(Refusal, frozen=True, kw_only=True):
    @property
    def remedy(self) -> str:
        return "an undo of this seat is under way; wait for its end"


class UndoNotPossible(Refusal, frozen=True, kw_only=True):
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.reason}; nothing was undone"


UndoRefusal = (
    NothingToUndo | ChangedSince | UndoUncertain | NotTheLast | CannotUndo | UndoNotPossible
)


class ChangeReverted(Event, frozen=True, kw_only=True):
    """A change was undone."""

    token: SessionToken
    checkpoint: str
    paths: tuple[str, ...]


# --- undo: effects -----------------------------------------------------------------------------


class PlanUndo(Effect, frozen=True, kw_only=True):
    """Find the last change, and look at its files."""

    session_id: SessionId
    checkpoint: str
    when_changed: WhenChanged
    concurrent = True

    def failed(self, reason: str) -> Outcome:
        return UndoNotPlanned(refusal=UndoNotPossible(reason=reason))


class UndoPlanned(Outcome, frozen=True, kw_only=True):
    record: UndoRecord
    steps: tuple[FileRestore, ...]


class UndoNotPlanned(Outcome, frozen=True, kw_only=True):
    refusal: UndoRefusal


class RestoreFiles(Effect, frozen=True, kw_only=True):
    """Take the files back to what they were, unless they changed since the plan."""

    record: UndoRecord
    steps: tuple[FileRestore, ...]

    def failed(self, reason: str) -> Outcome:
        return FilesNotRestored(reason=reason)


class FilesRestored(Outcome, frozen=True, kw_only=True):
    replaced: tuple[FileImage, ...]
    """What was there before the undo; its bytes are kept."""
    warning: str = ""


class FilesNotRestored(Outcome, frozen=True, kw_only=True):
    reason: str


UndoOutcome = FilesRestored | FilesNotRestored
