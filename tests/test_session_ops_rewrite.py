"""Guarded rewrites: what must go goes, what is left out is kept aside, and nothing else changes."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_world import assert_sound, branched, closed_session, entries_in, ground_of, said_in
from transcript_world import SESSIONS, Machine, answer, user

from tenure.messages.content import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    UserMessage,
)
from tenure.messages.entries import CustomEntry, MessageEntry
from tenure.messages.session import SessionInUse, SessionNotFound
from tenure.messages.session_ops import (
    BadPattern,
    EntryNotFound,
    NothingToRewrite,
    Redact,
    SessionRewritten,
    Vacuum,
)
from tenure.messages.tokens import SessionId
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.transcripts import read_session
from tenure.runtime.doors.transcripts.redacting import redacted
from tenure.runtime.doors.transcripts.stored import rewrite_stored
from tenure.runtime.testing.faults import (
    Fail,
    KillAfter,
    KillBefore,
    ProcessKilled,
    SeededFate,
)
from tenure.runtime.testing.leaves import memory_leaves

HEADER = b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}'
SECRET = Redact(patterns=(r"sk-\w+",))


@pytest.fixture
def machine():
    return Machine()


def rewrite(machine, session_id, change):
    return rewrite_stored(ground_of(machine.disk), session_id, change)


def with_secret(machine):
    """A session whose secret stands in a prompt, an answer, a call, a thought and a note."""
    seat = machine.seat(host="writer")
    path = seat.open(Fresh()).path
    blocks = (
        ThinkingBlock(thinking="the key sk-123", thinking_signature="proof"),
        TextBlock(text="I keep sk-123 in mind"),
        ToolCallBlock(id="c1", name="write", arguments={"sk-123": ["x sk-123 y"]}),
    )
    seat.append(user("use sk-123, please"))
    seat.append(MessageEntry(message=AssistantMessage(content=blocks, timestamp=1)))
    seat.append(CustomEntry(custom_type="tenure/audit", data={"arguments": "sk-123"}))
    seat.append(user("nothing to hide"))
    seat.settle()
    seat.close()
    return seat.id, path


# --- redact --------------------------------------------------------------------------------


def test_redacted_text_is_nowhere_in_the_file_and_every_sum_fits(machine):
    session_id, path = with_secret(machine)
    done = rewrite(machine, session_id, SECRET)
    assert isinstance(done, SessionRewritten)
    assert b"sk-123" not in machine.content(path)
    assert done.left_lines == ()
    assert_sound(machine, path)
    snapshot = read_session(memory_leaves(machine.disk), path)
    assert snapshot.damage.count == 0
    assert "use [redacted], please" in str(snapshot.messages)


def test_redaction_keeps_ids_parents_and_the_lines_without_the_text(machine):
    session_id, path = with_secret(machine)
    before_lines, before = machine.lines(path), entries_in(machine, path)
    rewrite(machine, session_id, SECRET)
    after = entries_in(machine, path)
    kept = ("type", "id", "parentId", "timestamp")
    assert [[e[k] for k in kept] for e in after] == [[e[k] for k in kept] for e in before]
    unchanged = [line for line in before_lines if b"sk-123" not in line]
    assert len(unchanged) == 3
    assert set(unchanged) <= set(machine.lines(path))


def test_redaction_takes_the_proof_of_a_changed_thought_away(machine):
    session_id, path = with_secret(machine)
    rewrite(machine, session_id, SECRET)
    assert b"proof" not in machine.content(path)


def test_redaction_moves_the_epoch_and_leaves_no_copy_of_the_old_file(machine):
    session_id, _path = with_secret(machine)
    seat = machine.seat(host="before")
    epoch = seat.open(ById(session_id=session_id)).token.epoch
    seat.close()
    done = rewrite(machine, session_id, SECRET)
    assert done.token.epoch > epoch
    assert (done.backup, done.copies) == ("", ())
    assert not [each for each in machine.files() if ".bak" in each or ".tmp" in each]
    later = machine.seat(host="later")
    assert later.open(ById(session_id=session_id)).token.epoch > done.token.epoch


def test_redaction_of_an_entry_takes_all_its_text_and_its_images(machine):
    seat = machine.seat(host="writer")
    path = seat.open(Fresh()).path
    image = ImageBlock(data="c2VjcmV0", mime_type="image/jpeg")
    content = (TextBlock(text="look at this"), image)
    seat.append(MessageEntry(message=UserMessage(content=content, timestamp=1)))
    seat.append(answer("a cat"))
    seat.close()
    entry_id = entries_in(machine, path)[0]["id"]
    rewrite(machine, seat.id, Redact(entry_ids=(entry_id,)))
    assert b"look at this" not in machine.content(path)
    assert b"c2VjcmV0" not in machine.content(path)
    assert said_in(machine, path) == ["[redacted]", "a cat"]
    (message, _) = read_session(memory_leaves(machine.disk), path).messages
    assert message.content[1].mime_type == "image/png"
    assert_sound(machine, path)


def test_redaction_reaches_escaped_text_and_damaged_lines(machine):
    lines = (
        HEADER,
        b'{"type":"message","id":"a","parentId":null,"message":{"role":"user",'
        b'"content":"\\u0073k-123"}}',
        b'{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"sk-45',
    )
    path = machine.put_session("s", *lines, b"{}")
    rewrite(machine, SessionId("s"), SECRET)
    data = machine.content(path)
    assert b"k-123" not in data
    assert b"sk-45" not in data


def test_redaction_lists_the_other_files_that_may_hold_the_text(machine):
    session_id, path = with_secret(machine)
    for name in (f"{path}.torn", f"{path}.bak", "/work/.tenure/traces/one.jsonl"):
        machine.disk.put(name, b"sk-123")
    done = rewrite(machine, session_id, SECRET)
    assert set(done.copies) == {f"{path}.torn", f"{path}.bak", "/work/.tenure/traces/one.jsonl"}
    assert machine.content(f"{path}.torn") == b"sk-123"


def test_pattern_that_matches_structure_is_told_with_its_line(machine):
    path = machine.put_session(
        "s",
        HEADER,
        b'{"type":"message","id":"sk-9","parentId":null,"message":{"role":"user","content":"x"}}',
        b'{"type":"message","id":"b","parentId":"sk-9","message":{"role":"user","content":"sk-1"}}',
    )
    done = rewrite(machine, SessionId("s"), SECRET)
    assert done.left_lines == (2, 3)
    assert [entry["id"] for entry in entries_in(machine, path)] == ["sk-9", "b"]


@pytest.mark.parametrize("pattern", ["(", "a*", "[z-a]"])
def test_pattern_that_cannot_be_used_changes_nothing(machine, pattern):
    session_id, path = with_secret(machine)
    before = machine.content(path)
    refused = rewrite(machine, session_id, Redact(patterns=(pattern,)))
    assert isinstance(refused, BadPattern)
    assert pattern in refused.remedy
    assert machine.content(path) == before


def test_nothing_to_redact_leaves_the_file_alone(machine):
    session_id, path = with_secret(machine)
    before = machine.content(path)
    refused = rewrite(machine, session_id, Redact(patterns=("never said",)))
    assert refused == NothingToRewrite(session_id=session_id)
    assert machine.content(path) == before


def test_entry_of_another_session_is_not_redacted(machine):
    session_id, path = with_secret(machine)
    before = machine.content(path)
    refused = rewrite(machine, session_id, Redact(entry_ids=("elsewhere",)))
    assert refused == EntryNotFound(session_id=session_id, entry_id="elsewhere")
    assert machine.content(path) == before


def test_session_that_is_open_elsewhere_is_not_rewritten(machine):
    seat = machine.seat(host="holder")
    path = seat.open(Fresh()).path
    seat.append(user("sk-123"))
    before = machine.content(path)
    refused = rewrite(machine, seat.id, SECRET)
    assert isinstance(refused, SessionInUse)
    assert machine.content(path) == before
    assert isinstance(rewrite(machine, SessionId("nowhere"), SECRET), SessionNotFound)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(extra=json_values, other=json_values, spaced=st.booleans())
def test_unknown_entries_and_fields_survive_a_redaction_byte_for_byte(extra, other, spaced):
    separators = (" , ", " : ") if spaced else (",", ":")
    entry = {"type": "never/seen", "id": "a", "parentId": None, "extra": extra}
    hit = {"type": "custom", "id": "b", "parentId": "a", "other": other, "data": {"k": "sk-777"}}
    unseen = json.dumps(entry, separators=separators, ensure_ascii=spaced).encode()
    line = json.dumps(hit, separators=separators, ensure_ascii=not spaced).encode()
    done = redacted([HEADER, unseen, line], SECRET)
    assert done.lines[0] == HEADER
    if b"sk-" not in unseen:
        assert done.lines[1] == unseen
    if line.count(b"sk-") == 1:
        assert done.lines[2] == line.replace(b"sk-777", b"[redacted]")
    assert json.loads(done.lines[2])["data"] == {"k": "[redacted]"}


# --- vacuum --------------------------------------------------------------------------------


def with_branches(machine):
    """Another branch, a copy of a line, and a line that nobody can read."""
    seat, ids = branched(machine)
    path = seat.opened.path
    seat.close()
    lines = machine.lines(path)
    side = (
        b'{"type":"message","id":"side","parentId":"%b","message":{"role":"user","content":"aside"}}'
        % ids[0].encode()
    )
    odd = b'{"type":"never/seen","id":"odd","parentId":"%b","x": 1.50}' % ids[3].encode()
    back = (
        b'{"type":"message","id":"back","parentId":"odd","message":{"role":"user","content":"on"}}'
    )
    machine.disk.put(path, b"\n".join([*lines, side, lines[1], b"no json", odd, back, b""]))
    return seat.id, path


def test_vacuum_leaves_out_other_branches_and_copies_and_keeps_the_rest(machine):
    session_id, path = with_branches(machine)
    done = rewrite(machine, session_id, Vacuum())
    assert isinstance(done, SessionRewritten)
    texts = machine.content(path)
    assert b"aside" not in texts
    assert texts.count(b'"one"') == 1
    assert b"no json" in machine.lines(path)
    assert b'{"type":"never/seen","id":"odd"' in texts
    assert b'"x": 1.50}' in texts
    assert done.bytes_after < done.bytes_before


def test_vacuum_keeps_what_is_shown_to_a_model_and_to_people(machine):
    session_id, path = with_branches(machine)
    reader = memory_leaves(machine.disk)
    before = read_session(reader, path)
    rewrite(machine, session_id, Vacuum())
    after = read_session(reader, path)
    assert after.messages == before.messages
    assert after.summary.name == before.summary.name == "Trip"
    assert b'"label":"good"' in machine.content(path)


def test_vacuum_keeps_the_old_file_beside_the_new_one(machine):
    session_id, path = with_branches(machine)
    before = machine.content(path)
    first = rewrite(machine, session_id, Vacuum())
    assert first.backup == f"{path}.bak"
    # Opening it wrote what every opening writes, and nothing else was lost.
    assert machine.content(first.backup).startswith(before)
    assert isinstance(rewrite(machine, session_id, Vacuum()), NothingToRewrite)


# --- what may go wrong ---------------------------------------------------------------------


def at_call(number, fault):
    count = 0

    def before(call):
        nonlocal count
        count += 1
        return fault if count == number else None

    return before


@pytest.mark.parametrize("fault", [Fail(errno=5), Fail(errno=28), KillBefore(), KillAfter()])
@pytest.mark.parametrize("change", [SECRET, Vacuum()], ids=["redact", "vacuum"])
def test_power_loss_and_failure_at_every_call_leave_the_old_file_or_the_new_one(change, fault):
    def prepared():
        machine = Machine()
        make = with_secret if isinstance(change, Redact) else with_branches
        return machine, *make(machine)

    machine, session_id, path = prepared()
    calls = len(machine.disk.calls)
    rewrite(machine, session_id, change)
    calls = len(machine.disk.calls) - calls
    new = said_in_whole(machine, path)
    for number in range(1, calls + 1):
        machine, session_id, path = prepared()
        old = said_in_whole(machine, path)
        machine.disk.before = at_call(number, fault)
        try:
            outcome = rewrite(machine, session_id, change)
        except ProcessKilled:
            outcome = None
        machine.disk.before = None
        machine.disk.crash(SeededFate(random.Random(number)))
        after = said_in_whole(machine, path)
        assert after in (old, new), f"call {number}: neither the old file nor the new one"
        if isinstance(outcome, SessionRewritten):
            assert after == new, f"call {number}: said to be done, and it was not"
        again = machine.seat(host="again")
        opened = again.open(ById(session_id=session_id))
        assert opened.damage.altered_records == 0
        again.append(user("on"))
        assert said_in_whole(machine, path)[-1] == "on"


def said_in_whole(machine, path):
    """What was said, of the lines that are JSON."""
    found = []
    for line in machine.lines(path)[1:]:
        try:
            entry = json.loads(line)
        except ValueError:
            found.append(line.decode())
            continue
        content = entry.get("message", {}).get("content")
        if isinstance(content, str):
            found.append(content)
        elif content:
            found += [block.get("text", "") for block in content]
    return found


def test_sessions_folder_holds_no_unfinished_file_after_a_rewrite(machine):
    session_id, _ = closed_session(machine, "sk-1", "two")
    rewrite(machine, session_id, SECRET)
    names = [name for name in machine.files() if name.startswith(SESSIONS)]
    assert len(names) == 1
