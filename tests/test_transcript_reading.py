"""Reading damaged, foreign and odd transcripts: nothing raises, nothing readable is lost."""

import json

import pytest
from transcript_world import answer, result, short, user

from tenure.messages.entries import Record
from tenure.runtime.doors.transcripts import Unreadable
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.doors.transcripts.conversation import Conversation
from tenure.runtime.doors.transcripts.scan import KEYS_KEPT_MAX, scan

HEADER = encode_header("s1", 0, "/work")


def line(number, body, *, parent="", epoch=1, key="", turn=0):
    """Entry `e<number>`, hanging on the one before it unless a parent is given."""
    before = f"e{number - 1}" if number > 1 else None
    record = Record(
        id=f"e{number}",
        parent_id=parent or before,
        timestamp_ms=1_700_000_000_000,
        seq=number,
        turn=turn,
        key=key,
        body=body,
    )
    return encode_record(record, epoch)


def foreign(**fields):
    """A line as another program writes it: no field of ours."""
    return json.dumps(fields).encode() + b"\n"


def texts(found):
    return [short(message) for message in Conversation(found.tree).messages()]


def three_lines():
    return [line(1, user("one")), line(2, answer("two")), line(3, user("three"))]


# --- damage ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        b"{not json",
        b'{"type":"message","id":"e2"',
        b"\0" * 40,
        b"\xff\xfe\xfd",
        b"[1, 2]",
        b'"text"',
        b"17",
        b'{"id":"e2","parentId":"e1"}',
        b"[" * 100_000,
        b'{"type":"message","id":"e2","x":"cut inside \xc3"}',
    ],
)
@pytest.mark.witness("SESSION-7")
def test_corrupt_line_in_the_middle_hides_nothing_else(damage):
    first, _, third = three_lines()
    found = scan(HEADER + first + damage + b"\n" + third)
    assert texts(found) == ["user: one", "user: three"]
    assert found.damage.unreadable_lines == 1
    assert found.damage.count == 1
    assert found.marks == {3: "unreadable"}


@pytest.mark.witness("SESSION-7")
def test_child_of_a_lost_entry_hangs_on_the_readable_entry_before_it():
    first, _, third = three_lines()
    tree = scan(HEADER + first + b"?\n" + third).tree
    assert [tree.heads[place].id for place in tree.path()] == ["e1", "e3"]


@pytest.mark.witness("SESSION-7")
def test_parent_that_stands_behind_its_child_does_not_make_a_circle():
    data = HEADER + line(1, user("one"), parent="e2") + line(2, user("two"), parent="e1")
    assert texts(scan(data)) == ["user: one", "user: two"]


@pytest.mark.witness("SESSION-7")
def test_altered_record_is_counted_and_not_served():
    first, second, third = three_lines()
    found = scan(HEADER + first + second.replace(b"two", b"TWO") + third)
    assert texts(found) == ["user: one", "user: three"]
    assert found.damage.altered_records == 1
    assert found.marks == {3: "altered"}


def test_record_without_our_field_is_served_and_counted_apart_from_damage():
    entry = foreign(
        type="message", id="f1", parentId="e1", message={"role": "user", "content": "hello"}
    )
    found = scan(HEADER + line(1, user("one")) + entry)
    assert texts(found) == ["user: one", "user: hello"]
    assert found.damage.unverified_records == 1
    assert found.damage.count == 0


def test_record_that_another_program_wrote_anew_is_unverified_and_not_altered():
    anew = json.dumps(json.loads(line(1, user("one")))).encode() + b"\n"
    found = scan(HEADER + anew)
    assert texts(found) == ["user: one"]
    assert (found.damage.unverified_records, found.damage.altered_records) == (1, 0)


def test_record_with_windows_line_ends_is_read():
    found = scan(b"".join(part[:-1] + b"\r\n" for part in [HEADER, *three_lines()]))
    assert texts(found) == ["user: one", "assistant: two", "user: three"]


def test_blank_lines_are_no_damage():
    first, second, third = three_lines()
    found = scan(HEADER + b"\n" + first + b"  \n" + second + third)
    assert len(texts(found)) == 3
    assert found.damage.count == 0


def test_record_of_an_earlier_epoch_behind_a_later_one_is_counted_and_shown():
    data = HEADER + line(1, user("a"), epoch=2) + line(2, user("b")) + line(3, user("c"), epoch=2)
    found = scan(data)
    assert found.damage.out_of_epoch_records == 1
    assert found.marks == {3: "out_of_epoch"}
    assert texts(found) == ["user: a", "user: b", "user: c"]


