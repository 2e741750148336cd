"""IndexWriterActor: one run, its own lease, its own cancel; nothing is begun without consent."""

from typing import Any

import pytest
from msgspec.structs import replace
from steps import Driven

from tenure.actors.index_writer import index_writer_step
from tenure.actors.index_writer_run import LARGE_NOTES_MIN
from tenure.actors.index_writer_state import Idle
from tenure.messages.bus import Unhandled
from tenure.messages.index import (
    CancelIndex,
    CloseIndexView,
    CollectIndexGarbage,
    GetIndexStatus,
    IndexBegun,
    IndexBusy,
    IndexChanged,
    IndexCollected,
    IndexEnded,
    IndexNeedsConsent,
    IndexNotClaimed,
    IndexNotStarted,
    IndexRunOther,
    IndexStarted,
    IndexStatus,
    IndexViewClosed,
    PauseIndex,
    ResumeIndex,
    StartIndex,
)
from tenure.messages.index_effects import (
    ChunksEmbedded,
    ChunksNotEmbedded,
    ChunksNotStored,
    ChunksStored,
    ClaimIndex,
    CommitIndex,
    EmbedChunks,
    IndexClaimed,
    IndexClaimFailed,
    IndexClaimHeld,
    IndexCommitted,
    IndexNotCommitted,
    IndexReleased,
    IndexStatusRead,
    IndexSwept,
    NoteScanFailed,
    NotesScanned,
    ReadIndexStatus,
    ReleaseIndex,
    ScanNotes,
    StoreChunks,
    SweepIndex,
)
from tenure.messages.index_work import (
    IndexModel,
    IndexRunId,
    IndexWork,
    NoIndex,
    NoRun,
    RunActive,
    RunCancelled,
    RunComplete,
    RunFailed,
    RunRefused,
    RunSkipped,
    ViewName,
)
from tenure.messages.session import GetSession
from tenure.messages.tokens import Holder, ProcessName

MINE, OTHER = ViewName("mine"), ViewName("other")
HOLDER = Holder(host_id="h", process=ProcessName(pid=7, started="1"), since_ms=0)
DONE = RunComplete(generation=1, notes=2, chunks=4, embedded=4)


def work(**changes: Any) -> IndexWork:
    usual = IndexWork(
        model=IndexModel(id="words", dimensions=16),
        notes=2,
        changed=2,
        removed=0,
        chunks=4,
        to_embed=4,
        characters=40,
        tokens=10,
        batches=2,
    )
    return replace(usual, **changes)


class Writer(Driven[Any]):
    """The writer, taken to where a test begins."""

    def __init__(self) -> None:
        super().__init__(index_writer_step, Idle())
        self.asker = self.ask(StartIndex(view=MINE))
        self.run_id = self.wanted(ClaimIndex)[0].run_id

    def claimed(self) -> "Writer":
        self.tell(IndexClaimed(run_id=self.run_id, path="index", holder=HOLDER))
        return self

    def scanned(self, **changes: Any) -> "Writer":
        self.claimed().tell(NotesScanned(run_id=self.run_id, work=work(**changes)))
        return self

    def stored(self) -> "Writer":
        self.tell(ChunksStored(run_id=self.run_id))
        return self

    def embedded(self, count: int = 2) -> "Writer":
        self.tell(ChunksEmbedded(run_id=self.run_id, count=count, took_ms=100))
        return self

    def released(self) -> "Writer":
        self.tell(IndexReleased(run_id=self.run_id))
        return self

    @property
    def ended(self) -> list[Any]:
        return [event.result for event in self.said(IndexEnded)]


