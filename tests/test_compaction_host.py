"""Compaction on a whole host: triggers, wishes, races with turns, stops and swaps, and crashes."""

import pytest
from compaction_seat import audit, balanced, compacting, fill, passes, prompts, statuses
from compaction_world import of_tokens
from seat_world import Counted, Gate, crash, use

from tenure.messages.compaction import (
    Compact,
    Compacted,
    CompactionBusy,
    CompactionEnded,
    CompactionQueued,
    CompactionStarted,
    CompactionStopped,
    CompactionStopping,
    NothingToCompact,
    NothingToUncompact,
    StopCompaction,
    Uncompact,
    Uncompacted,
    WouldDrop,
)
from tenure.messages.models import ModelFailure
from tenure.messages.session import OpenNewSession, ParkSeat, SeatBusy, SessionOpened, Stale
from tenure.messages.turn import StopTurn, TurnEnded, TurnStarted
from tenure.runtime.errors import Refused

TOO_LONG = ModelFailure(kind="context_exceeded", reason="prompt is too long")
NO_KEY = ModelFailure(kind="auth", reason="no key")
SUMMARY = "<conversation-summary>\nwhat was said bef"
SEEDS = range(12)


# --- by itself, before a turn --------------------------------------------------------------------


def test_a_full_window_is_compacted_before_the_model_is_called_and_the_prompt_stays_last():
    with compacting() as (s, model):
        fill(s, 5)
        assert passes(s) == (0, 0)
        s.run(of_tokens(100, "the pending prompt "))
        assert statuses(s) == ["compacted"]
        assert audit(s) == ["start", "end compacted"]
        assert model.shown()[0] == SUMMARY
        assert model.shown()[-1].startswith("the pending prompt")
        assert s.ends()[-1] == ("end_turn", None)
        compacted = s.said(CompactionEnded)[0].compacted
        assert compacted is not None
        assert (compacted.summariser, compacted.model) == ("model", "summariser-1")
        assert compacted.tokens_after < compacted.tokens_before


def test_after_a_pass_the_next_comes_only_when_the_window_is_full_again():
    """C04: the old size does not call for a second pass."""
    with compacting() as (s, _):
        fill(s, 6)
        for _ in range(5):
            s.run("and")
        assert passes(s) == (1, 1)
        fill(s, 6)
        assert passes(s)[0] > 1
        assert balanced(s)


@pytest.mark.witness("COMPACT-3")
@pytest.mark.parametrize("fate", ["finished", "failed", "stopped", "crashed"])
def test_a_prompt_during_a_pass_runs_exactly_once_whatever_becomes_of_the_pass(fate):
    """C01, S77: the prompt is on disk before the pass, and its turn runs behind it."""
    with compacting() as (s, model):
        fill(s, 5)
        model.gate = Gate()
        turn = s.prompt(of_tokens(100, "the pending prompt "))
        s.until(lambda: model.gate.reached == 1)
        assert prompts(s)[-1].startswith("the pending prompt")
        calls = len(model.requests)
        if fate == "failed":
            model.fails = NO_KEY
        if fate == "stopped":
            pass_id = s.said(CompactionStarted)[0].pass_id
            assert isinstance(s.ask(StopCompaction(pass_id=pass_id)), CompactionStopping)
        elif fate == "crashed":
            crash(s, "compaction")
            s.ask(StopCompaction(pass_id=s.said(CompactionStarted)[0].pass_id))
        model.gate.open()
        s.world.run(turn)
        s.settle()
        assert s.ends()[-1] == ("end_turn", None)
        assert len(model.requests) == calls + 1
        assert sum(each.startswith("the pending") for each in prompts(s)) == 1
        assert balanced(s)
        wanted = {"finished": "compacted", "failed": "compacted", "stopped": "stopped"}
        assert statuses(s) == [wanted.get(fate, "owner_lost")]


def test_a_model_that_cannot_summarise_is_stood_in_for_by_the_rule_and_it_says_so():
    with compacting() as (s, model):
        fill(s, 5)
        model.fails = NO_KEY
        s.run(of_tokens(100))
        compacted = s.said(CompactionEnded)[0].compacted
        assert (compacted.summariser, compacted.problem) == ("deterministic", "auth: no key")
        entry = next(line for line in s.lines() if line["type"] == "compaction")
        assert entry["details"]["problem"] == "auth: no key"
        assert "by rule" in entry["summary"]


