"""Lines of a transcript: what is written is read back, and what was altered is told."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.messages.content import (
    AssistantMessage,
    Cost,
    TextBlock,
    ToolCallBlock,
    Usage,
    UserMessage,
)
from tenure.messages.entries import CustomEntry, MessageEntry, Record
from tenure.runtime.doors.transcripts.codec import (
    clean_text,
    encode_header,
    encode_record,
    has_seal_form,
    is_sealed,
    iso_time,
    parse_time,
)
from tenure.runtime.doors.transcripts.conversation import Conversation
from tenure.runtime.doors.transcripts.scan import scan

HEADER = encode_header("s1", 0, "/work")
LINE_BREAKERS = "\r \r\n \0 \x0b \x0c \x1c \x1d \x1e \x85 \u2028 \u2029 \n \ufeff"

# Everything Python can hold in a string, lone surrogates too.
any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


def record(body, *, key="", turn=0):
    return Record(
        id="e1",
        parent_id=None,
        timestamp_ms=1_700_000_000_123,
        seq=7,
        turn=turn,
        key=key,
        body=body,
    )


def user(text):
    return MessageEntry(message=UserMessage(content=text))


def shown(*lines):
    return Conversation(scan(HEADER + b"".join(lines)).tree).messages()


def test_line_has_the_fields_of_the_dialect_and_ours_last():
    line = encode_record(record(user("hi"), key="k", turn=2), epoch=3)
    fields = json.loads(line)
    assert list(fields) == ["type", "id", "parentId", "timestamp", "message", "tenure"]
    assert fields["timestamp"] == "2023-11-14T22:13:20.123Z"
    assert list(fields["tenure"]) == ["epoch", "seq", "turn", "key", "sum"]
    assert (fields["tenure"]["epoch"], fields["tenure"]["seq"]) == (3, 7)
    assert fields["tenure"]["turn"] == 2
    assert fields["tenure"]["key"] == "k"


def test_turn_and_key_are_left_out_where_there_is_none():
    fields = json.loads(encode_record(record(user("hi")), epoch=1))
    assert list(fields["tenure"]) == ["epoch", "seq", "sum"]


def test_header_fits_into_the_first_512_bytes_that_pi_looks_at():
    assert json.loads(HEADER) == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "cwd": "/work",
    }
    assert len(encode_header("x" * 36, 0, "/home/someone/projects/notes")) < 512


def test_every_altered_byte_is_found():
    line = encode_record(record(user("hello"), key="k", turn=2), epoch=3)[:-1]
    assert is_sealed(line)
    for place in range(len(line)):
        altered = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
        assert not is_sealed(altered), place


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"epoch":3', b'"epoch":4'),
        (b'"seq":7', b'"seq":8'),
        (b'"turn":2', b'"turn":1'),
        (b'"key":"k"', b'"key":"l"'),
    ],
)
def test_sum_covers_epoch_sequence_turn_and_key(old, new):
    line = encode_record(record(user("hello"), key="k", turn=2), epoch=3)
    assert old in line
    assert not is_sealed(line.replace(old, new)[:-1])
    assert has_seal_form(line.replace(old, new)[:-1])


def test_every_character_that_others_split_lines_at_stays_inside_its_record():
    first = encode_record(record(user(LINE_BREAKERS)), epoch=1)
    assert first.count(b"\n") == 1
    assert [message.content for message in shown(first)] == [LINE_BREAKERS]


def test_line_of_two_megabytes_is_read_back():
    text = "é\u2028" * 500_000
    assert [message.content for message in shown(encode_record(record(user(text)), 1))] == [text]


def test_lone_surrogate_becomes_a_replacement_character_everywhere():
    call = ToolCallBlock(id="c", name="run", arguments={"a\udc00": ["cut \ud83d"]})
    body = MessageEntry(message=AssistantMessage(content=(TextBlock(text="half \ud83d"), call)))
    line = encode_record(record(body, key="key \udfff"), epoch=1)
    fields = json.loads(line.decode("utf-8", "strict"))
    blocks = fields["message"]["content"]
    assert blocks[0]["text"] == "half \ufffd"
    assert blocks[1]["arguments"] == {"a\ufffd": ["cut \ufffd"]}
    assert fields["tenure"]["key"] == "key \ufffd"
    assert is_sealed(line[:-1])


def test_two_halves_that_meet_become_their_character():
    assert clean_text("\ud83d" + "\ude00") == "\U0001f600"
    assert clean_text("\ude00\ud83d") == "\ufffd\ufffd"


def test_numbers_are_written_as_javascript_writes_them():
    body = MessageEntry(
        message=AssistantMessage(
            content=(ToolCallBlock(id="c", name="n", arguments={"a": 2.0, "b": [0.5, -0.0]}),),
            usage=Usage(),
        )
    )
    line = encode_record(record(body), epoch=1)
    assert b'"arguments":{"a":2,"b":[0.5,0]}' in line
    assert b'"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}' in line


def test_a_cost_that_is_no_number_does_not_stop_the_write():
    cost = Cost(input=float("nan"), total=float("inf"), output=0.25)
    message = AssistantMessage(content=(), usage=Usage(cost=cost))
    line = encode_record(record(MessageEntry(message=message)), epoch=1)
    assert json.loads(line)["message"]["usage"]["cost"]["output"] == 0.25


@pytest.mark.parametrize("value", [object(), 1j, iter("ab")])
def test_what_json_cannot_hold_is_refused_with_an_error(value):
    body = CustomEntry(custom_type="tenure/test", data={"x": value})
    with pytest.raises((TypeError, ValueError, OverflowError)):
        encode_record(record(body), epoch=1)


def test_times_survive_to_the_millisecond():
    for moment in (0, 1, 999, 1_700_000_000_123, 4_102_444_799_999):
        assert parse_time(iso_time(moment)) == moment
    assert parse_time("2026-01-01T00:00:00") == parse_time("2026-01-01T01:00:00+01:00")
    assert parse_time("yesterday") == 0


@given(text=any_text, key=any_text)
@settings(max_examples=150, deadline=None)
def test_any_text_is_one_line_and_comes_back(text, key):
    line = encode_record(record(user(text), key=key), epoch=1)
    assert line.count(b"\n") == 1
    assert is_sealed(line[:-1])
    found = scan(HEADER + line)
    assert found.damage.count == 0
    assert Conversation(found.tree).messages()[0].content == clean_text(text)
    assert list(found.keys) == ([clean_text(key)] if key else [])


@given(data=st.dictionaries(any_text, any_json, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_value_is_strict_json_in_strict_utf8(data):
    line = encode_record(record(CustomEntry(custom_type="tenure/test", data=data)), epoch=1)
    assert line.count(b"\n") == 1
    json.loads(line.decode("utf-8", "strict"), parse_constant=pytest.fail)
    assert scan(HEADER + line).damage.count == 0


@given(text=any_text)
@settings(max_examples=50, deadline=None)
def test_clean_text_is_valid_and_clean_text_stays(text):
    clean = clean_text(text)
    clean.encode("utf-8", "strict")
    assert clean_text(clean) == clean
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert clean == text