def test_run_goes_from_lease_to_release_batch_by_batch() -> None:
    writer = Writer().scanned()
    assert writer.reply_to(writer.asker) == IndexStarted(run_id=writer.run_id, work=work())
    assert [event.view for event in writer.said(IndexBegun)] == [MINE]
    writer.stored().embedded().stored().embedded().stored()
    assert [each.batch for each in writer.wanted(EmbedChunks)] == [0, 1]
    assert [each.progress.done for each in writer.wanted(StoreChunks)] == [0, 2, 4]
    assert writer.wanted(StoreChunks)[1].progress.chunks_per_s == 20
    assert writer.wanted(StoreChunks)[1].progress.left_s == 0.1
    assert writer.wanted(CommitIndex) == [CommitIndex(run_id=writer.run_id)]
    writer.tell(IndexCommitted(run_id=writer.run_id, result=DONE))
    assert writer.wanted(ReleaseIndex) == [ReleaseIndex(run_id=writer.run_id, result=DONE)]
    assert writer.ended == []
    writer.released()
    assert (writer.ended, writer.state) == ([DONE], Idle())


@pytest.mark.witness("INDEX-1")
def test_second_start_is_refused_with_the_holder_while_anything_is_under_way() -> None:
    writer = Writer()
    early = writer.ask(StartIndex(view=OTHER))
    assert isinstance(writer.reply_to(early), IndexBusy)
    writer.scanned()
    late = writer.ask(StartIndex(view=OTHER))
    assert writer.reply_to(late) == IndexBusy(path="index", holder=HOLDER)
    assert isinstance(writer.reply_to(writer.ask(CollectIndexGarbage())), IndexBusy)
    assert len(writer.wanted(ClaimIndex)) == 1


def test_lease_of_another_process_refuses_the_start_and_names_it() -> None:
    writer = Writer()
    writer.tell(IndexClaimHeld(run_id=writer.run_id, path="index", holder=HOLDER))
    refused = writer.reply_to(writer.asker)
    assert refused == IndexBusy(path="index", holder=HOLDER)
    assert "process 7" in refused.remedy
    assert (writer.wanted(ScanNotes), writer.state) == ([], Idle())


@pytest.mark.witness("INDEX-5")
def test_nothing_is_read_or_embedded_where_the_lease_store_is_not_available() -> None:
    writer = Writer()
    writer.tell(IndexClaimFailed(run_id=writer.run_id, path="index", reason="no answer"))
    assert writer.reply_to(writer.asker) == IndexNotClaimed(path="index", reason="no answer")
    assert (writer.wanted(ScanNotes), writer.state) == ([], Idle())


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"remote": "api.example"}, "remote"), ({"changed": LARGE_NOTES_MIN}, "large")],
)
def test_consent_is_asked_for_before_anything_is_embedded(changes: Any, why: Any) -> None:
    writer = Writer().scanned(**changes)
    assert writer.reply_to(writer.asker) is None, "the lease is let go first"
    assert writer.wanted(ReleaseIndex)[0].result == RunRefused()
    writer.released()
    refused = writer.reply_to(writer.asker)
    assert refused == IndexNeedsConsent(why=why, work=work(**changes))
    assert (writer.wanted(EmbedChunks), writer.ended, writer.state) == ([], [], Idle())


def test_consent_that_was_given_begins_the_run() -> None:
    writer = Driven[Any](index_writer_step, Idle())
    writer.ask(StartIndex(view=MINE, consent="remote", large="go"))
    run_id = writer.wanted(ClaimIndex)[0].run_id
    writer.tell(IndexClaimed(run_id=run_id, path="index", holder=HOLDER))
    large = work(remote="api.example", changed=LARGE_NOTES_MIN)
    writer.tell(NotesScanned(run_id=run_id, work=large))
    assert len(writer.said(IndexBegun)) == 1


def test_empty_scope_is_skipped_and_noted() -> None:
    writer = Writer().scanned(notes=0, changed=0, chunks=0, to_embed=0)
    result = writer.wanted(ReleaseIndex)[0].result
    assert isinstance(result, RunSkipped)
    assert writer.released().ended == [result]


def test_run_without_anything_new_commits_without_embedding() -> None:
    writer = Writer().scanned(changed=0, to_embed=0).stored()
    assert writer.wanted(EmbedChunks) == []
    assert len(writer.wanted(CommitIndex)) == 1