def test_a_model_that_never_ends_its_summary_is_given_up_in_time():
    with compacting() as (s, model):
        fill(s, 5)
        model.gate = Gate()
        s.run(of_tokens(100))
        compacted = s.said(CompactionEnded)[0].compacted
        assert compacted.problem == "transport: it had not ended after 60 seconds"
        assert model.gate.reached == 2
        assert s.ends()[-1] == ("end_turn", None)


def test_a_summary_that_is_no_shorter_replaces_nothing_and_is_not_tried_before_every_call():
    counted = Counted(mutating=False)
    answers = ["yes"] * 5 + [[use("c1")], [use("c2")], [use("c3")], "done"]
    with compacting(*answers, tools=(counted.tool,)) as (s, model):
        fill(s, 5)
        model.text = of_tokens(5_000)
        s.run(of_tokens(100))
        assert statuses(s) == ["skipped"]
        assert counted.runs == ["c1", "c2", "c3"]
        assert s.ends()[-1] == ("end_turn", None)


def test_without_a_known_window_nothing_is_compacted_by_itself():
    with compacting(window=0) as (s, _):
        fill(s, 12)
        assert passes(s) == (0, 0)
        assert audit(s) == []


# --- inside one long turn ------------------------------------------------------------------------


class Bulky(Counted):
    """A tool with long results."""

    async def _run(self, tag=""):
        await super()._run(tag)
        return of_tokens(180, f"result {tag} ")


def test_a_long_turn_is_compacted_between_its_model_calls_and_its_prompt_stays_word_for_word():
    tool = Bulky(mutating=False)
    answers = [[use(f"c{number}")] for number in range(12)]
    with compacting(*answers, tools=(tool.tool,)) as (s, model):
        s.run("Count   all\nof them")
        assert s.ends() == [("end_turn", None)]
        assert tool.runs == [f"c{number}" for number in range(12)]
        assert len(statuses(s)) >= 2
        assert set(statuses(s)) == {"compacted"}
        for request in model.requests:
            text = str(request.messages)
            assert "Count   all\\nof them" in text
        # C13: what the turn wrote later did not undo the summary.
        s.run("and now?")
        assert model.shown()[0] == SUMMARY
        assert balanced(s)


# --- the provider says that it is too long -------------------------------------------------------


def test_a_call_that_is_refused_as_too_long_is_made_again_after_a_pass():
    with compacting(*["yes"] * 4, [TOO_LONG], "better", window=0) as (s, model):
        fill(s, 4)
        events = s.run("go on")
        assert s.ends()[-1] == ("end_turn", None)
        assert len([each for each in events if isinstance(each, TurnStarted)]) == 1
        assert s.said(CompactionStarted)[0].trigger == "context_exceeded"
        assert model.shown()[0] == SUMMARY


def test_a_call_that_stays_too_long_ends_the_turn_after_one_pass():
    with compacting(*["yes"] * 4, [TOO_LONG], [TOO_LONG], window=0) as (s, model):
        fill(s, 4)
        s.run("go on")
        assert s.ends()[-1] == ("error", None)
        assert passes(s) == (1, 1)
        assert len(model.requests) == 6


def test_a_call_that_is_too_long_with_nothing_to_compact_ends_the_turn_and_says_why():
    with compacting([TOO_LONG], window=0) as (s, _):
        s.run("go on")
        ended = s.said(TurnEnded)[-1]
        assert ended.stop_reason == "error"
        assert ended.error.startswith("context_exceeded: prompt is too long (nothing to compact")
        assert audit(s) == []


# --- by hand -------------------------------------------------------------------------------------


def test_a_wish_reaches_the_summariser_with_its_instructions():
    with compacting(window=0) as (s, model):
        fill(s, 4)
        reply = s.do(s.seat.compact("keep the prices"))
        assert isinstance(reply, Compacted)
        assert "keep the prices" in str(model.summaries[0].messages)
        entry = next(line for line in s.lines() if line["type"] == "compaction")
        assert entry["details"]["instructions"] == "keep the prices"
        assert entry["id"] == reply.entry_id


def test_a_wish_with_nothing_to_do_is_refused_and_noted():
    with compacting() as (s, _):
        s.run("one")
        with pytest.raises(Refused) as refused:
            s.do(s.seat.compact())
        assert isinstance(refused.value.reply, NothingToCompact)
        assert audit(s) == ["start", "end skipped"]


