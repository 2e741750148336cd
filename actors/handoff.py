"""HandoffActor: what one session leaves to the next, and who has taken it in.

    Tending -> Tending      a wish is an effect; effects run in order, and each outcome answers
    Tending + Following     a handoff is durable, and its stages run one after the other

ARCHITECTURE.md, section HandoffActor.
"""

import msgspec
from msgspec.structs import replace

from tenure.messages.base import Message
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.handoff import (
    STAGES,
    AcknowledgeBrief,
    BriefDelivered,
    BuildBrief,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    HandoffReceipted,
    HandoffRefused,
    HandoffSaved,
    HandoffStageDone,
    HandoffText,
    SaveCheckpoint,
    SaveHandoff,
    StageName,
    StageResult,
)
from tenure.messages.handoff_effects import (
    BriefBuilt,
    BriefNotBuilt,
    BriefSummarised,
    DeliverBrief,
    HandoffNotWritten,
    HandoffRepeated,
    HandoffStageRun,
    HandoffStagesNoted,
    HandoffWritten,
    NoteHandoffStages,
    Receipt,
    RunHandoffStage,
    SummariseBrief,
    UseVault,
    VaultUsed,
    VaultWish,
    WriteHandoff,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken

NOTHING_NEXT = "there is no next step and no blocker: the next session is told nothing to do"


class Following(msgspec.Struct, frozen=True):
    """A durable handoff whose stages run; `left` begins with the one under way."""

    asker: AskId | None
    wish: SaveHandoff
    receipt: Receipt
    left: tuple[StageName, ...]


class Tending(msgspec.Struct, frozen=True):
    """What it knows is in the vault; here is only what is under way."""

    following: tuple[Following, ...] = ()


State = Tending


def handoff_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message."""
    match message:
        case OwnerStarted():
            return Step(state)
        case SaveHandoff():
            return on_save(state, message, taken)
        case BuildBrief():
            return on_wake(state, message, taken)
        case (
            SaveCheckpoint()
            | AcknowledgeBrief()
            | GetRecovery()
            | GetHandoffs()
            | GetHandoff()
            | GetHandoffCheck()
        ):
            return on_wish(state, message, taken)
        case HandoffWritten():
            return on_written(state, message)
        case HandoffRepeated(asker=asker, receipt=receipt):
            return Step(state).answer(_asked(asker), _saved(receipt, "repeated"))
        case HandoffNotWritten() | VaultUsed() | BriefNotBuilt():
            return Step(state).answer(_asked(message.asker), message.reply)
        case HandoffStageRun():
            return on_stage_run(state, message)
        case HandoffStagesNoted(seq=seq, problem=problem):
            return on_stages_noted(state, seq, problem)
        case BriefBuilt():
            return on_brief_built(state, message)
        case BriefSummarised(asker=asker, brief=brief, generated=generated):
            # The brief by rule stands as it was delivered; the model's words stand beside it.
            return Step(state).answer(_asked(asker), replace(brief, generated=generated))
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- handoffs ----------------------------------------------------------------------------------


def on_save(state: State, wish: SaveHandoff, taken: Taken) -> Step[State]:
    """What says nothing is refused before anything is written."""
    text = without_blanks(wish.text)
    if not text.working_on:
        refused = HandoffRefused(reason="the summary is empty: say what was worked on")
        return Step(state).answer(taken.asker, refused)
    if wish.policy == "next_or_blocked" and not (text.next_steps or text.blocked):
        return Step(state).answer(taken.asker, HandoffRefused(reason=NOTHING_NEXT))
    write = WriteHandoff(asker=taken.asker, wish=replace(wish, text=text), id=taken.fresh)
    return Step(state).do(write)


def on_written(state: State, outcome: HandoffWritten) -> Step[State]:
    """It is durable: that is said at once, whatever becomes of the stages."""
    receipt, wish = outcome.receipt, outcome.wish
    if not (wish.text.next_steps or wish.text.blocked):
        receipt = replace(receipt, warnings=(*receipt.warnings, NOTHING_NEXT))
    stages = dict(receipt.stages)
    for name in STAGES:
        if name in wish.declined:
            stages[name] = StageResult(status="skipped", detail="declined")
        elif name not in wish.stages:
            stages.setdefault(name, StageResult(status="skipped", detail="not asked for"))
    receipt = replace(receipt, stages=stages)
    left = tuple(name for name in STAGES if name not in stages)
    said = HandoffReceipted(seq=receipt.seq, id=receipt.id, path=receipt.path)
    follow = Following(_asked(outcome.asker), wish, receipt, left)
    return _go_on(Step(state).emit(said), follow)


def on_stage_run(state: State, outcome: HandoffStageRun) -> Step[State]:
    """A stage that failed is said to have failed, and the next one runs."""
    follow = _followed(state, outcome.seq)
    if follow is None or not follow.left or follow.left[0] != outcome.stage:
        return Step(state)
    stages = {**follow.receipt.stages, outcome.stage: outcome.result}
    receipt = replace(follow.receipt, stages=stages)
    step = Step(_without(state, outcome.seq)).emit(
        HandoffStageDone(seq=outcome.seq, stage=outcome.stage, result=outcome.result)
    )
    return _go_on(step, replace(follow, receipt=receipt, left=follow.left[1:]))


def on_stages_noted(state: State, seq: int, problem: str) -> Step[State]:
    """All is over: whoever asked gets the receipt once more, with what became of the stages."""
    follow = _followed(state, seq)
    if follow is None:
        return Step(state)
    receipt = follow.receipt
    if problem:
        warning = f"what became of the stages is not in the journal: {problem}"
        receipt = replace(receipt, warnings=(*receipt.warnings, warning))
    return Step(_without(state, seq)).answer(follow.asker, _saved(receipt, "saved"))


# --- everything else ----------------------------------------------------------------------------


def on_wake(state: State, wish: BuildBrief, taken: Taken) -> Step[State]:
    return Step(state).do(DeliverBrief(asker=taken.asker, wish=wish, id=taken.fresh))


def on_wish(state: State, wish: VaultWish, taken: Taken) -> Step[State]:
    return Step(state).do(UseVault(asker=taken.asker, wish=wish, id=taken.fresh))


def on_brief_built(state: State, outcome: BriefBuilt) -> Step[State]:
    """The brief is out before any model is asked; what the model says is only added."""
    step = Step(state).emit(BriefDelivered(brief=outcome.brief))
    if not outcome.wish.model:
        return step.answer(_asked(outcome.asker), outcome.brief)
    return step.do(
        SummariseBrief(asker=outcome.asker, brief=outcome.brief, model=outcome.wish.model)
    )


# --- pure helpers ------------------------------------------------------------------------------


def without_blanks(text: HandoffText) -> HandoffText:
    """The same text without items that hold nothing but white space."""
    return HandoffText(
        **{
            name: tuple(item for item in getattr(text, name) if item.strip())
            for name in text.__struct_fields__
        }
    )


def _go_on(step: Step[State], follow: Following) -> Step[State]:
    """Run the next stage; note them when none is left."""
    state = Tending((*step.state.following, follow))
    receipt = follow.receipt
    if follow.left:
        stage = RunHandoffStage(receipt=receipt, stage=follow.left[0], wish=follow.wish)
        return step.to(state).do(stage)
    if any(name in receipt.stages and name != "file" for name in follow.wish.stages):
        note = NoteHandoffStages(seq=receipt.seq, id=receipt.id, stages=receipt.stages)
        return step.to(state).do(note)
    # Nothing followed, so there is nothing to note.
    return step.answer(follow.asker, _saved(receipt, "saved"))


def _saved(receipt: Receipt, outcome: str) -> HandoffSaved:
    return HandoffSaved(
        seq=receipt.seq,
        id=receipt.id,
        path=receipt.path,
        stages={name: receipt.stages[name] for name in STAGES if name in receipt.stages},
        outcome="repeated" if outcome == "repeated" else "saved",
        warnings=receipt.warnings,
    )


def _followed(state: State, seq: int) -> Following | None:
    return next((each for each in state.following if each.receipt.seq == seq), None)


def _without(state: State, seq: int) -> State:
    return Tending(tuple(each for each in state.following if each.receipt.seq != seq))


def _asked(asker: int | None) -> AskId | None:
    return None if asker is None else AskId(asker)


class HandoffActor(Owner):
    step = staticmethod(handoff_step)
    first = Tending
