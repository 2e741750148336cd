"""The HandoffActor's vocabulary: handoffs, checkpoints, briefs and their acknowledgement."""

from typing import ClassVar, Literal

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply

StageName = Literal["file", "transcript", "index", "git", "observe", "reflect"]
STAGES: tuple[StageName, ...] = ("file", "transcript", "index", "git", "observe", "reflect")
"""In the order in which they run; `file` is the readable copy, and is always wanted."""

StageStatus = Literal["ok", "skipped", "failed"]
Policy = Literal["any", "next_or_blocked"]
"""Which handoffs are taken: any with a summary, or only those that say how to go on."""

Detail = Literal["brief", "full"]

HANDOFFS_SHOWN = 3
BRIEF_CHARS = 12_000


class HandoffText(msgspec.Struct, frozen=True, kw_only=True):
    """What one session leaves to the next, in the caller's words.  A comma is data."""

    working_on: tuple[str, ...]
    next_steps: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    feelings: tuple[str, ...] = ()


class SessionLink(msgspec.Struct, frozen=True, kw_only=True):
    """How far into a session a handoff or a checkpoint reaches."""

    session_id: str
    epoch: int = 0
    """0 where the transcript does not say."""
    first_entry: str = ""
    """The first entry that no earlier handoff covers."""
    last_entry: str = ""
    entries: int = 0
    """Records of the session up to and with the last entry."""
    bytes: int = 0
    """How long the transcript was."""


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    status: StageStatus
    detail: str = ""
    """What was done, or why not."""


class SaveHandoff(Command, frozen=True, kw_only=True):
    """Sleep: leave a handoff.  Answered `HandoffSaved`, after the event `HandoffReceipted`."""

    ask_deadline_s: ClassVar[float | None] = None  # every stage has a deadline of its own

    text: HandoffText
    session: str = ""
    """The session that ends: its id, or the beginning of one; else a name of the caller's own."""
    author: str = ""
    """Who wrote the text: `draft:MODEL` for one that a model drafted; empty for the caller."""
    idempotency_key: str = ""
    transcript: str = ""
    """A file that the session was recorded in, to be observed."""
    stages: tuple[StageName, ...] = ()
    """What is to follow."""
    declined: tuple[StageName, ...] = ()
    """What the user was asked about and did not want."""
    policy: Policy = "any"


class HandoffReceipted(Event, frozen=True, kw_only=True):
    """The handoff is durable.  What follows can only add to it."""

    seq: int
    id: str
    path: str


class HandoffStageDone(Event, frozen=True, kw_only=True):
    seq: int
    stage: StageName
    result: StageResult


class HandoffSaved(Reply, frozen=True, kw_only=True):
    seq: int
    """Counts the handoffs of a vault, and only grows."""
    id: str
    path: str
    """The readable file."""
    stages: dict[StageName, StageResult]
    outcome: Literal["saved", "repeated"] = "saved"
    """repeated: this key had saved it before; the receipt is the first one's."""
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[StageName, ...]:
        """The stages that failed."""
        return tuple(name for name, each in self.stages.items() if each.status == "failed")


class HandoffRefused(Refusal, frozen=True, kw_only=True):
    """The handoff says too little, or something that cannot be meant; nothing was written."""

    reason: str

    @property
    def remedy(self) -> str:
        return self.reason


class VaultFailed(Refusal, frozen=True, kw_only=True):
    """The vault could not be read or written; nothing was promised."""

    path: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class SaveCheckpoint(Command, frozen=True, kw_only=True):
    """Note where a session stands.  Answered `CheckpointSaved`."""

    working_on: str = ""
    focus: str = ""
    blocked: str = ""
    urgency: Literal["normal", "urgent"] = "normal"
    session: str = ""
    idempotency_key: str = ""


class CheckpointSaved(Reply, frozen=True, kw_only=True):
    seq: int
    id: str
    path: str
    pruned: int = 0
    """Old ones that were removed."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint as it was found."""

    seq: int
    """0 for one of ClawVault's."""
    id: str
    at: str
    """UTC, ISO 8601; empty where it does not say."""
    working_on: str = ""
    focus: str = ""
    blocked: str = ""
    urgency: Literal["normal", "urgent"] = "normal"
    session: str = ""


NoticeKind = Literal["seat", "checkpoint", "clawvault"]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A session that ended without a handoff."""

    id: str
    """The mark that says so; an acknowledgement clears the mark as it was then."""
    digest: str
    kind: NoticeKind
    """A seat whose host died, a checkpoint without a handoff, or ClawVault's dirty flag."""
    session: str
    since: str
    """When the mark was last written: UTC, ISO 8601."""
    state: Literal["pending", "delivered"]
    checkpoint: Checkpoint | None = None
    warning: str = ""


class OpenBrief(msgspec.Struct, frozen=True, kw_only=True):
    """Another delivery that nobody acknowledged."""

    brief_id: str
    delivered: int
    notices: tuple[str, ...]


ItemKind = Literal[
    "notice", "working_on", "next_step", "blocked", "decision", "question", "feeling",
    "gap", "project", "commitment", "lesson", "observation",
]  # fmt: skip