@pytest.mark.witness("COMPACT-4")
def test_a_wish_during_an_automatic_pass_is_busy_and_its_instructions_come_back():
    """X07, C10: it never joins the pass that runs, and can be made afterwards."""
    with compacting() as (s, model):
        fill(s, 5)
        model.gate = Gate()
        turn = s.prompt(of_tokens(100))
        s.until(lambda: model.gate.reached == 1)
        busy = s.ask(Compact(instructions="keep X"))
        assert isinstance(busy, CompactionBusy)
        assert busy.instructions == "keep X"
        queued = s.ask(Compact(instructions="keep Y", when_busy="queue"))
        assert isinstance(queued, CompactionQueued)
        model.gate.open()
        s.world.run(turn)
        s.settle()
        assert len(model.summaries) == 2
        assert "keep Y" in str(model.summaries[1].messages)
        assert [each.pass_id for each in s.said(CompactionEnded)][1] == queued.pass_id


def test_a_prompt_during_a_wished_pass_is_accepted_and_called_behind_it():
    with compacting() as (s, model):
        fill(s, 4)
        model.gate = Gate()
        wish = s.world.tell(s.host, Compact())
        s.until(lambda: model.gate.reached == 1)
        turn = s.prompt("meanwhile")
        s.until(lambda: prompts(s)[-1] == "meanwhile")
        calls = len(model.requests)
        model.gate.open()
        assert isinstance(s.world.run(wish), Compacted)
        s.world.run(turn)
        assert len(model.requests) == calls + 1
        assert model.shown()[0] == SUMMARY
        assert model.shown()[-1] == "meanwhile"


@pytest.mark.witness("COMPACT-2")
def test_a_wish_for_a_session_that_changed_hands_is_stale_and_nothing_is_summarised():
    with compacting() as (s, model):
        fill(s, 4)
        old = s.seat.token
        s.ask(OpenNewSession())
        assert isinstance(s.ask(Compact(token=old)), Stale)
        assert isinstance(s.ask(Uncompact(token=old)), Stale)
        assert model.summaries == []
        assert audit(s, old.session_id) == []


def test_a_seat_that_compacts_is_not_parked():
    with compacting() as (s, model):
        fill(s, 4)
        model.gate = Gate()
        wish = s.world.tell(s.host, Compact())
        s.until(lambda: model.gate.reached == 1)
        assert isinstance(s.ask(ParkSeat()), SeatBusy)
        model.gate.open()
        assert isinstance(s.world.run(wish), Compacted)


# --- stops and swaps -----------------------------------------------------------------------------


def test_a_stop_of_the_turn_takes_its_pass_with_it_and_the_model_is_not_called():
    with compacting() as (s, model):
        fill(s, 5)
        model.gate = Gate()
        turn = s.prompt(of_tokens(100, "the pending prompt "))
        s.until(lambda: model.gate.reached == 1)
        calls = len(model.requests)
        s.ask(StopTurn(turn_id=s.turn(6)))
        s.world.run(turn)
        assert s.ends()[-1] == ("stopped", "user")
        assert len(model.requests) == calls
        assert audit(s) == ["start", "end stopped"]
        assert prompts(s)[-1].startswith("the pending prompt")
        s.run("again")
        assert balanced(s)


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_a_swap_while_summarising_leaves_both_files_intact_and_the_audit_in_the_right_one(seed):
    """X08: the summary of the old session is never written, here or elsewhere."""
    with compacting(seed=seed) as (s, model):
        fill(s, 4)
        old = s.seat.token.session_id
        before = prompts(s)
        model.gate = Gate()
        wish = s.world.tell(s.host, Compact())
        s.until(lambda: model.gate.reached == 1)
        assert isinstance(s.ask(OpenNewSession()), SessionOpened)
        model.gate.open()
        reply = s.world.run(wish)
        assert isinstance(reply, CompactionStopped)
        s.run("in the new one")
        s.settle()
        assert prompts(s, old) == before
        assert balanced(s, old)
        assert len(audit(s, old)) == 2
        assert not any(line["type"] == "compaction" for line in s.lines(old))
        assert audit(s) == []
        assert prompts(s) == ["in the new one"]


@pytest.mark.parametrize("seed", SEEDS)
def test_in_any_order_of_turns_wishes_stops_and_swaps_every_pass_has_one_start_and_one_end(seed):
    with compacting(seed=seed) as (s, _):
        fill(s, 5)
        old = s.seat.token.session_id
        turn = s.prompt(of_tokens(100, "the pending prompt "))
        wishes = [s.world.tell(s.host, Compact(when_busy="queue")) for _ in range(2)]
        swap = s.world.tell(s.host, OpenNewSession()) if seed % 3 == 0 else None
        stop = s.world.tell(s.host, StopTurn(turn_id=s.turn(6))) if seed % 3 == 1 else None
        for each in (*wishes, swap, stop):
            if each is not None:
                s.world.run(each)
        try:
            s.world.run(turn)
        except Refused:
            assert seed % 3 != 2, "nothing swapped or stopped it"
        s.settle()
        assert balanced(s, old)
        assert passes(s)[0] <= passes(s)[1]
        assert sum(each.startswith("the pending") for each in prompts(s, old)) <= 1


