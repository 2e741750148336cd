"""The CompactionActor decides: one pass at a time, and what becomes of it at every stage."""

import pytest
from compaction_steps import PLAN, DrivenCompaction
from steps import A, B, token

from tenure.messages.bus import OwnerStarted, OwnerStopped
from tenure.messages.compaction import (
    Compacted,
    CompactionBusy,
    CompactionFailed,
    CompactionNotRunning,
    CompactionQueued,
    CompactionStopped,
    CompactionStopping,
    CompactionView,
    DropPass,
    DropPasses,
    GetCompaction,
    NothingToCompact,
    PassesSettled,
    PlanCompaction,
    SettlePasses,
    StopCompaction,
    SummariseConversation,
)
from tenure.messages.session import (
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    Stale,
)
from tenure.messages.tokens import turn_id

TURN = turn_id(A, 1)
STALE = Stale(current=token(B))


@pytest.fixture
def driven():
    return DrivenCompaction()


def test_a_pass_plans_notes_its_start_summarises_and_writes_entry_and_end_together(driven):
    asker = driven.wish(instructions="keep prices")
    assert driven.name == "Planning"
    driven.planned()
    assert driven.name == "SavingStart"
    assert not driven.started
    driven.saved()
    assert driven.wanted(SummariseConversation)[0].instructions == "keep prices"
    assert len(driven.started) == 1
    driven.summarised()
    assert driven.reply_to(asker) is None
    driven.saved()
    reply = driven.reply_to(asker)
    assert isinstance(reply, Compacted)
    assert (reply.tokens_before, reply.tokens_after, reply.entry_id) == (1_000, 300, "e0")
    assert (reply.summariser, reply.model) == ("model", "acme-1")
    assert driven.written == ["start", "summary", "end compacted"]
    assert len(driven.sent(AppendEntries)) == 2
    assert driven.ended[0].compacted == reply
    assert driven.name == "Idle"


def test_everything_that_a_pass_writes_carries_the_token_from_before_the_summary(driven):
    driven.to_summarising()
    driven.summarised()
    assert {append.token for append in driven.sent(AppendEntries)} == {token()}


# --- nothing to do (S68, S74, S78) ---------------------------------------------------------------


def test_a_wish_that_comes_to_nothing_leaves_one_start_and_one_end(driven):
    asker = driven.wish()
    driven.not_planned("too_few_turns")
    assert driven.written == ["start", "end skipped"]
    assert driven.reply_to(asker) is None
    driven.saved()
    reply = driven.reply_to(asker)
    assert isinstance(reply, NothingToCompact)
    assert reply.reason == "too_few_turns"


def test_a_turn_that_only_asks_writes_nothing(driven):
    asker = driven.wish("threshold", turn_id=TURN, window=1_200)
    assert driven.wanted(PlanCompaction)[0].window == 1_200
    driven.not_planned()
    assert isinstance(driven.reply_to(asker), NothingToCompact)
    assert driven.written == []
    assert not driven.ended


def test_a_summary_as_long_as_what_it_stands_for_replaces_nothing(driven):
    asker = driven.to_summarising()
    driven.summarised(tokens=PLAN.tokens_folded)
    driven.saved()
    reply = driven.reply_to(asker)
    assert isinstance(reply, NothingToCompact)
    assert reply.reason == "no_gain"
    assert driven.written == ["start", "end skipped"]


def test_a_failed_summary_replaces_nothing_and_gives_the_instructions_back(driven):
    asker = driven.to_summarising(instructions="keep prices")
    driven.not_summarised("bug: no")
    driven.saved()
    reply = driven.reply_to(asker)
    assert isinstance(reply, CompactionFailed)
    assert (reply.reason, reply.instructions) == ("bug: no", "keep prices")
    assert driven.written == ["start", "end failed"]


# --- persist first, replace second ---------------------------------------------------------------


@pytest.mark.witness("COMPACT-1")
@pytest.mark.parametrize("refusal", [AppendUnknown(reason="sync"), STALE, OwnerStopped(begun=True)])
def test_nothing_is_said_to_be_compacted_before_it_is_durable(driven, refusal):
    asker = driven.to_summarising()
    driven.summarised()
    driven.refused(refusal)
    assert driven.reply_to(asker) == refusal
    assert [each.status for each in driven.ended] == ["session_lost"]
    assert driven.name == "Idle"


