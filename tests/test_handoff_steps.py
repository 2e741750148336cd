"""HandoffActor: durable first, stages after it, and a model's words beside the brief."""

from typing import Any

import pytest
from steps import Driven
from vault_world import text_of

from tenure.actors.handoff import Tending, handoff_step
from tenure.messages.handoff import (
    AcknowledgeBrief,
    Brief,
    BriefAcknowledged,
    BriefDelivered,
    BuildBrief,
    Generated,
    HandoffReceipted,
    HandoffRefused,
    HandoffSaved,
    HandoffStageDone,
    SaveHandoff,
    StageResult,
    VaultFailed,
)
from tenure.messages.handoff_effects import (
    BriefBuilt,
    BriefSummarised,
    HandoffNotWritten,
    HandoffStageRun,
    HandoffStagesNoted,
    HandoffWritten,
    NoteHandoffStages,
    Receipt,
    RunHandoffStage,
    SummariseBrief,
    UseVault,
    VaultUsed,
    WriteHandoff,
)
from tenure.runtime.step import AskId

RECEIPT = Receipt(seq=7, id="h", path="/v/handoffs/h.md", note="handoffs/h.md")
BRIEF = Brief(
    brief_id="b", died=True, notices=(), items=(), omitted=(), summary="by rule", problems=()
)


def driven() -> Driven[Any]:
    return Driven(handoff_step, Tending())


def saved(owner: Driven[Any], *stages: Any, **fields: Any) -> AskId:
    """A handoff that is durable, with these stages to follow."""
    wish = SaveHandoff(text=text_of("x", next_steps=("y",)), stages=stages, **fields)
    asker = owner.ask(wish)
    write = owner.wanted(WriteHandoff)[-1]
    owner.tell(HandoffWritten(asker=write.asker, wish=write.wish, receipt=RECEIPT))
    return asker


def ends(owner: Driven[Any], stage: Any, status: Any = "ok") -> None:
    owner.tell(HandoffStageRun(seq=7, stage=stage, result=StageResult(status=status)))


@pytest.mark.witness("HANDOFF-1")
def test_receipt_is_said_when_it_is_durable_and_before_any_stage_has_ended() -> None:
    owner = driven()
    asker = owner.ask(SaveHandoff(text=text_of("x"), stages=("git",)))
    assert owner.events == []
    write = owner.wanted(WriteHandoff)[0]
    owner.tell(HandoffWritten(asker=write.asker, wish=write.wish, receipt=RECEIPT))
    assert owner.said(HandoffReceipted) == [
        HandoffReceipted(seq=7, id="h", path="/v/handoffs/h.md")
    ]
    assert owner.reply_to(asker) is None


def test_handoff_without_stages_is_answered_at_once_with_every_stage_skipped() -> None:
    owner = driven()
    reply = owner.reply_to(saved(owner))
    assert isinstance(reply, HandoffSaved)
    assert {each.status for each in reply.stages.values()} == {"skipped"}
    assert owner.wanted(RunHandoffStage) == []


@pytest.mark.witness("HANDOFF-4")
def test_stage_that_fails_is_told_and_the_next_one_runs() -> None:
    owner = driven()
    asker = saved(owner, "git", "observe")
    ends(owner, "git", "failed")
    assert [each.stage for each in owner.wanted(RunHandoffStage)] == ["git", "observe"]
    ends(owner, "observe")
    assert owner.wanted(NoteHandoffStages)[0].stages["git"].status == "failed"
    owner.tell(HandoffStagesNoted(seq=7))
    reply = owner.reply_to(asker)
    assert isinstance(reply, HandoffSaved)
    told = {name: each.status for name, each in reply.stages.items()}
    assert told["git"] == "failed"
    assert told["observe"] == "ok"
    assert told["reflect"] == "skipped"
    assert [each.stage for each in owner.said(HandoffStageDone)] == ["git", "observe"]


def test_stages_that_could_not_be_noted_are_answered_all_the_same() -> None:
    owner = driven()
    asker = saved(owner, "git")
    ends(owner, "git")
    owner.tell(HandoffStagesNoted(seq=7, problem="no space left"))
    reply = owner.reply_to(asker)
    assert isinstance(reply, HandoffSaved)
    assert "no space left" in reply.warnings[0]