# --- crashes (C12) -------------------------------------------------------------------------------


@pytest.mark.witness("COMPACT-7")
@pytest.mark.parametrize("nth", range(1, 6))
def test_an_owner_that_crashes_at_any_stage_leaves_one_start_and_one_end(nth):
    with compacting() as (s, model):
        fill(s, 5)
        s.world.crashes.plan(s.host.process.name, "compaction", nth)
        s.run(of_tokens(100, "the pending prompt "))
        s.settle()
        assert s.ends()[-1] == ("end_turn", None)
        assert sum(each.startswith("the pending") for each in prompts(s)) == 1
        assert balanced(s)
        s.run("and on")
        assert balanced(s)
        assert model.shown()[-1] == "and on"


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8])
def test_a_process_that_is_killed_in_a_pass_leaves_the_whole_conversation(steps):
    """After a restart either the old messages or the summary cover all that was said."""
    with compacting() as (s, model):
        fill(s, 5)
        session_id = s.seat.token.session_id
        model.gate = Gate()
        s.prompt(of_tokens(100, "the pending prompt "))
        s.until(lambda: model.gate.reached == 1)
        model.gate.open()
        for _ in range(steps):
            s.do(_pause(s))
        s.host.kill()
        again = s.host.again()
        seat = s.world.run(again.seat())
        assert seat.token.session_id == session_id
        assert balanced(s, session_id)
        events = s.world.run(again.prompt("and on"))
        assert events[-1].stop_reason == "end_turn"
        shown = model.shown()
        covered = SUMMARY in shown or any(each.startswith("prompt 0") for each in shown)
        assert covered
        assert any(each.startswith("the pending prompt") for each in shown)


async def _pause(s):
    await s.world.clock.sleep(0)


# --- the way back --------------------------------------------------------------------------------


def test_a_compaction_is_taken_back_and_the_token_moves():
    with compacting(window=0) as (s, model):
        fill(s, 4)
        s.run("look")
        before = model.shown()
        token = s.seat.token
        done = s.do(s.seat.compact())
        undone = s.do(s.seat.uncompact())
        assert isinstance(undone, Uncompacted)
        assert undone.entry_id == done.entry_id
        assert undone.token.epoch == token.epoch + 1
        assert s.seat.token == undone.token
        assert isinstance(s.ask(Compact(token=token)), Stale)
        s.run("after")
        assert model.shown()[: len(before)] == before
        assert any(line["type"] == "compaction" for line in s.lines())


def test_a_compaction_that_messages_follow_is_not_taken_back():
    with compacting(window=0) as (s, _):
        fill(s, 4)
        done = s.do(s.seat.compact())
        s.run("after")
        reply = s.ask(Uncompact())
        assert isinstance(reply, WouldDrop)
        assert reply.count == 2
        assert reply.fork_from != done.entry_id
        assert str(reply.count) in reply.remedy


def test_without_a_compaction_there_is_nothing_to_take_back():
    with compacting() as (s, _):
        s.run("one")
        assert isinstance(s.ask(Uncompact()), NothingToUncompact)


def test_a_seat_at_work_takes_nothing_back():
    with compacting(window=0) as (s, model):
        fill(s, 4)
        model.gate = Gate()
        wish = s.world.tell(s.host, Compact())
        s.until(lambda: model.gate.reached == 1)
        assert isinstance(s.ask(Uncompact()), SeatBusy)
        model.gate.open()
        assert isinstance(s.world.run(wish), Compacted)


def test_a_session_that_was_compacted_and_taken_back_opens_again_as_it_was():
    with compacting(window=0) as (s, model):
        fill(s, 4)
        s.do(s.seat.compact())
        s.do(s.seat.uncompact())
        session_id = s.seat.token.session_id
        s.host.kill()
        again = s.host.again()
        seat = s.world.run(again.seat())
        assert seat.token.session_id == session_id
        s.world.run(again.prompt("and on"))
        assert model.shown()[0].startswith("prompt 0")
        assert balanced(s, session_id)
