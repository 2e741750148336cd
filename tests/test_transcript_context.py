"""What a model is shown of a session: the leaf's path, compacted, with calls and results paired."""

import json
import random

import pytest
from transcript_world import Machine, answer, result, user

from tenure.messages.content import AssistantMessage, ToolResultMessage, calls_of
from tenure.messages.entries import CustomEntry
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.transcripts.codec import encode_header

HEADER = encode_header("s1", 0, "/work")[:-1]


def entry(number, **fields):
    """An entry as pi writes it, hanging on the one before it."""
    parent = f"e{number - 1}" if number > 1 else None
    place = {"id": f"e{number}", "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"}
    return json.dumps({"type": fields.pop("type"), **place, **fields}).encode()


def said(number, text, role="user", **fields):
    content = [{"type": "text", "text": text}] if role == "assistant" else text
    return entry(number, type="message", message={"role": role, "content": content, **fields})


def shown(*entries):
    machine = Machine()
    machine.put_session("s1", HEADER, *entries)
    seat = machine.seat()
    seat.open(ById(session_id="s1"))
    return seat.texts()


@pytest.fixture
def seat():
    seat = Machine().seat()
    seat.open(Fresh())
    return seat


def test_snapshot_of_an_empty_session_is_empty(seat):
    assert seat.door.context(seat.id) == ()


def test_session_that_is_not_open_has_no_context(seat):
    with pytest.raises(LookupError):
        seat.door.context("nobody")


def test_snapshot_does_not_change_when_the_session_grows(seat):
    seat.append(user("one"))
    before = seat.door.context(seat.id)
    seat.append(user("two"))
    assert len(before) == 1
    assert len(seat.door.context(seat.id)) == 2


def test_appended_message_is_shown_as_it_stands_in_the_file(seat):
    seat.append(user("half \ud83d"))
    assert seat.texts() == ["user: half \ufffd"]


def test_entries_of_ours_are_not_shown_to_the_model(seat):
    seat.append(user("one"), CustomEntry(custom_type="tenure/plan", data={"steps": 3}))
    assert seat.texts() == ["user: one"]


# --- calls and results ---


def test_results_stand_behind_their_message_in_the_order_of_the_calls(seat):
    seat.append(answer("go", "a", "b"), result("b", "B"), result("a", "A"), user("next"))
    assert seat.texts() == [
        "assistant: go + call a + call b",
        "toolResult: A",
        "toolResult: B",
        "user: next",
    ]


@pytest.mark.parametrize("results", [(), ("b",), ("a", "c"), ("c", "b", "a")])
@pytest.mark.witness("TURN-7")
def test_call_without_a_result_gets_one_in_the_snapshot(seat, results):
    """However many results a stopped batch of three had, the provider sees three pairs."""
    seat.append(answer("go", "a", "b", "c"), *(result(call) for call in results), user("next"))
    messages = seat.door.context(seat.id)[1:-1]
    assert [message.tool_call_id for message in messages] == ["a", "b", "c"]
    assert [message.is_error for message in messages] == [
        call not in results for call in ("a", "b", "c")
    ]


@pytest.mark.witness("TURN-7")
def test_result_without_its_call_is_not_shown(seat):
    seat.append(user("one"), result("nobody"), user("two"))
    assert seat.texts() == ["user: one", "user: two"]


@pytest.mark.witness("TURN-7")
def test_second_result_of_a_call_is_not_shown(seat):
    seat.append(answer("go", "a"), result("a", "first"), result("a", "second"))
    assert seat.texts() == ["assistant: go + call a", "toolResult: first"]


def test_id_that_comes_again_in_a_later_turn_belongs_to_the_later_call(seat):
    seat.append(answer("one", "call_1"), user("stop"), answer("two", "call_1"))
    seat.append(result("call_1", "late"))
    assert seat.texts()[1].startswith("toolResult: This call was interrupted")
    assert seat.texts()[-1] == "toolResult: late"


@pytest.mark.witness("TURN-7")
def test_pairs_are_whole_whatever_was_appended():
    for seed in range(40):
        chance = random.Random(seed)
        seat = Machine().seat()
        seat.open(Fresh())
        for _ in range(chance.randint(1, 25)):
            call = f"c{chance.randint(1, 4)}"
            seat.append(
                chance.choice([user("u"), answer("a"), answer("a", call, "d"), result(call)])
            )
        for messages in (seat.door.context(seat.id), _after_reopening(seat)):
            _assert_paired(messages)


def _after_reopening(seat):
    seat.close()
    seat.open(ById(session_id=seat.id))
    assert seat.settle().opened.settled == 0
    return seat.door.context(seat.id)


