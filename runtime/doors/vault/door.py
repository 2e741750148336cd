"""The vault door: the handlers of the HandoffActor's effects.

Every change is one piece of work under the vault's claim: lock, read again, decide,
write, sync, let go.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from tenure.messages.base import Outcome, Reply
from tenure.messages.handoff import (
    STAGES,
    AcknowledgeBrief,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    SaveCheckpoint,
    StageName,
    StageResult,
    VaultFailed,
)
from tenure.messages.handoff_effects import (
    BriefBuilt,
    BriefNotBuilt,
    BriefSummarised,
    DeliverBrief,
    HandoffNotWritten,
    HandoffStageRun,
    HandoffStagesNoted,
    NoteHandoffStages,
    RunHandoffStage,
    SummariseBrief,
    UseVault,
    VaultUsed,
    WriteHandoff,
)
from tenure.runtime.doors.claims import ClaimBusy, Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.vault.acknowledging import acknowledge
from tenure.runtime.doors.vault.git import Git
from tenure.runtime.doors.vault.journal import append, read_journal
from tenure.runtime.doors.vault.looking import check, list_handoffs, recovery, show_handoff
from tenure.runtime.doors.vault.paths import VaultGround, reason_of
from tenure.runtime.doors.vault.records import StagesRecord
from tenure.runtime.doors.vault.saving import Said, save_checkpoint, save_handoff
from tenure.runtime.doors.vault.waking import build_brief, deliver_brief

if TYPE_CHECKING:
    from tenure.runtime.doors.leaves import Leaves
    from tenure.runtime.doors.vault.drafting import BriefWriter

CLAIM_WAIT_MAX_S = 20.0
CLAIM_RETRY_S = 0.02

T = TypeVar("T")
R = TypeVar("R")
StageWork = Callable[[VaultGround, RunHandoffStage], StageResult]
"""What carries out a stage; blocks, and may raise `OSError`."""


class Vault:
    """Carries out what a HandoffActor wants.

    Args:
        root: the vault; an absolute path.
        stages: who carries out the stages that other parts offer.
        writer: says a brief shorter; without one, no model is asked.
    """

    def __init__(
        self,
        leaves: "Leaves",
        root: str,
        claims: Claims,
        *,
        stages: Mapping[StageName, StageWork] | None = None,
        writer: "BriefWriter | None" = None,
    ) -> None:
        self._leaves = leaves
        self.ground = VaultGround(leaves, root, claims)
        self._stages: dict[StageName, StageWork] = {
            "transcript": link_transcript,
            "git": commit_handoff,
            **(stages or {}),
        }
        self._writer = writer

    # --- handlers ----------------------------------------------------------------------------

    async def write_handoff(self, effect: WriteHandoff, context: Context) -> Outcome:
        """Append it to the journal, durably, and make its file."""
        done = await self._claimed(save_handoff, effect)
        if isinstance(done, VaultFailed):
            return HandoffNotWritten(asker=effect.asker, reply=done)
        return done

    async def run_stage(self, effect: RunHandoffStage, context: Context) -> Outcome:
        """One stage, by whoever offers it."""
        work = self._stages.get(effect.stage)
        if work is None:
            result = StageResult(status="skipped", detail="nothing here offers this yet")
        else:
            try:
                result = await self._leaves.workers.run(work, self.ground, effect)
            except OSError as error:
                result = StageResult(status="failed", detail=reason_of(error))
        return HandoffStageRun(seq=effect.receipt.seq, stage=effect.stage, result=result)

    async def note_stages(self, effect: NoteHandoffStages, context: Context) -> Outcome:
        """Append what became of the stages."""
        done = await self._claimed(_note_stages, effect)
        if isinstance(done, VaultFailed):
            return HandoffStagesNoted(seq=effect.seq, problem=done.remedy)
        return done

    async def use(self, effect: UseVault, context: Context) -> Outcome:
        """One wish, and its answer."""
        reply: Reply
        match effect.wish:
            case SaveCheckpoint() as wish:
                reply = await self._claimed(save_checkpoint, Said(wish=wish, id=effect.id))
            case AcknowledgeBrief(brief_id=brief_id):
                reply = await self._claimed(acknowledge, brief_id)
            case GetRecovery():
                reply = await self._looked(recovery)
            case GetHandoffs():
                reply = await self._looked(list_handoffs)
            case GetHandoff(name=name):
                reply = await self._looked(lambda ground: show_handoff(ground, name))
            case GetHandoffCheck():
                reply = await self._looked(check)
        return VaultUsed(asker=effect.asker, reply=reply)

    async def deliver(self, effect: DeliverBrief, context: Context) -> Outcome:
        """Build the brief and record its delivery; where it cannot be recorded, deliver it."""
        delivered = await self._claimed(deliver_brief, effect)
        if not isinstance(delivered, VaultFailed):
            return BriefBuilt(asker=effect.asker, wish=effect.wish, brief=delivered)
        problem = f"this delivery is not recorded, so it cannot be acknowledged: {delivered.remedy}"
        brief = await self._looked(lambda ground: build_brief(ground, effect.wish, problem))
        if isinstance(brief, VaultFailed):
            return BriefNotBuilt(asker=effect.asker, reply=brief)
        return BriefBuilt(asker=effect.asker, wish=effect.wish, brief=brief)

    async def summarise(self, effect: SummariseBrief, context: Context) -> Outcome:
        """Have a model say the brief shorter."""
        if self._writer is None:
            failed = effect.failed("no model can be asked here")
            assert isinstance(failed, BriefSummarised)
            return failed
        generated = await self._writer.summarise(effect.brief, effect.model)
        return BriefSummarised(asker=effect.asker, brief=effect.brief, generated=generated)

    # --- under the claim -----------------------------------------------------------------------

    async def _claimed(self, work: Callable[[VaultGround, T], R], what: T) -> R | VaultFailed:
        """Do it under the claim, waiting `CLAIM_WAIT_MAX_S` at most for other writers."""
        clock = self._leaves.clock
        ends_s = clock.monotonic_s() + CLAIM_WAIT_MAX_S
        while True:
            # Taking, writing and letting go are one piece of work: a cancel in
            # between would leave the claim with nobody to release it.
            done = await self._leaves.workers.run(self._under_claim, work, what)
            if not isinstance(done, ClaimBusy):
                return done
            if clock.monotonic_s() >= ends_s:
                return VaultFailed(path=self.ground.journal, reason=_busy(done))
            await clock.sleep(CLAIM_RETRY_S)

    def _under_claim(
        self, work: Callable[[VaultGround, T], R], what: T
    ) -> R | VaultFailed | ClaimBusy:
        ground = self.ground
        try:
            claim = ground.claims.take(ground.claim)
        except OSError as error:
            return VaultFailed(
                path=ground.journal, reason=f"it cannot be locked here ({reason_of(error)})"
            )
        if isinstance(claim, ClaimBusy):  # guard: CLAIM-1
            return claim
        try:
            return work(ground, what)
        except OSError as error:
            path = str(error.filename or ground.journal)
            return VaultFailed(path=path, reason=reason_of(error))
        finally:
            claim.release()

    async def _looked(self, work: Callable[[VaultGround], T]) -> T | VaultFailed:
        try:
            return await self._leaves.workers.run(work, self.ground)
        except OSError as error:
            return VaultFailed(
                path=str(error.filename or self.ground.root), reason=reason_of(error)
            )


# --- stages ----------------------------------------------------------------------------------


def link_transcript(ground: VaultGround, effect: RunHandoffStage) -> StageResult:
    """Whether the transcript that was named is there to be read."""
    path = effect.wish.transcript
    if not path:
        return StageResult(status="skipped", detail="no transcript was named")
    found = ground.files.stat(path)
    if found.kind != "file":
        return StageResult(status="failed", detail=f"{path}: it is a {found.kind}, not a file")
    return StageResult(status="ok", detail=f"{path}: {found.size:,} bytes")


def commit_handoff(ground: VaultGround, effect: RunHandoffStage) -> StageResult:
    """Commit the handoff's file."""
    git = Git(ground, ground.leaves.programs, ground.leaves.entropy.fresh())
    return git.commit((effect.receipt.note,), f"Handoff {effect.receipt.seq}")


def _note_stages(ground: VaultGround, effect: NoteHandoffStages) -> HandoffStagesNoted:
    stages = {name: effect.stages[name] for name in STAGES if name in effect.stages}
    record = StagesRecord(of=effect.seq, at_ms=ground.leaves.clock.now_ms(), stages=stages)
    append(ground, read_journal(ground), (record,))
    return HandoffStagesNoted(seq=effect.seq)


def _busy(busy: ClaimBusy) -> str:
    who = "another process" if busy.holder is None else f"process {busy.holder.process.pid}"
    return f"{who} is writing it; try again"