def test_record_of_an_epoch_that_was_never_claimed_is_counted():
    data = HEADER + line(1, user("a"), epoch=2) + line(2, user("b"), epoch=9)
    assert scan(data, claim_epoch=2).damage.out_of_epoch_records == 1
    assert scan(data, claim_epoch=9).damage.out_of_epoch_records == 0
    assert scan(data).damage.out_of_epoch_records == 0
    assert scan(data, claim_epoch=2).epoch_max == 9


# --- the end of the file -----------------------------------------------------------------


def test_unfinished_last_line_is_counted_and_not_served_at_every_length():
    whole = HEADER + line(1, user("one"))
    last = line(2, user("two é"))
    for length in range(1, len(last) - 1):
        found = scan(whole + last[:length])
        assert found.tail.state == "torn"
        assert found.damage.torn_bytes == length
        assert texts(found) == ["user: one"]


def test_reader_keeps_a_complete_record_that_lacks_only_its_newline():
    found = scan(HEADER + line(1, user("one")) + line(2, user("two"))[:-1])
    assert found.tail.state == "unterminated"
    assert texts(found) == ["user: one", "user: two"]
    assert found.damage.count == 0


def test_complete_foreign_record_without_newline_is_kept():
    entry = foreign(type="message", id="f", message={"role": "user", "content": "x"})[:-1]
    assert texts(scan(HEADER + entry)) == ["user: x"]


def test_header_alone_without_newline_is_an_empty_session():
    found = scan(HEADER[:-1])
    assert found.tail.state == "unterminated"
    assert found.tree.leaf is None


# --- counters ----------------------------------------------------------------------------


def test_counters_are_the_highest_that_were_written():
    data = HEADER + line(1, user("a"), turn=4) + line(9, user("b"), turn=2)
    found = scan(data)
    assert (found.seq_max, found.last_turn) == (9, 4)


def test_sequence_is_at_least_the_number_of_entries():
    entries = [foreign(type="custom", id=f"f{n}", parentId=None) for n in range(5)]
    assert scan(HEADER + b"".join(entries)).seq_max == 5


def test_idempotency_keys_come_back_with_their_entries():
    data = HEADER + line(1, user("a"), key="k") + line(2, user("b"), key="k") + line(3, user("c"))
    assert scan(data).keys == {"k": (("e1", "e2"), 2)}


def test_only_the_newest_keys_are_kept():
    count = KEYS_KEPT_MAX + 3
    data = HEADER + b"".join(line(n, user("x"), key=f"k{n}") for n in range(1, count + 1))
    keys = list(scan(data).keys)
    assert (len(keys), keys[0], keys[-1]) == (KEYS_KEPT_MAX, "k4", f"k{count}")


# --- odd and foreign entries -------------------------------------------------------------


def test_entries_with_one_id_are_both_kept():
    entries = [
        foreign(type="message", id="x", parentId=None, message={"role": "user", "content": text})
        for text in ("first", "second")
    ]
    child = foreign(
        type="message", id="y", parentId="x", message={"role": "user", "content": "third"}
    )
    found = scan(HEADER + b"".join(entries) + child)
    assert len(found.tree.heads) == 3
    assert texts(found)[-2:] == ["user: second", "user: third"]


def test_lines_that_were_written_twice_are_one_entry():
    """pi writes header and entries again when it first appends to a session without an answer."""
    first, second, third = three_lines()
    found = scan(HEADER + first + second + HEADER + first + second + third)
    assert texts(found) == ["user: one", "assistant: two", "user: three"]
    assert found.damage.count == 0


def test_entry_without_an_id_is_kept():
    entry = foreign(type="message", message={"role": "user", "content": "x"})
    found = scan(HEADER + line(1, user("one")) + entry)
    assert found.tree.leaf == "#3"
    assert len(found.tree.heads) == 2


def test_fields_of_unexpected_types_are_no_damage():
    entry = foreign(
        type="message",
        id="f",
        parentId=7,
        timestamp=12,
        tenure="mine",
        message={"role": ["user"], "timestamp": "now", "content": "x"},
    )
    found = scan(HEADER + entry)
    assert found.damage.count == 0
    assert found.tree.leaf == "f"


