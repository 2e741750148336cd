"""The CompactionActor's vocabulary: a summary takes the place of what was said long ago."""

from typing import Any, Literal, NewType

import msgspec

from tenure.messages.base import Command, Effect, Event, Outcome, Query, Refusal, Reply
from tenure.messages.tokens import EntryId, SessionId, SessionToken, TurnId

PassId = NewType("PassId", str)
"""Names one pass: from its plan to its end."""

Trigger = Literal["manual", "threshold", "context_exceeded"]
"""manual: somebody asked for it.  threshold: the window fills up.  context_exceeded: the
provider said that the conversation is too long."""

SkipReason = Literal[
    "disabled",
    "window_unknown",
    "under_threshold",
    "too_few_turns",
    "no_cut",
    "no_gain",
    "unreadable",
]
"""Why there is nothing to compact."""

Summariser = Literal["model", "deterministic"]
"""deterministic: put together by rule, without a language model."""

Cut = Literal["before_prompt", "inside_turn"]
"""inside_turn: behind a complete tool batch; the summary quotes the turn's prompt word for word."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation is cut.  Sizes are in tokens, estimated."""

    first_kept: EntryId
    """The first entry that stays as it is; all that is shown before it is summarised."""
    cut: Cut
    messages: int
    """How many messages are summarised."""
    user_turns: int
    """How many prompts of the user are shown before the pass."""
    tokens_before: int
    """Of the whole conversation: what the provider counted last, and an estimate of the rest."""
    tokens_folded: int
    """Of what is summarised."""
    tokens_kept: int
    """Of what stays."""
    window: int
    """Tokens that the turn's model can read; 0 where nobody knows."""
    summariser: str = ""
    """The model that is asked for the summary; empty for the rule."""
    summariser_window: int = 0
    """Tokens that it can read; 0 where nobody knows."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What takes the place of the summarised messages."""

    text: str
    summariser: Summariser
    model: str = ""
    """As the provider reported it; empty for none."""
    problem: str = ""
    """Why the rule stood in for the model that was asked; empty where none was, or it did well."""
    tokens: int
    """Of the text, estimated."""
    details: dict[str, Any] = {}
    """For the entry: usage, files, references."""


# --- commands --------------------------------------------------------------------------


class Compact(Command, frozen=True, kw_only=True):
    """Compact the seat's session now.  Answered `Compacted` when it is done.

    With `when_busy="queue"` it waits for a pass that is under way: `CompactionQueued`,
    and the end is the event `CompactionEnded`.
    """

    instructions: str = ""
    """What the summary should keep, in the user's words."""
    token: SessionToken | None = None
    """None takes the session that is current when the command is taken."""
    when_busy: Literal["refuse", "queue"] = "refuse"
    ask_deadline_s = None


class Uncompact(Command, frozen=True, kw_only=True):
    """Take the last compaction back, while nothing follows it.  Answered `Uncompacted`."""

    token: SessionToken | None = None


class RunCompaction(Command, frozen=True, kw_only=True):
    """The SessionActor checked the token of a wish, or a turn needs room before a model call."""

    token: SessionToken
    trigger: Trigger
    turn_id: TurnId | None = None
    model: str = ""
    """Of the turn; empty for the host's."""
    window: int = 0
    instructions: str = ""
    when_busy: Literal["refuse", "queue"] = "queue"
    ask_deadline_s = None


class StopCompaction(Command, frozen=True, kw_only=True):
    """Stop the pass that it names, and no other.  Answered `CompactionStopping` at once."""

    pass_id: PassId


class DropPass(Command, frozen=True, kw_only=True):
    """The turn that needed room is being stopped: so is the pass that it asked for."""

    turn_id: TurnId


class DropPasses(Command, frozen=True, kw_only=True):
    """The seat has another session, or the same at another epoch: no pass of before counts."""


class SettlePasses(Command, frozen=True, kw_only=True):
    """A restarted CompactionActor asks: close the audit of every pass that has no end.

    Answered `PassesSettled`.
    """

    ask_deadline_s = None


class GetCompaction(Query, frozen=True, kw_only=True):
    """Answered `CompactionView`."""


# --- replies ---------------------------------------------------------------------------


class Compacted(Reply, frozen=True, kw_only=True):
    """The summary is durable, and the next model call sees it in place of the old messages."""

    pass_id: PassId
    entry_id: EntryId
    tokens_before: int
    tokens_after: int
    """Both estimated, in the same measure."""
    messages: int
    """How many were summarised."""
    summariser: Summariser
    model: str
    problem: str = ""
    """Why the rule stood in for the model that was asked; empty where none was."""


class CompactionQueued(Reply, frozen=True, kw_only=True):
    pass_id: PassId
    position: int
    """1 is next."""


class CompactionStopping(Reply, frozen=True, kw_only=True):
    """The stop is under way; the end is the event `CompactionEnded`."""

    pass_id: PassId


class PassesSettled(Reply, frozen=True, kw_only=True):
    token: SessionToken
    settled: int


class Uncompacted(Reply, frozen=True, kw_only=True):
    """The conversation is as it was before its last compaction; the token is a new one."""

    token: SessionToken
    entry_id: EntryId
    """The compaction that was taken back; it stays in the file."""