class BriefItem(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a brief."""

    id: str
    """Names it within this vault: `h12.next_step.1`."""
    kind: ItemKind
    text: str
    source: str
    """The note, relative to the vault, or what else it comes from."""


class Omitted(msgspec.Struct, frozen=True, kw_only=True):
    kind: ItemKind
    count: int
    fetch: str
    """A command that shows them."""


class Generated(msgspec.Struct, frozen=True, kw_only=True):
    """What a model said of the brief; it never takes the brief's place."""

    model: str
    status: Literal["ok", "failed", "unasked"]
    text: str = ""
    """Only sentences that cite an item of the brief."""
    cited: tuple[str, ...] = ()
    dropped: int = 0
    """Sentences that cited nothing, or nothing that there is."""
    reason: str = ""


UNASKED = Generated(model="", status="unasked")


class BuildBrief(Command, frozen=True, kw_only=True):
    """Wake: deliver a brief.  Answered `Brief`, after the event `BriefDelivered`."""

    ask_deadline_s: ClassVar[float | None] = None  # the model has a deadline of its own

    handoffs_max: int = HANDOFFS_SHOWN
    chars_max: int = BRIEF_CHARS
    detail: Detail = "brief"
    model: str = ""
    """Whose summary is wanted; empty for none."""


class Brief(Reply, frozen=True, kw_only=True):
    brief_id: str
    """Names it to `AcknowledgeBrief`; empty where the delivery could not be recorded."""
    died: bool
    notices: tuple[Notice, ...]
    items: tuple[BriefItem, ...]
    omitted: tuple[Omitted, ...]
    summary: str
    """One line by rule: what was worked on."""
    delivered: int = 1
    """How often this brief was delivered, now included."""
    open: tuple[OpenBrief, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read, and what was skipped."""
    generated: Generated = UNASKED


class BriefDelivered(Event, frozen=True, kw_only=True):
    """The brief by rule, before any model is asked."""

    brief: Brief


class AcknowledgeBrief(Command, frozen=True, kw_only=True):
    """Say that a brief was taken in.  Answered `BriefAcknowledged`."""

    brief_id: str


class BriefAcknowledged(Reply, frozen=True, kw_only=True):
    brief_id: str
    cleared: tuple[str, ...]
    """The notices that it named and that are gone now."""
    kept: tuple[str, ...] = ()
    """Notices that it named and that have changed since: they come again."""
    outcome: Literal["acknowledged", "already"] = "acknowledged"


class BriefUnknown(Refusal, frozen=True, kw_only=True):
    brief_id: str

    @property
    def remedy(self) -> str:
        return f"no brief {self.brief_id!r} was delivered here; `tenure wake` gives one"


class GetRecovery(Query, frozen=True, kw_only=True):
    """Answered `Recovery`.  Nothing is changed."""


class Recovery(Reply, frozen=True, kw_only=True):
    died: bool
    notices: tuple[Notice, ...]
    checkpoint: Checkpoint | None
    """The newest that can be read."""
    handoff: "HandoffView | None"
    """The newest, by its number."""
    skipped: tuple[str, ...] = ()
    """Records that could not be read, and were passed over."""
    warnings: tuple[str, ...] = ()


class GetHandoffs(Query, frozen=True, kw_only=True):
    """Answered `HandoffList`, the newest first."""


class HandoffRow(msgspec.Struct, frozen=True, kw_only=True):
    seq: int
    id: str
    created: str
    path: str
    summary: str
    session: str = ""
    author: str = ""
    revisions: int = 0


class HandoffList(Reply, frozen=True, kw_only=True):
    handoffs: tuple[HandoffRow, ...]
    problems: tuple[str, ...] = ()


class GetHandoff(Query, frozen=True, kw_only=True):
    """Answered `HandoffView`."""

    name: str
    """A number, an id, or the beginning of one."""


class HandoffView(Reply, frozen=True, kw_only=True):
    """A handoff as it stands, with its last revision."""

    seq: int
    id: str
    created: str
    path: str
    text: HandoffText
    body: str = ""
    """The file's own words, where somebody else wrote it or changed it."""
    author: str = ""
    session: str = ""
    link: SessionLink | None = None
    digest: str = ""
    idempotency_key: str = ""
    revisions: tuple[int, ...] = ()
    """The numbers of the changes made to its file."""
    stages: dict[StageName, StageResult] = {}
    problem: str = ""
    """Why the file's front matter is not understood; its words are kept all the same."""


class HandoffUnknown(Refusal, frozen=True, kw_only=True):
    name: str
    candidates: tuple[str, ...] = ()

    @property
    def remedy(self) -> str:
        if self.candidates:
            return f"{self.name!r} may be any of {len(self.candidates)} handoffs; write more of it"
        return f"there is no handoff {self.name!r}; `tenure handoffs ls` lists them"


class GetHandoffCheck(Query, frozen=True, kw_only=True):
    """Answered `HandoffCheck`: the journal and every file, from their bytes alone."""


ProblemKind = Literal["damaged", "torn", "sequence", "changed", "missing", "added", "unreadable"]


class HandoffProblem(msgspec.Struct, frozen=True, kw_only=True):
    kind: ProblemKind
    where: str
    text: str


class HandoffCheck(Reply, frozen=True, kw_only=True):
    sound: bool
    journal: str
    records: int
    handoffs: int
    last_seq: int
    problems: tuple[HandoffProblem, ...]