def test_lone_surrogate_in_a_foreign_line_is_replaced_and_served():
    message = rb'{"role":"user","content":"\ud83d!"}'
    entry = b'{"type":"message","id":"f","parentId":null,"message":%b}\n' % message
    found = scan(HEADER + entry)
    assert texts(found) == ["user: \ufffd!"]
    assert found.damage.count == 0


def test_leaf_entry_of_later_releases_of_pi_moves_the_leaf():
    data = HEADER + line(1, user("one")) + line(2, user("two"))
    back = foreign(type="leaf", id="l", parentId="e2", targetId="e1")
    assert scan(data + back).tree.leaf == "e1"
    start = foreign(type="leaf", id="l", parentId="e2", targetId=None)
    assert scan(data + start).tree.leaf is None
    nowhere = foreign(type="leaf", id="l", parentId="e2", targetId="gone")
    assert scan(data + nowhere).tree.leaf == "l"


# --- formats -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\n", "its first line is not a session header"),
        (b"\0" * 4096, "it holds only zero bytes: the disk lost it"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is not a text file"),
        (b'{"type":"ses', "its first line was cut off, and there is no other"),
        (b"hello\nworld\n", "its first line is not a session header"),
        (b'{"type":"message","id":"x"}\n', "its first line is not a session header"),
        (b'{"type":"session","version":3}\n', "its header names no session id"),
        (b'{"type":"session","version":3,"id":""}\n', "its header names no session id"),
        (
            b'{"type":"session","version":"three","id":"x"}\n',
            "its header has the version 'three', which is no version",
        ),
        (
            b'{"type":"session","version":4,"id":"x"}\n',
            "it was written in version 4 of the dialect, and this program reads up to 3; "
            "update tenure",
        ),
    ],
)
def test_what_is_no_transcript_is_refused_with_its_reason(data, reason):
    with pytest.raises(Unreadable) as caught:
        scan(data)
    assert str(caught.value) == reason


def test_plugin_version_one_is_read_and_its_entries_keep_their_bytes():
    entry = foreign(
        type="message", id="a", parentId=None, message={"role": "user", "content": "hello"}
    )
    audit = foreign(type="action_audit", id="b", parentId="a", event={"category": "turn"})
    header = foreign(type="session", version=1, id="s1", cwd="obsidian-vault:Notes", projectId="p")
    found = scan(header + entry + audit)
    assert found.new_lines[1:] == [entry[:-1], audit[:-1]]
    new_header = json.loads(found.new_lines[0])
    assert (new_header["version"], new_header["projectId"]) == (3, "p")
    assert texts(found) == ["user: hello"]
    assert found.tree.leaf == "b"


def test_pi_version_one_gets_ids_in_a_chain_that_are_the_same_each_time():
    header = foreign(type="session", id="s1", timestamp="2025-01-01T00:00:00Z", cwd="/x")
    said = [
        foreign(type="message", message={"role": "user", "content": text})
        for text in ("one", "two", "three")
    ]
    kept = foreign(type="compaction", summary="short", firstKeptEntryIndex=2, tokensBefore=9)
    found = scan(header + b"".join(said) + kept)
    assert [head.id for head in found.tree.heads] == [f"{n:08x}" for n in (2, 3, 4, 5)]
    assert texts(found) == [
        "user: <conversation-summary>\nshort\n</conversation-summary>",
        "user: two",
        "user: three",
    ]
    assert scan(header + b"".join(said) + kept).new_lines == found.new_lines


def test_pi_version_two_renames_the_role_of_hook_messages():
    header = foreign(type="session", version=2, id="s1")
    hook = foreign(
        type="message", id="a", parentId=None, message={"role": "hookMessage", "content": "note"}
    )
    found = scan(header + hook + b"broken\n")
    assert texts(found) == ["user: note"]
    assert found.damage.unreadable_lines == 1
    assert json.loads(found.new_lines[1])["message"]["role"] == "custom"


def test_unknown_fields_survive_a_conversion():
    header = foreign(type="session", version=2, id="s1", flavour="mint")
    hook = foreign(
        type="message", id="a", parentId=None, extra=[1], message={"role": "hookMessage", "y": 2}
    )
    new_header, new_hook = (json.loads(each) for each in scan(header + hook).new_lines)
    assert new_header["flavour"] == "mint"
    assert (new_hook["extra"], new_hook["message"]["y"]) == ([1], 2)


def test_calls_and_results_of_a_foreign_session_pair():
    found = scan(HEADER + line(1, answer("go", "c1")) + line(2, result("c1", "yes")))
    assert texts(found) == ["assistant: go + call c1", "toolResult: yes"]