class CompactionView(Reply, frozen=True, kw_only=True):
    state: str
    pass_id: PassId | None
    waiting: int


# --- refusals --------------------------------------------------------------------------


class NothingToCompact(Refusal, frozen=True, kw_only=True):
    """Nothing was changed."""

    reason: SkipReason
    said: str

    @property
    def remedy(self) -> str:
        return f"nothing to compact: {self.said}"


class CompactionBusy(Refusal, frozen=True, kw_only=True):
    """Another pass is under way."""

    pass_id: PassId
    instructions: str
    """Those of the refused command, given back."""

    @property
    def remedy(self) -> str:
        return "a compaction is under way; wait for its end and ask again, or ask to be queued"


class CompactionStopped(Refusal, frozen=True, kw_only=True):
    """The pass was stopped; the conversation is as it was."""

    pass_id: PassId
    instructions: str = ""

    @property
    def remedy(self) -> str:
        return "the compaction was stopped; the conversation is as it was"


class CompactionFailed(Refusal, frozen=True, kw_only=True):
    """The conversation is as it was."""

    pass_id: PassId
    reason: str
    instructions: str = ""

    @property
    def remedy(self) -> str:
        return f"not compacted: {self.reason}. The conversation is as it was"


class CompactionNotRunning(Refusal, frozen=True, kw_only=True):
    """The pass that the stop names is over, or its summary is being written already."""

    pass_id: PassId

    @property
    def remedy(self) -> str:
        return "that compaction is over, or can no longer be stopped"


class NothingToUncompact(Refusal, frozen=True, kw_only=True):
    @property
    def remedy(self) -> str:
        return "this conversation has no compaction that could be taken back"


class WouldDrop(Refusal, frozen=True, kw_only=True):
    """Messages follow the summary: taking it back would leave them behind."""

    count: int
    fork_from: EntryId
    """The entry from which a session of its own would go on without the compaction."""

    @property
    def remedy(self) -> str:
        return (
            f"{self.count} messages came after the compaction and would be dropped; "
            f"fork the session at {self.fork_from} to go on from before it"
        )


# --- events ----------------------------------------------------------------------------


class CompactionStarted(Event, frozen=True, kw_only=True):
    """A pass is in the transcript, and the summary is being written."""

    pass_id: PassId
    token: SessionToken
    trigger: Trigger
    turn_id: TurnId | None
    tokens_before: int
    messages: int


CompactionStatus = Literal[
    "compacted", "skipped", "failed", "stopped", "session_lost", "owner_lost"
]


class CompactionEnded(Event, frozen=True, kw_only=True):
    """The last event of a pass."""

    pass_id: PassId
    token: SessionToken | None
    """None where its owner is lost."""
    status: CompactionStatus
    turn_id: TurnId | None = None
    """The turn that needed room; None for a wish."""
    reason: str = ""
    compacted: Compacted | None = None
    """What was done; only where something was."""


class CompactionReverted(Event, frozen=True, kw_only=True):
    """The conversation is as it was before this compaction."""

    token: SessionToken
    entry_id: EntryId


# --- effects and their outcomes ----------------------------------------------------------


class PlanCompaction(Effect, frozen=True, kw_only=True):
    """Is a conversation to be compacted, and where is it cut?"""

    pass_id: PassId
    session_id: SessionId
    trigger: Trigger
    model: str
    window: int
    concurrent = True

    @property
    def key(self) -> str:
        return f"plan {self.pass_id}"

    def failed(self, reason: str) -> Outcome:
        return CompactionNotPlanned(pass_id=self.pass_id, reason="unreadable", said=reason)


class CompactionPlanned(Outcome, frozen=True, kw_only=True):
    pass_id: PassId
    plan: CompactionPlan


class CompactionNotPlanned(Outcome, frozen=True, kw_only=True):
    pass_id: PassId
    reason: SkipReason
    said: str


class SummariseConversation(Effect, frozen=True, kw_only=True):
    """Write the summary that a plan calls for.  Nothing is stored."""

    pass_id: PassId
    session_id: SessionId
    plan: CompactionPlan
    instructions: str
    concurrent = True

    @property
    def key(self) -> str:
        return f"summary {self.pass_id}"

    def failed(self, reason: str) -> Outcome:
        return ConversationNotSummarised(pass_id=self.pass_id, reason=reason)


class ConversationSummarised(Outcome, frozen=True, kw_only=True):
    pass_id: PassId
    summary: Summary


class ConversationNotSummarised(Outcome, frozen=True, kw_only=True):
    pass_id: PassId
    reason: str


class FindCompaction(Effect, frozen=True, kw_only=True):
    """Which compaction is the last of the leaf's path, and what came after it?"""

    session_id: SessionId

    def failed(self, reason: str) -> Outcome:
        return CompactionMissing(session_id=self.session_id)


class CompactionFound(Outcome, frozen=True, kw_only=True):
    session_id: SessionId
    entry_id: EntryId
    parent_id: EntryId
    """What it hangs on: the conversation as it was before."""
    messages_after: int


class CompactionMissing(Outcome, frozen=True, kw_only=True):
    session_id: SessionId
