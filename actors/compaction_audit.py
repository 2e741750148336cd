"""What a pass writes: one start, one end, and between them nothing but the summary itself."""

from typing import Any

from tenure.actors.compaction_state import Ending, Pass, Request
from tenure.messages.compaction import CompactionPlan, Summary
from tenure.messages.entries import CompactionEntry, CustomEntry

AUDIT = "tenure/compaction"


def start_of(request: Request, plan: CompactionPlan | None) -> CustomEntry:
    """The start of the audit; without a plan for a wish that came to nothing."""
    data: dict[str, Any] = {
        "phase": "start",
        "pass": request.pass_id,
        "trigger": request.trigger,
        "hasInstructions": bool(request.instructions),
    }
    if request.turn_id is not None:
        data["turn"] = request.turn_id
    if plan is not None:
        data["messages"] = plan.messages
        data["userTurns"] = plan.user_turns
        data["tokens"] = plan.tokens_before
        data["window"] = plan.window
    return CustomEntry(custom_type=AUDIT, data=data)


def end_of(request: Request, ending: Ending) -> CustomEntry:
    data = {"phase": "end", "pass": request.pass_id, "status": ending.status}
    if ending.reason:
        data["reason"] = ending.reason
    return CustomEntry(custom_type=AUDIT, data=data)


def entry_of(run: Pass, summary: Summary) -> CompactionEntry:
    """The entry that replaces the old messages for every reader of the transcript."""
    request = run.request
    details: dict[str, Any] = {
        "pass": request.pass_id,
        "trigger": request.trigger,
        "summariser": summary.summariser,
        "model": summary.model,
    }
    if summary.problem:
        details["problem"] = summary.problem
    if request.instructions:
        details["instructions"] = request.instructions
    return CompactionEntry(
        summary=summary.text,
        first_kept_entry_id=run.plan.first_kept,
        tokens_before=run.plan.tokens_before,
        details={**summary.details, **details},
    )


def tokens_after(plan: CompactionPlan, summary: Summary) -> int:
    """In the measure of `tokens_before`, which a provider may have counted."""
    before = plan.tokens_folded + plan.tokens_kept
    after = summary.tokens + plan.tokens_kept
    return plan.tokens_before * after // max(before, 1)