def test_a_full_disk_fails_the_pass_and_its_end_is_tried_once_more(driven):
    asker = driven.to_summarising()
    driven.summarised()
    driven.refused(AppendFailed(reason="no space left"))
    assert driven.written == ["start", "summary", "end compacted", "end failed"]
    driven.refused(AppendFailed(reason="no space left"))
    assert isinstance(driven.reply_to(asker), CompactionFailed)
    assert driven.name == "Idle"


@pytest.mark.witness("COMPACT-2")
def test_a_pass_whose_token_is_stale_makes_no_summary(driven):
    asker = driven.wish()
    driven.planned()
    driven.refused(STALE)
    assert driven.reply_to(asker) == STALE
    assert driven.wanted(SummariseConversation) == []
    assert driven.written == ["start"]
    assert not driven.started


# --- one pass at a time (X07, C10) ---------------------------------------------------------------


@pytest.mark.witness("COMPACT-4")
def test_a_wish_during_a_pass_is_refused_with_its_instructions_given_back(driven):
    first = driven.to_summarising("threshold", turn_id=TURN)
    running = driven.pass_id
    second = driven.wish(instructions="keep X")
    assert driven.reply_to(second) == CompactionBusy(pass_id=running, instructions="keep X")
    assert len(driven.wanted(PlanCompaction)) == 1
    driven.summarised()
    driven.saved()
    assert isinstance(driven.reply_to(first), Compacted)
    again = driven.wish(instructions="keep X")
    driven.planned()
    driven.saved()
    assert driven.wanted(SummariseConversation)[-1].instructions == "keep X"
    driven.summarised()
    driven.saved()
    assert isinstance(driven.reply_to(again), Compacted)


def test_a_wish_that_asks_to_wait_is_queued_and_ends_by_event(driven):
    driven.to_summarising()
    asker = driven.wish(when_busy="queue", instructions="keep X")
    queued = driven.reply_to(asker)
    assert isinstance(queued, CompactionQueued)
    assert queued.position == 1
    driven.summarised()
    driven.saved()
    assert driven.pass_id == queued.pass_id
    driven.planned()
    driven.saved()
    driven.summarised()
    driven.saved()
    assert [each.status for each in driven.ended] == ["compacted", "compacted"]
    assert driven.ended[1].pass_id == queued.pass_id


def test_a_wish_while_a_turn_only_asks_goes_on_when_there_is_nothing_to_do_for_the_turn(driven):
    driven.wish("threshold", turn_id=TURN)
    asker = driven.wish()
    assert driven.reply_to(asker) is None
    driven.not_planned()
    assert driven.wanted(PlanCompaction)[-1].trigger == "manual"


def test_wishes_while_a_turn_asks_are_refused_or_queued_once_its_pass_begins(driven):
    driven.wish("threshold", turn_id=TURN)
    refused, queued = driven.wish(), driven.wish(when_busy="queue")
    driven.planned()
    assert isinstance(driven.reply_to(refused), CompactionBusy)
    assert isinstance(driven.reply_to(queued), CompactionQueued)
    assert len(driven.state.waiting) == 1


def test_a_turn_that_needs_room_waits_for_the_pass_under_way_and_is_looked_at_anew(driven):
    driven.to_summarising()
    turn = driven.wish("threshold", turn_id=TURN)
    assert driven.reply_to(turn) is None
    driven.summarised()
    driven.saved()
    assert driven.wanted(PlanCompaction)[-1].trigger == "threshold"
    driven.not_planned()
    assert isinstance(driven.reply_to(turn), NothingToCompact)


def test_waiting_wishes_are_bounded(driven):
    driven.to_summarising()
    replies = [driven.reply_to(driven.wish(when_busy="queue")) for _ in range(17)]
    assert all(isinstance(each, CompactionQueued) for each in replies[:16])
    assert isinstance(replies[16], CompactionBusy)


# --- stops ---------------------------------------------------------------------------------------


def test_a_stop_while_planning_writes_nothing(driven):
    asker = driven.wish()
    stop = driven.ask(StopCompaction(pass_id=driven.pass_id))
    assert isinstance(driven.reply_to(stop), CompactionStopping)
    assert driven.cancelled == [f"plan {driven.pass_id}"]
    driven.planned()
    assert isinstance(driven.reply_to(asker), CompactionStopped)
    assert driven.written == []