def test_cancel_of_a_live_run_ends_it_between_two_batches() -> None:
    writer = Writer().scanned().stored().embedded()
    asker = writer.ask(CancelIndex(run_id=writer.run_id))
    assert writer.reply_to(asker) == IndexChanged(run_id=writer.run_id, now="cancelling")
    assert len(writer.stored().wanted(EmbedChunks)) == 1
    assert writer.released().ended == [RunCancelled(done=2, total=4)]
    assert writer.wanted(CommitIndex) == []


def test_cancel_gives_up_the_batch_that_is_with_the_model() -> None:
    writer = Writer().scanned().stored()
    writer.ask(CancelIndex(run_id=writer.run_id))
    assert writer.cancelled == [f"EmbedChunks/{writer.run_id}"]
    writer.tell(ChunksNotEmbedded(run_id=writer.run_id, reason="cancelled"))
    assert writer.released().ended == [RunCancelled(done=0, total=4)]


def test_cancel_before_the_notes_are_known_answers_whoever_started() -> None:
    for scanned in (False, True):
        writer = Writer()
        if scanned:
            writer.claimed()
        writer.ask(CancelIndex(run_id=writer.run_id))
        if scanned:
            assert writer.cancelled == [f"ScanNotes/{writer.run_id}"]
            writer.tell(NoteScanFailed(run_id=writer.run_id, reason="cancelled"))
        else:
            writer.claimed()
        writer.released()
        assert isinstance(writer.reply_to(writer.asker), IndexNotStarted)
        assert writer.state == Idle()


def test_cancel_without_a_run_or_of_another_one_says_so() -> None:
    idle = Driven[Any](index_writer_step, Idle())
    unknown = IndexRunId("x")
    asker = idle.ask(CancelIndex(run_id=unknown))
    assert idle.reply_to(asker) == IndexRunOther(asked=unknown, running=IndexRunId(""))
    writer = Writer().scanned().stored()
    for command in (CancelIndex, PauseIndex, ResumeIndex):
        asker = writer.ask(command(run_id=unknown))
        assert writer.reply_to(asker) == IndexRunOther(asked=unknown, running=writer.run_id)
    assert writer.cancelled == []


def test_cancel_of_a_run_that_commits_comes_too_late_and_says_so() -> None:
    writer = Writer().scanned(to_embed=0).stored()
    asker = writer.ask(CancelIndex(run_id=writer.run_id))
    assert writer.reply_to(asker) == IndexChanged(run_id=writer.run_id, now="committing")
    writer.tell(IndexCommitted(run_id=writer.run_id, result=DONE))
    assert writer.released().ended == [DONE]


@pytest.mark.witness("INDEX-6")
def test_closing_a_view_ends_its_run_and_no_other() -> None:
    writer = Writer().scanned().stored()
    asker = writer.ask(CloseIndexView(view=OTHER))
    assert writer.reply_to(asker) == IndexViewClosed(view=OTHER)
    assert writer.cancelled == []
    asker = writer.ask(CloseIndexView(view=MINE))
    assert writer.reply_to(asker) == IndexViewClosed(view=MINE)
    assert writer.cancelled == [f"EmbedChunks/{writer.run_id}"]
    writer.tell(ChunksNotEmbedded(run_id=writer.run_id, reason="cancelled"))
    assert writer.released().ended == [RunCancelled(done=0, total=4)]


def test_pause_holds_between_two_batches_and_resume_goes_on() -> None:
    writer = Writer().scanned().stored()
    writer.ask(PauseIndex(run_id=writer.run_id))
    writer.embedded().stored()
    assert len(writer.wanted(EmbedChunks)) == 1
    status = writer.ask(GetIndexStatus())
    on_disk = IndexStatus(path="index", index=NoIndex(), run_id=IndexRunId(""), run=NoRun())
    writer.tell(IndexStatusRead(asker=status, status=on_disk))
    shown = writer.reply_to(status)
    assert isinstance(shown, IndexStatus)
    assert isinstance(shown.run, RunActive)
    assert (shown.run.paused, shown.run.progress.done, shown.run_id) == (True, 2, writer.run_id)
    writer.ask(ResumeIndex(run_id=writer.run_id))
    writer.stored()
    assert [each.batch for each in writer.wanted(EmbedChunks)] == [0, 1]


