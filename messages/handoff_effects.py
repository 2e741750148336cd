"""What the HandoffActor wants done outside, and what came of it.

Its effects run in the order in which they were asked for, so whoever asked rides in
the effect and comes back in its outcome.
"""

from typing import ClassVar

import msgspec

from tenure.messages.base import Command, Effect, Outcome, Reply
from tenure.messages.handoff import (
    AcknowledgeBrief,
    Brief,
    BuildBrief,
    Generated,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    SaveCheckpoint,
    SaveHandoff,
    StageName,
    StageResult,
    VaultFailed,
)


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff that is durable."""

    seq: int
    id: str
    path: str
    """Its readable file."""
    note: str
    """The same from the vault."""
    stages: dict[StageName, StageResult] = {}
    """What is known of them already."""
    warnings: tuple[str, ...] = ()


class WriteHandoff(Effect, frozen=True, kw_only=True):
    """Under the vault's claim: read again, number it, append it, sync; then its file."""

    asker: int | None
    wish: SaveHandoff
    id: str

    def failed(self, reason: str) -> Outcome:
        return HandoffNotWritten(asker=self.asker, reply=VaultFailed(path="", reason=reason))


class HandoffWritten(Outcome, frozen=True, kw_only=True):
    """It is durable now; `wish` says what is to follow."""

    asker: int | None
    wish: SaveHandoff
    receipt: Receipt


class HandoffRepeated(Outcome, frozen=True, kw_only=True):
    """Its key had saved the same text before."""

    asker: int | None
    receipt: Receipt


class HandoffNotWritten(Outcome, frozen=True, kw_only=True):
    asker: int | None
    reply: Reply


class RunHandoffStage(Effect, frozen=True, kw_only=True):
    """One thing that follows a handoff.  It can fail, and the handoff stays."""

    concurrent: ClassVar[bool] = True

    receipt: Receipt
    stage: StageName
    wish: SaveHandoff

    def failed(self, reason: str) -> Outcome:
        result = StageResult(status="failed", detail=reason)
        return HandoffStageRun(seq=self.receipt.seq, stage=self.stage, result=result)


class HandoffStageRun(Outcome, frozen=True, kw_only=True):
    seq: int
    stage: StageName
    result: StageResult


class NoteHandoffStages(Effect, frozen=True, kw_only=True):
    """Append what became of the stages to the journal."""

    seq: int
    id: str
    stages: dict[StageName, StageResult]

    def failed(self, reason: str) -> Outcome:
        return HandoffStagesNoted(seq=self.seq, problem=reason)


class HandoffStagesNoted(Outcome, frozen=True, kw_only=True):
    seq: int
    problem: str = ""
    """Why they were not noted; empty where they were."""


VaultWish = (
    SaveCheckpoint | AcknowledgeBrief | GetRecovery | GetHandoffs | GetHandoff | GetHandoffCheck
)
"""What is done in one go, and answered with what came of it."""

VAULT_WISHES: tuple[type[Command], ...] = (
    SaveCheckpoint,
    AcknowledgeBrief,
    GetRecovery,
    GetHandoffs,
    GetHandoff,
    GetHandoffCheck,
)


class UseVault(Effect, frozen=True, kw_only=True):
    """Carry out one wish on the vault."""

    asker: int | None
    wish: VaultWish
    id: str

    def failed(self, reason: str) -> Outcome:
        return VaultUsed(asker=self.asker, reply=VaultFailed(path="", reason=reason))


class VaultUsed(Outcome, frozen=True, kw_only=True):
    """What came of a wish is durable, or was read."""

    asker: int | None
    reply: Reply


class DeliverBrief(Effect, frozen=True, kw_only=True):
    """Build a brief, and record under the claim that it was delivered."""

    asker: int | None
    wish: BuildBrief
    id: str

    def failed(self, reason: str) -> Outcome:
        reply = VaultFailed(path="", reason=reason)
        return BriefNotBuilt(asker=self.asker, reply=reply)


class BriefBuilt(Outcome, frozen=True, kw_only=True):
    asker: int | None
    wish: BuildBrief
    brief: Brief


class BriefNotBuilt(Outcome, frozen=True, kw_only=True):
    asker: int | None
    reply: Reply


class SummariseBrief(Effect, frozen=True, kw_only=True):
    """Have a model say it shorter, within a deadline."""

    concurrent: ClassVar[bool] = True

    asker: int | None
    brief: Brief
    model: str

    def failed(self, reason: str) -> Outcome:
        generated = Generated(model=self.model, status="failed", reason=reason)
        return BriefSummarised(asker=self.asker, brief=self.brief, generated=generated)


class BriefSummarised(Outcome, frozen=True, kw_only=True):
    asker: int | None
    brief: Brief
    generated: Generated