def test_a_stop_while_the_start_is_being_written_ends_the_audit_behind_it(driven):
    asker = driven.wish()
    driven.planned()
    driven.ask(StopCompaction(pass_id=driven.pass_id))
    driven.saved()
    assert driven.wanted(SummariseConversation) == []
    driven.saved()
    assert isinstance(driven.reply_to(asker), CompactionStopped)
    assert driven.written == ["start", "end stopped"]
    assert (len(driven.started), len(driven.ended)) == (1, 1)


@pytest.mark.parametrize("late", ["summarised", "not_summarised"])
def test_a_stop_while_summarising_replaces_nothing_whatever_the_model_still_says(driven, late):
    asker = driven.to_summarising(instructions="keep X")
    driven.ask(StopCompaction(pass_id=driven.pass_id))
    assert driven.cancelled == [f"summary {driven.pass_id}"]
    getattr(driven, late)()
    driven.saved()
    reply = driven.reply_to(asker)
    assert isinstance(reply, CompactionStopped)
    assert reply.instructions == "keep X"
    assert driven.written == ["start", "end stopped"]


def test_a_stop_comes_too_late_once_the_summary_is_being_written(driven):
    asker = driven.to_summarising()
    driven.summarised()
    stop = driven.ask(StopCompaction(pass_id=driven.pass_id))
    assert isinstance(driven.reply_to(stop), CompactionNotRunning)
    driven.saved()
    assert isinstance(driven.reply_to(asker), Compacted)


def test_a_stop_hits_the_pass_that_it_names_and_no_other(driven):
    driven.to_summarising()
    queued = driven.reply_to(driven.ask_queued())
    running = driven.pass_id
    assert isinstance(
        driven.reply_to(driven.ask(StopCompaction(pass_id="other"))), CompactionNotRunning
    )
    driven.ask(StopCompaction(pass_id=queued.pass_id))
    assert [each.pass_id for each in driven.ended] == [queued.pass_id]
    assert driven.pass_id == running
    assert driven.name == "Summarising"


def test_a_turn_that_is_stopped_takes_its_pass_with_it_and_leaves_a_wish_alone(driven):
    driven.to_summarising()
    turn = driven.wish("threshold", turn_id=TURN)
    driven.tell(DropPass(turn_id=TURN))
    assert isinstance(driven.reply_to(turn), CompactionStopped)
    assert driven.name == "Summarising"
    own = DrivenCompaction()
    asker = own.to_summarising("threshold", turn_id=TURN)
    own.tell(DropPass(turn_id=TURN))
    own.not_summarised()
    own.saved()
    assert isinstance(own.reply_to(asker), CompactionStopped)


def test_a_change_of_session_ends_every_pass_and_nothing_is_written_elsewhere(driven):
    asker = driven.to_summarising()
    queued = driven.reply_to(driven.ask_queued())
    driven.tell(DropPasses())
    driven.summarised()
    driven.refused(STALE)
    assert isinstance(driven.reply_to(asker), CompactionStopped)
    assert {each.pass_id for each in driven.ended} == {driven.pass_id, queued.pass_id}
    assert driven.written == ["start", "end stopped"]
    assert driven.name == "Idle"


def test_a_late_outcome_of_a_pass_that_ended_changes_nothing(driven):
    driven.to_summarising()
    first = driven.pass_id
    driven.ask(StopCompaction(pass_id=first))
    driven.not_summarised()
    driven.saved()
    driven.tell_late(first)
    assert driven.name == "Idle"
    assert driven.written == ["start", "end stopped"]


# --- a restart -----------------------------------------------------------------------------------


@pytest.mark.witness("COMPACT-7")
def test_a_restarted_owner_has_the_audit_closed_by_the_session_before_it_begins(driven):
    driven.tell(OwnerStarted(incarnation=2))
    asker = driven.wish()
    assert driven.wanted(PlanCompaction) == []
    driven.answer(SettlePasses, PassesSettled(token=token(), settled=1))
    assert driven.wanted(PlanCompaction)
    assert driven.reply_to(asker) is None


def test_a_first_incarnation_has_nothing_to_settle(driven):
    driven.tell(OwnerStarted(incarnation=1))
    assert driven.sent(SettlePasses) == []


def test_the_view_names_state_pass_and_how_many_wait(driven):
    def look():
        return driven.reply_to(driven.ask(GetCompaction()))

    assert look() == CompactionView(state="Idle", pass_id=None, waiting=0)
    driven.to_summarising()
    driven.ask_queued()
    assert look() == CompactionView(state="Summarising", pass_id=driven.pass_id, waiting=1)
