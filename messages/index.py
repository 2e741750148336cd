"""The IndexWriterActor's vocabulary: the one writer of `<root>/.tenure/index/`.

What is written: a manifest, `index.json`, over segments that never change.  What a
reader serves is always one complete generation; a run makes the next one.
"""

from typing import ClassVar, Literal

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.index_work import (
    Everything,
    IndexOnDisk,
    IndexProgress,
    IndexResult,
    IndexRunId,
    IndexScope,
    IndexWork,
    RunState,
    ViewName,
)
from tenure.messages.tokens import Holder

# --- commands and queries ------------------------------------------------------------------------


class StartIndex(Command, frozen=True, kw_only=True):
    """Bring the index up to date.  Answered `IndexStarted` once the work is known.

    Refused with `IndexBusy`, `IndexNotClaimed`, `IndexNeedsConsent` or `IndexNotStarted`.
    """

    ask_deadline_s: ClassVar[float | None] = 900.0

    view: ViewName
    scope: IndexScope = Everything()
    consent: Literal["none", "remote"] = "none"
    """`remote`: a provider of another machine may see the notes."""
    large: Literal["ask", "go"] = "ask"
    """`go`: also where a great many notes are new."""


class PauseIndex(Command, frozen=True, kw_only=True):
    """Stop after the batch under way and keep the lease."""

    run_id: IndexRunId


class ResumeIndex(Command, frozen=True, kw_only=True):
    """Go on with a paused run."""

    run_id: IndexRunId


class CancelIndex(Command, frozen=True, kw_only=True):
    """End a run between two batches.  Answered at once; the end is `IndexEnded`."""

    run_id: IndexRunId


class CloseIndexView(Command, frozen=True, kw_only=True):
    """The view is gone, and its run with it; the run of another view goes on."""

    view: ViewName


class CollectIndexGarbage(Command, frozen=True, kw_only=True):
    """Remove what neither the index nor its backup names.  Answered `IndexCollected`."""

    ask_deadline_s: ClassVar[float | None] = 120.0


class GetIndexStatus(Query, frozen=True, kw_only=True):
    """Answered `IndexStatus`."""

    ask_deadline_s: ClassVar[float | None] = 120.0


class GetIndexEstimate(Query, frozen=True, kw_only=True):
    """What a run would have to do.  Answered `IndexEstimate`; nothing is written."""

    ask_deadline_s: ClassVar[float | None] = 900.0

    scope: IndexScope = Everything()


# --- replies --------------------------------------------------------------------------------------


class IndexStarted(Reply, frozen=True, kw_only=True):
    """The lease is held, and the notes are being embedded."""

    run_id: IndexRunId
    work: IndexWork


class IndexChanged(Reply, frozen=True, kw_only=True):
    """A run was paused, resumed or is being cancelled."""

    run_id: IndexRunId
    now: Literal["pausing", "running", "cancelling", "committing"]
    """`committing`: it is too late for that; the run ends by itself in a moment."""


class IndexViewClosed(Reply, frozen=True, kw_only=True):
    """Nothing of this view runs any more."""

    view: ViewName


class IndexStatus(Reply, frozen=True, kw_only=True):
    """What readers get, and what the writer does."""

    path: str
    index: IndexOnDisk
    run_id: IndexRunId
    """Of the run below; empty where there was none."""
    run: RunState


class IndexEstimate(Reply, frozen=True, kw_only=True):
    """Answers `GetIndexEstimate`."""

    work: IndexWork


class IndexCollected(Reply, frozen=True, kw_only=True):
    """What was removed."""

    files: tuple[str, ...]
    bytes: int


class IndexBusy(Refusal, frozen=True, kw_only=True):
    """Another writer has the lease, in this host or elsewhere."""

    path: str
    holder: Holder | None

    @property
    def remedy(self) -> str:
        who = "another host"
        if self.holder is not None:
            who = f"process {self.holder.process.pid} (host {self.holder.host_id})"
        return f"{self.path} is being indexed by {who}; wait for it, or cancel it there"


class IndexNotClaimed(Refusal, frozen=True, kw_only=True):
    """The lease cannot be had at all, so nothing is indexed."""

    path: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.path} cannot be claimed for writing: {self.reason}. Nothing was indexed"


class IndexNotStarted(Refusal, frozen=True, kw_only=True):
    """The notes, the model or the index cannot be used."""

    reason: str

    @property
    def remedy(self) -> str:
        return f"not indexed: {self.reason}"


class IndexNeedsConsent(Refusal, frozen=True, kw_only=True):
    """Somebody must agree first; nothing was embedded."""

    why: Literal["remote", "large"]
    work: IndexWork

    @property
    def remedy(self) -> str:
        size = f"{self.work.changed:,} notes, about {self.work.tokens:,} tokens"
        if self.why == "remote":
            return f"{self.work.remote} would see the notes ({size}); agree to it first (--remote)"
        return f"this is a large run ({size}, {self.work.to_embed:,} chunks); confirm it (--yes)"


class IndexRunOther(Refusal, frozen=True, kw_only=True):
    """No such run is under way."""

    asked: IndexRunId
    running: IndexRunId
    """Empty where none is."""

    @property
    def remedy(self) -> str:
        now = f"the run is {self.running}" if self.running else "nothing is being indexed"
        return f"run {self.asked or '(none)'} is not under way: {now}"


class IndexUnreadable(Refusal, frozen=True, kw_only=True):
    """The status, the notes or the garbage cannot be looked at."""

    reason: str

    @property
    def remedy(self) -> str:
        return f"the index cannot be looked at: {self.reason}"


# --- events ----------------------------------------------------------------------------------


class IndexBegun(Event, frozen=True, kw_only=True):
    """A run begins: an `IndexEnded` follows, whatever happens."""

    run_id: IndexRunId
    view: ViewName
    work: IndexWork


class IndexProgressShown(Event, frozen=True, kw_only=True):
    """A batch is done."""

    run_id: IndexRunId
    progress: IndexProgress


class IndexEnded(Event, frozen=True, kw_only=True):
    """A run is over and its lease let go."""

    run_id: IndexRunId
    result: IndexResult
