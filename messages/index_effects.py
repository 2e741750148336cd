"""What the IndexWriterActor wants done outside: the lease, the notes, the vectors, the disk."""

from typing import ClassVar

from tenure.messages.base import Effect, Outcome
from tenure.messages.index import IndexStatus
from tenure.messages.index_work import (
    IndexProgress,
    IndexResult,
    IndexRunId,
    IndexScope,
    IndexWork,
    RunComplete,
    RunRefused,
)
from tenure.messages.tokens import Holder


class ClaimIndex(Effect, frozen=True, kw_only=True):
    """Take the lease, then note on disk that a run begins."""

    run_id: IndexRunId

    def failed(self, reason: str) -> Outcome:
        return IndexClaimFailed(run_id=self.run_id, path="", reason=reason)


class IndexClaimed(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    path: str
    holder: Holder
    """This host."""


class IndexClaimHeld(Outcome, frozen=True, kw_only=True):
    """Another has it."""

    run_id: IndexRunId
    path: str
    holder: Holder | None


class IndexClaimFailed(Outcome, frozen=True, kw_only=True):
    """The lease store is not available."""

    run_id: IndexRunId
    path: str
    reason: str


class ScanNotes(Effect, frozen=True, kw_only=True):
    """Look at every note in scope and find what changed."""

    concurrent: ClassVar[bool] = True

    run_id: IndexRunId
    scope: IndexScope

    @property
    def key(self) -> str:
        return f"ScanNotes/{self.run_id}"

    def failed(self, reason: str) -> Outcome:
        return NoteScanFailed(run_id=self.run_id, reason=reason)


class NotesScanned(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    work: IndexWork


class NoteScanFailed(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    reason: str


class EmbedChunks(Effect, frozen=True, kw_only=True):
    """Have the next batch embedded; nothing is written."""

    concurrent: ClassVar[bool] = True

    run_id: IndexRunId
    batch: int
    """From 0."""

    @property
    def key(self) -> str:
        return f"EmbedChunks/{self.run_id}"

    def failed(self, reason: str) -> Outcome:
        return ChunksNotEmbedded(run_id=self.run_id, reason=reason)


class ChunksEmbedded(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    count: int
    took_ms: int


class ChunksNotEmbedded(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    reason: str


class StoreChunks(Effect, frozen=True, kw_only=True):
    """Make what was embedded durable, where the lease still holds."""

    run_id: IndexRunId
    progress: IndexProgress

    def failed(self, reason: str) -> Outcome:
        return ChunksNotStored(run_id=self.run_id, reason=reason)


class ChunksStored(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId


class ChunksNotStored(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    reason: str


class CommitIndex(Effect, frozen=True, kw_only=True):
    """Put the new generation in the place of the last one, where the lease still holds."""

    run_id: IndexRunId

    def failed(self, reason: str) -> Outcome:
        return IndexNotCommitted(run_id=self.run_id, reason=reason)


class IndexCommitted(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    result: RunComplete


class IndexNotCommitted(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    reason: str


class ReleaseIndex(Effect, frozen=True, kw_only=True):
    """Note on disk how the run ended, and let the lease go."""

    run_id: IndexRunId
    result: IndexResult | RunRefused

    def failed(self, reason: str) -> Outcome:
        return IndexReleased(run_id=self.run_id, problem=reason)


class IndexReleased(Outcome, frozen=True, kw_only=True):
    run_id: IndexRunId
    problem: str = ""
    """What could not be noted; the lease is let go all the same."""


class ReadIndexStatus(Effect, frozen=True, kw_only=True):
    """Look at what readers get and at the note of the last run."""

    concurrent: ClassVar[bool] = True

    asker: int | None

    def failed(self, reason: str) -> Outcome:
        return IndexStatusNotRead(asker=self.asker, reason=reason)


class IndexStatusRead(Outcome, frozen=True, kw_only=True):
    asker: int | None
    status: IndexStatus


class IndexStatusNotRead(Outcome, frozen=True, kw_only=True):
    asker: int | None
    reason: str


class EstimateIndex(Effect, frozen=True, kw_only=True):
    """Look at the notes as a run would, and write nothing."""

    concurrent: ClassVar[bool] = True

    asker: int | None
    scope: IndexScope

    def failed(self, reason: str) -> Outcome:
        return IndexNotEstimated(asker=self.asker, reason=reason)


class IndexEstimated(Outcome, frozen=True, kw_only=True):
    asker: int | None
    work: IndexWork


class IndexNotEstimated(Outcome, frozen=True, kw_only=True):
    asker: int | None
    reason: str


class SweepIndex(Effect, frozen=True, kw_only=True):
    """Remove, under the lease, what no index names."""

    def failed(self, reason: str) -> Outcome:
        return IndexNotSwept(reason=reason)


class IndexSwept(Outcome, frozen=True, kw_only=True):
    files: tuple[str, ...]
    bytes: int


class IndexNotSwept(Outcome, frozen=True, kw_only=True):
    """`holder` where another has the lease; else why not."""

    reason: str
    holder: Holder | None = None