def test_declined_stage_is_skipped_and_says_so() -> None:
    owner = driven()
    reply = owner.reply_to(saved(owner, declined=("git",)))
    assert isinstance(reply, HandoffSaved)
    assert reply.stages["git"] == StageResult(status="skipped", detail="declined")


def test_stages_of_two_handoffs_run_beside_each_other() -> None:
    owner = driven()
    saved(owner, "git")
    asker = owner.ask(SaveHandoff(text=text_of("x", next_steps=("y",))))
    write = owner.wanted(WriteHandoff)[-1]
    other = Receipt(seq=8, id="i", path="/v/i.md", note="i.md")
    owner.tell(HandoffWritten(asker=write.asker, wish=write.wish, receipt=other))
    reply = owner.reply_to(asker)
    assert isinstance(reply, HandoffSaved)
    assert reply.seq == 8


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_empty_summary_is_refused_before_anything_is_written(blank: str) -> None:
    owner = driven()
    asker = owner.ask(SaveHandoff(text=text_of(blank)))
    assert isinstance(owner.reply_to(asker), HandoffRefused)
    assert owner.effects == []


def test_policy_refuses_a_handoff_that_says_nothing_of_how_to_go_on() -> None:
    owner = driven()
    asker = owner.ask(SaveHandoff(text=text_of("x"), policy="next_or_blocked"))
    assert isinstance(owner.reply_to(asker), HandoffRefused)
    assert owner.effects == []
    owner.ask(SaveHandoff(text=text_of("x", blocked=("y",)), policy="next_or_blocked"))
    assert len(owner.wanted(WriteHandoff)) == 1


def test_handoff_without_next_step_and_blocker_is_taken_with_a_warning() -> None:
    owner = driven()
    asker = owner.ask(SaveHandoff(text=text_of("x")))
    write = owner.wanted(WriteHandoff)[0]
    owner.tell(HandoffWritten(asker=write.asker, wish=write.wish, receipt=RECEIPT))
    reply = owner.reply_to(asker)
    assert isinstance(reply, HandoffSaved)
    assert len(reply.warnings) == 1


def test_failure_to_write_is_the_answer() -> None:
    owner = driven()
    asker = owner.ask(SaveHandoff(text=text_of("x")))
    failed = VaultFailed(path="p", reason="no space left")
    owner.tell(HandoffNotWritten(asker=asker, reply=failed))
    assert owner.reply_to(asker) == failed
    assert owner.events == []


def test_wish_is_answered_with_what_came_of_it() -> None:
    owner = driven()
    asker = owner.ask(AcknowledgeBrief(brief_id="b"))
    reply = BriefAcknowledged(brief_id="b", cleared=())
    assert owner.wanted(UseVault)[0].asker == asker
    assert owner.reply_to(asker) is None
    owner.tell(VaultUsed(asker=asker, reply=reply))
    assert owner.reply_to(asker) == reply


@pytest.mark.witness("HANDOFF-7")
def test_brief_is_delivered_before_a_model_is_asked_and_its_words_stand_beside_it() -> None:
    owner = driven()
    asker = owner.ask(BuildBrief(model="m"))
    owner.tell(BriefBuilt(asker=asker, wish=BuildBrief(model="m"), brief=BRIEF))
    assert owner.said(BriefDelivered) == [BriefDelivered(brief=BRIEF)]
    assert len(owner.wanted(SummariseBrief)) == 1
    generated = Generated(model="m", status="ok", text="all clear")
    owner.tell(BriefSummarised(asker=asker, brief=BRIEF, generated=generated))
    reply = owner.reply_to(asker)
    assert isinstance(reply, Brief)
    assert (reply.summary, reply.died, reply.generated.text) == ("by rule", True, "all clear")


def test_late_outcome_of_a_stage_changes_nothing() -> None:
    owner = driven()
    saved(owner, "git")
    ends(owner, "git")
    owner.tell(HandoffStagesNoted(seq=7))
    before = owner.state
    ends(owner, "git", "failed")
    owner.tell(HandoffStagesNoted(seq=7))
    assert owner.state == before == Tending()
