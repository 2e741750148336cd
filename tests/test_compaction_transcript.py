"""Compactions in a transcript: what is shown, whose audit is closed, and the way back."""

import json

import msgspec
import pytest
from transcript_world import Machine, answer, result, run, user

from tenure.messages.compaction import CompactionFound, CompactionMissing, FindCompaction
from tenure.messages.entries import CompactionEntry, CustomEntry
from tenure.messages.transcripts import (
    Again,
    ById,
    Fresh,
    RecordsAppended,
    SettleTranscript,
    TranscriptSettled,
)


def audit(phase, pass_id, **data):
    return CustomEntry(
        custom_type="tenure/compaction", data={"phase": phase, "pass": pass_id, **data}
    )


def summary(kept, pass_id="p1", text="short"):
    return CompactionEntry(
        summary=text, first_kept_entry_id=kept, tokens_before=900, details={"pass": pass_id}
    )


def phases(machine, path):
    """The audit in the file: phase, pass and status, in order."""
    entries = [json.loads(line) for line in machine.lines(path)]
    data = [each["data"] for each in entries if each.get("customType") == "tenure/compaction"]
    return [(each["phase"], each["pass"], each.get("status", "")) for each in data]


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def seat(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"), answer("1"), user("two"), answer("2"))
    return seat


def kept_from(seat, text):
    told = seat.door.history(seat.id)
    return next(each.entry_id for each in told.shown if each.message.content == text)


SHOWN = ["user: <conversation-summary>\nshort\n</conversation-summary>", "user: two"]


def test_a_summary_takes_the_place_of_what_it_stands_for_also_after_opening_again(seat, machine):
    seat.append(audit("start", "p1"))
    seat.append(summary(kept_from(seat, "two")), audit("end", "p1", status="compacted"))
    assert seat.texts()[:2] == SHOWN
    seat.append(user("three"))
    assert seat.texts()[2:] == ["assistant: 2", "user: three"]
    seat.close()
    seat.open(ById(session_id=seat.id))
    assert seat.texts()[:2] == SHOWN
    assert seat.texts()[2:] == ["assistant: 2", "user: three"]


def test_what_came_while_the_summary_was_made_stands_behind_it(seat):
    """C02: a message that was stored meanwhile is kept word for word."""
    kept = kept_from(seat, "two")
    seat.append(user("meanwhile"))
    seat.append(summary(kept))
    assert seat.texts()[:2] == SHOWN
    assert seat.texts()[2:] == ["assistant: 2", "user: meanwhile"]


def test_a_result_that_comes_after_the_summary_finds_its_call(seat):
    """C08: a call that still ran when the conversation was compacted keeps its result."""
    kept = kept_from(seat, "two")
    seat.append(answer("look", "c1"))
    seat.append(summary(kept))
    seat.append(result("c1", "late"))
    assert seat.texts()[-2:] == ["assistant: look + call c1", "toolResult: late"]


def test_only_the_last_summary_counts_and_may_keep_what_an_earlier_one_kept(seat):
    seat.append(user("three"), answer("3"))
    first, second = kept_from(seat, "two"), kept_from(seat, "three")
    seat.append(summary(first))
    seat.append(summary(second, "p2", "shorter"))
    assert seat.texts()[0].endswith("shorter\n</conversation-summary>")
    assert seat.texts()[1:] == ["user: three", "assistant: 3"]


def test_the_entry_stands_in_the_file_as_pi_writes_one(seat, machine):
    seat.append(summary(kept_from(seat, "two")))
    fields = json.loads(machine.lines(seat.opened.path)[-1])
    assert fields["type"] == "compaction"
    assert fields["firstKeptEntryId"] == kept_from(seat, "two")
    assert fields["tokensBefore"] == 900
    assert fields["details"] == {"pass": "p1"}


def test_history_tells_summary_prompts_and_what_came_since_apart(seat):
    seat.append(summary(kept_from(seat, "two")))
    seat.append(user("three"))
    told = seat.door.history(seat.id)
    assert [(each.kind, each.since) for each in told.shown] == [
        ("summary", False),
        ("prompt", False),
        ("other", False),
        ("prompt", True),
    ]
    assert told.details == {"pass": "p1"}


# --- exactly one end (S78, C12) ------------------------------------------------------------------


@pytest.mark.witness("COMPACT-5")
def test_a_pass_that_has_its_end_gets_no_second_one(seat, machine):
    seat.append(audit("start", "p1"))
    seat.append(audit("end", "p1", status="stopped"))
    seat.close()
    seat.open(ById(session_id=seat.id))
    assert phases(machine, seat.opened.path) == [("start", "p1", ""), ("end", "p1", "stopped")]


def test_a_pass_that_died_with_its_process_gets_its_end_when_the_session_is_opened(seat, machine):
    seat.append(audit("start", "p1"))
    path, session_id = seat.opened.path, seat.id
    machine.kill(seat)
    other = machine.seat("other")
    other.open(ById(session_id=session_id))
    wanted = [("start", "p1", ""), ("end", "p1", "interrupted")]
    assert phases(machine, path) == wanted
    assert other.opened.settled == 0
    other.close()
    other.open(ById(session_id=session_id))
    assert phases(machine, path) == wanted


def test_a_summary_whose_end_was_cut_off_counts_as_done(seat, machine):
    seat.append(audit("start", "p1"))
    seat.append(summary(kept_from(seat, "two")))
    path, session_id = seat.opened.path, seat.id
    machine.kill(seat)
    other = machine.seat("other")
    other.open(ById(session_id=session_id))
    assert phases(machine, path)[-1] == ("end", "p1", "compacted")
    assert other.texts()[:2] == SHOWN


def test_a_session_that_is_let_go_of_in_a_pass_gets_its_end_first(seat, machine):
    """X08: the audit of a pass is closed in the file where it began."""
    seat.append(audit("start", "p1"))
    seat.close()
    wanted = [("start", "p1", ""), ("end", "p1", "interrupted")]
    assert phases(machine, seat.opened.path) == wanted


def test_passes_are_settled_apart_from_calls(seat, machine):
    seat.append(answer("look", "c1"), audit("start", "p1"))
    effect = SettleTranscript(token=seat.token, owed="passes")
    outcome = run(seat.door.settle(effect, seat.context))
    assert isinstance(outcome, TranscriptSettled)
    assert outcome.opened.settled == 1
    assert phases(machine, seat.opened.path)[-1] == ("end", "p1", "interrupted")
    assert not any(line.count(b"toolResult") for line in machine.lines(seat.opened.path))
    outcome = run(seat.door.settle(SettleTranscript(token=seat.token), seat.context))
    assert outcome.opened.settled == 1


def test_calls_and_passes_that_are_owed_together_form_one_chain(seat, machine):
    seat.append(answer("look", "c1"), audit("start", "p1"))
    session_id = seat.id
    machine.kill(seat)
    other = machine.seat("other")
    opened = other.open(ById(session_id=session_id))
    assert opened.settled == 1
    ids = [json.loads(line) for line in machine.lines(opened.path)][1:]
    assert [each["parentId"] for each in ids[1:]] == [each["id"] for each in ids[:-1]]


# --- the way back --------------------------------------------------------------------------------


def find(seat):
    return run(seat.door.find_compaction(FindCompaction(session_id=seat.id), seat.context))


def test_without_a_compaction_none_is_found(seat):
    assert isinstance(find(seat), CompactionMissing)


def test_the_last_compaction_is_found_with_what_came_after_it(seat):
    before = seat.leaf
    seat.append(summary(kept_from(seat, "two")), audit("end", "p1"))
    found = find(seat)
    assert isinstance(found, CompactionFound)
    assert (found.parent_id, found.messages_after) == (before, 0)
    seat.append(user("three"), answer("3"))
    assert find(seat).messages_after == 2


def test_a_record_that_hangs_on_what_was_before_takes_the_summary_back(seat):
    before = seat.texts()
    seat.append(summary(kept_from(seat, "two")), audit("end", "p1"))
    found = find(seat)
    (record,) = seat.records(CustomEntry(custom_type="tenure/rewind", data={}))
    moved = msgspec.structs.replace(record, parent_id=found.parent_id)
    outcome = seat.append_records((moved,), after=seat.leaf)
    assert isinstance(outcome, RecordsAppended)
    assert seat.texts() == before
    assert isinstance(find(seat), CompactionMissing)
    epoch = seat.token.epoch
    seat.open(Again(session_id=seat.id))
    assert seat.texts() == before
    assert seat.token.epoch == epoch + 1