def _assert_paired(messages):
    owed = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert owed.pop(0) == message.tool_call_id
        else:
            assert not owed
            if isinstance(message, AssistantMessage):
                owed = [call.id for call in calls_of(message)]
    assert not owed


# --- compaction, branches, other programs' entries ---


def compaction(number, kept, **fields):
    return entry(
        number, type="compaction", summary="short", firstKeptEntryId=kept, tokensBefore=9, **fields
    )


SUMMARY = "user: <conversation-summary>\nshort\n</conversation-summary>"


def test_summary_comes_first_then_what_was_kept_then_what_followed():
    entries = [said(1, "one"), said(2, "two"), said(3, "three"), compaction(4, "e2")]
    assert shown(*entries, said(5, "five")) == [SUMMARY, "user: two", "user: three", "user: five"]


def test_only_the_last_compaction_counts():
    entries = [said(1, "one"), compaction(2, "e1"), said(3, "three"), compaction(4, "e3")]
    assert shown(*entries, said(5, "five")) == [SUMMARY, "user: three", "user: five"]


def test_compaction_that_kept_an_unknown_entry_shows_what_follows():
    assert shown(said(1, "one"), compaction(2, "gone"), said(3, "three")) == [
        SUMMARY,
        "user: three",
    ]


def test_compaction_with_its_tail_inside_shows_the_tail():
    tail = [{"role": "user", "content": "kept"}, {"role": "unknown"}]
    entries = [said(1, "one"), compaction(2, "e1", retainedTail=tail), said(3, "three")]
    assert shown(*entries) == [SUMMARY, "user: kept", "user: three"]


def test_compaction_on_another_branch_does_not_count():
    aside = compaction(2, "e1")
    other = json.dumps(
        {
            "type": "message",
            "id": "x",
            "parentId": "e1",
            "message": {"role": "user", "content": "other"},
        }
    ).encode()
    assert shown(said(1, "one"), aside, other) == ["user: one", "user: other"]


def test_compaction_between_a_call_and_its_result_leaves_no_half_pair():
    call = said(1, "go", role="assistant")
    call = call.replace(
        b'"content": [', b'"content": [{"type":"toolCall","id":"c","name":"n","arguments":{}},'
    )
    back = entry(
        2,
        type="message",
        message={"role": "toolResult", "toolCallId": "c", "toolName": "n", "content": []},
    )
    assert shown(call, back, compaction(3, "e2"), said(4, "four")) == [SUMMARY, "user: four"]


def test_branch_summary_and_custom_message_are_shown_as_said_by_the_user():
    entries = [
        entry(1, type="branch_summary", fromId="root", summary="tried that"),
        entry(2, type="custom_message", customType="x", content="note", display=True),
        entry(3, type="custom_message", customType="x", content=[{"type": "text", "text": "b"}]),
        entry(4, type="branch_summary", fromId="root", summary=""),
        entry(5, type="label", targetId="e1", label="here"),
        entry(6, type="from_the_future", content="?"),
    ]
    assert shown(*entries) == [
        "user: <branch-summary>\ntried that\n</branch-summary>",
        "user: note",
        "user: b",
    ]


def test_shell_commands_of_the_user_are_shown_unless_they_were_kept_out():
    ran = {"role": "bashExecution", "command": "ls", "output": "a.md", "exitCode": 2}
    entries = [
        entry(1, type="message", message=ran),
        entry(2, type="message", message={**ran, "excludeFromContext": True}),
    ]
    (text,) = shown(*entries)
    assert "`ls`" in text
    assert "a.md" in text
    assert "exit code 2" in text


def test_blocks_of_unknown_kinds_are_left_out_and_the_rest_is_shown():
    blocks = [{"type": "text", "text": "known"}, {"type": "hologram", "data": "?"}]
    entries = [
        entry(1, type="message", message={"role": "user", "content": blocks}),
        entry(2, type="message", message={"role": "assistant", "content": blocks, "usage": "?"}),
    ]
    assert shown(*entries) == ["user: known", "assistant: known"]


def test_unknown_bytes_of_a_shown_message_stay_in_the_file():
    machine = Machine()
    blocks = [{"type": "text", "text": "known", "mine": 1}, {"type": "hologram", "data": "?"}]
    lines = [
        entry(1, type="message", message={"role": "user", "content": blocks}, extra={"a": [1.0]}),
        entry(2, type="from_the_future", content="?"),
    ]
    path = machine.put_session("s1", HEADER, *lines)
    seat = machine.seat()
    seat.open(ById(session_id="s1"))
    seat.append(user("more"))
    assert machine.lines(path)[1:3] == lines