def test_pause_can_be_taken_back_and_a_paused_run_can_be_cancelled() -> None:
    writer = Writer().scanned().stored()
    writer.ask(PauseIndex(run_id=writer.run_id))
    writer.ask(ResumeIndex(run_id=writer.run_id))
    writer.embedded().stored()
    assert len(writer.wanted(EmbedChunks)) == 2
    writer.ask(PauseIndex(run_id=writer.run_id))
    writer.embedded(1).stored()
    writer.ask(CancelIndex(run_id=writer.run_id))
    assert writer.released().ended == [RunCancelled(done=3, total=4)]


@pytest.mark.witness("INDEX-2")
def test_batch_that_could_not_be_stored_ends_the_run_before_the_next() -> None:
    writer = Writer().scanned().stored().embedded()
    writer.tell(ChunksNotStored(run_id=writer.run_id, reason="the lease was lost"))
    assert (len(writer.wanted(EmbedChunks)), writer.wanted(CommitIndex)) == (1, [])
    failed = RunFailed(reason="the lease was lost", done=2, total=4)
    assert writer.released().ended == [failed]


def test_failures_of_model_scan_and_commit_end_the_run_and_are_said() -> None:
    scan = Writer().claimed()
    scan.tell(NoteScanFailed(run_id=scan.run_id, reason="no folder"))
    scan.released()
    assert scan.reply_to(scan.asker) == IndexNotStarted(reason="no folder")
    model = Writer().scanned().stored()
    model.tell(ChunksNotEmbedded(run_id=model.run_id, reason="500"))
    assert model.released().ended == [RunFailed(reason="500", done=0, total=4)]
    commit = Writer().scanned(to_embed=0).stored()
    commit.tell(IndexNotCommitted(run_id=commit.run_id, reason="disk full"))
    assert commit.released().ended == [RunFailed(reason="disk full", done=0, total=0)]


def test_outcomes_of_a_run_that_is_over_change_nothing() -> None:
    writer = Writer().scanned().stored()
    other = IndexRunId("other")
    before = writer.state
    for outcome in (
        IndexClaimed(run_id=other, path="p", holder=HOLDER),
        IndexClaimFailed(run_id=other, path="p", reason="x"),
        NotesScanned(run_id=other, work=work()),
        NoteScanFailed(run_id=other, reason="x"),
        ChunksEmbedded(run_id=other, count=1, took_ms=1),
        ChunksNotEmbedded(run_id=other, reason="x"),
        ChunksStored(run_id=other),
        ChunksNotStored(run_id=other, reason="x"),
        IndexCommitted(run_id=other, result=DONE),
        IndexNotCommitted(run_id=other, reason="x"),
        IndexReleased(run_id=other),
        IndexSwept(files=(), bytes=0),
    ):
        step = writer.tell(outcome)
        assert (step.state, step.events, step.effects) == (before, (), ())


def test_garbage_is_collected_when_nothing_runs() -> None:
    writer = Driven[Any](index_writer_step, Idle())
    asker = writer.ask(CollectIndexGarbage())
    assert writer.wanted(SweepIndex) == [SweepIndex()]
    writer.tell(IndexSwept(files=("a.seg",), bytes=3))
    assert writer.reply_to(asker) == IndexCollected(files=("a.seg",), bytes=3)
    assert writer.state == Idle()


def test_status_without_a_run_is_what_lies_on_the_disk() -> None:
    writer = Driven[Any](index_writer_step, Idle())
    asker = writer.ask(GetIndexStatus())
    assert writer.wanted(ReadIndexStatus) == [ReadIndexStatus(asker=asker)]
    on_disk = IndexStatus(path="index", index=NoIndex(), run_id=IndexRunId("r"), run=DONE)
    writer.tell(IndexStatusRead(asker=asker, status=on_disk))
    assert writer.reply_to(asker) == on_disk


def test_command_of_another_owner_is_unhandled() -> None:
    writer = Driven[Any](index_writer_step, Idle())
    assert writer.reply_to(writer.ask(GetSession())) == Unhandled(message="GetSession")
