"""A CompactionActor's step, driven by hand: its doors and its SessionActor answer as told."""

from typing import Any

from steps import Driven, token

from tenure.actors.compaction import compaction_step
from tenure.actors.compaction_state import Idle
from tenure.messages.base import Reply
from tenure.messages.compaction import (
    CompactionEnded,
    CompactionNotPlanned,
    CompactionPlan,
    CompactionPlanned,
    CompactionStarted,
    ConversationNotSummarised,
    ConversationSummarised,
    PlanCompaction,
    RunCompaction,
    SkipReason,
    SummariseConversation,
    Summary,
    Trigger,
)
from tenure.messages.entries import CompactionEntry, CustomEntry
from tenure.messages.session import Appended, AppendEntries
from tenure.messages.tokens import EntryId
from tenure.runtime.step import AskId

PLAN = CompactionPlan(
    first_kept=EntryId("kept"),
    cut="before_prompt",
    messages=6,
    user_turns=4,
    tokens_before=1_000,
    tokens_folded=800,
    tokens_kept=200,
    window=1_200,
)


class DrivenCompaction(Driven[Any]):
    """Session A is the seat's."""

    def __init__(self) -> None:
        super().__init__(compaction_step, Idle())

    @property
    def name(self) -> str:
        return type(self.state).__name__

    def wish(self, trigger: Trigger = "manual", **fields: Any) -> AskId:
        when_busy = fields.pop("when_busy", "refuse" if trigger == "manual" else "queue")
        return self.ask(
            RunCompaction(token=token(), trigger=trigger, when_busy=when_busy, **fields)
        )

    @property
    def pass_id(self) -> Any:
        """Of the newest pass."""
        return self.wanted(PlanCompaction)[-1].pass_id

    def planned(self, plan: CompactionPlan = PLAN) -> None:
        self.tell(CompactionPlanned(pass_id=self.pass_id, plan=plan))

    def not_planned(self, reason: SkipReason = "under_threshold") -> None:
        self.tell(CompactionNotPlanned(pass_id=self.pass_id, reason=reason, said="no"))

    def saved(self) -> None:
        entries, _ = self.waiting_for(AppendEntries)
        ids = tuple(EntryId(f"e{place}") for place in range(len(entries.entries)))
        self.answer(AppendEntries, Appended(token=token(), entry_ids=ids, seq=len(ids)))

    def refused(self, reply: Reply) -> None:
        self.answer(AppendEntries, reply)

    def summarised(self, tokens: int = 100, **fields: Any) -> None:
        how = {"summariser": "model", "model": "acme-1"} | fields
        summary = Summary(text="short", tokens=tokens, **how)
        self.tell(ConversationSummarised(pass_id=self.pass_id, summary=summary))

    def not_summarised(self, reason: str = "cancelled") -> None:
        self.tell(ConversationNotSummarised(pass_id=self.pass_id, reason=reason))

    def to_summarising(self, trigger: Trigger = "manual", **fields: Any) -> AskId:
        asker = self.wish(trigger, **fields)
        self.planned()
        self.saved()
        assert self.wanted(SummariseConversation)
        return asker

    @property
    def written(self) -> list[str]:
        """Every entry that was sent, in short, in order."""
        told = []
        for append in self.sent(AppendEntries):
            for entry in append.entries:
                if isinstance(entry, CompactionEntry):
                    told.append("summary")
                elif isinstance(entry, CustomEntry):
                    told.append(f"{entry.data['phase']} {entry.data.get('status', '')}".strip())
        return told

    @property
    def started(self) -> list[CompactionStarted]:
        return self.said(CompactionStarted)

    @property
    def ended(self) -> list[CompactionEnded]:
        return self.said(CompactionEnded)

    def ask_queued(self) -> AskId:
        """A wish that waits behind the pass under way."""
        return self.wish(when_busy="queue")

    def tell_late(self, pass_id: Any) -> None:
        """A summary of a pass that is over."""
        summary = Summary(text="late", tokens=1, summariser="model")
        self.tell(ConversationSummarised(pass_id=pass_id, summary=summary))
