"""Forks: a new session begins with a copy of a path, byte for byte, and nothing else changes."""

import pytest
from ops_world import assert_sound, branched, closed_session, entries_in, ground_of, said_in
from transcript_world import SESSIONS, Machine, answer, user

from tenure.messages.entries import LabelEntry
from tenure.messages.session import SessionNotFound, SessionUnreadable, StorageFailed
from tenure.messages.session_ops import EntryNotFound, SessionForked
from tenure.messages.tokens import EntryId, SessionId
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.transcripts import list_sessions, read_session, tree_of
from tenure.runtime.doors.transcripts.forking import fork_stored
from tenure.runtime.testing.faults import Fail, KillAfter, KillBefore, LoseAll, ProcessKilled
from tenure.runtime.testing.leaves import memory_leaves


@pytest.fixture
def machine():
    return Machine()


def fork(machine, session_id, entry_id=None, position="at", name=""):
    return fork_stored(ground_of(machine.disk), session_id, entry_id, position, name)


def test_fork_at_the_leaf_copies_the_path_byte_for_byte(machine):
    seat, _ = branched(machine)
    before = machine.content(seat.opened.path)
    forked = fork(machine, seat.id)
    assert isinstance(forked, SessionForked)
    assert machine.lines(forked.path)[1:] == machine.lines(seat.opened.path)[1:]
    assert machine.content(seat.opened.path) == before
    assert_sound(machine, forked.path)


def test_fork_at_an_entry_ends_there_and_before_it_one_earlier(machine):
    seat, ids = branched(machine)
    at = fork(machine, seat.id, ids[0], "at")
    before = fork(machine, seat.id, ids[3], "before")
    assert said_in(machine, at.path) == ["one"]
    assert said_in(machine, before.path) == ["one", "two", "done"]


def test_fork_before_the_first_entry_is_an_empty_session_that_can_be_opened(machine):
    seat, ids = branched(machine)
    forked = fork(machine, seat.id, ids[0], "before")
    assert said_in(machine, forked.path) == []
    other = machine.seat(host="other")
    assert other.open(ById(session_id=forked.session_id)).leaf is not None  # its name came along
    other.append(user("anew"))
    assert said_in(machine, forked.path) == ["anew"]


def test_fork_names_its_parent_and_has_an_id_of_its_own(machine):
    seat, _ = branched(machine)
    forked = fork(machine, seat.id)
    (header, *_) = machine.lines(forked.path)
    assert b'"parentSession":"%b"' % seat.opened.path.encode() in header
    assert forked.session_id != seat.id
    assert forked.session_id.encode() in header


def test_labels_and_the_name_that_stand_behind_the_entry_are_written_anew(machine):
    seat, ids = branched(machine)
    forked = fork(machine, seat.id, ids[2], "at")
    snapshot = read_session(memory_leaves(machine.disk), forked.path)
    labels = {node.id: node.label for node in tree_of(snapshot).nodes if node.label}
    assert labels == {ids[1]: "good"}
    assert snapshot.summary.name == "Trip"
    assert_sound(machine, forked.path)


def test_label_whose_target_is_not_on_the_path_stays_behind(machine):
    seat, ids = branched(machine)
    forked = fork(machine, seat.id, ids[0], "at")
    assert [entry["type"] for entry in entries_in(machine, forked.path)] == [
        "message",
        "session_info",
    ]


def test_label_that_was_cleared_later_is_cleared_in_the_fork(machine):
    seat, ids = branched(machine)
    last = seat.leaf
    seat.append(LabelEntry(target_id=EntryId(ids[1])))
    forked = fork(machine, seat.id, last, "at")
    snapshot = read_session(memory_leaves(machine.disk), forked.path)
    assert [node for node in tree_of(snapshot).nodes if node.label] == []


def test_fork_gets_the_name_that_it_is_given(machine):
    seat, _ = branched(machine)
    forked = fork(machine, seat.id, name="Other trip")
    rows = list_sessions(memory_leaves(machine.disk), "/work")
    names = {row.id: row.name for row in rows}
    assert names == {seat.id: "Trip", forked.session_id: "Other trip"}


def test_two_forks_of_one_session_are_two_sessions(machine):
    session_id, _ = closed_session(machine, "one", "two")
    first, second = fork(machine, session_id), fork(machine, session_id)
    assert first.session_id != second.session_id
    assert first.path != second.path
    assert len(list_sessions(memory_leaves(machine.disk), "/work")) == 3


def test_fork_and_original_go_their_own_ways(machine):
    seat, _ = branched(machine)
    forked = fork(machine, seat.id)
    other = machine.seat(host="other")
    opened = other.open(ById(session_id=forked.session_id))
    assert opened.damage.count == 0
    other.append(answer("in the fork"))
    seat.append(answer("in the original"))
    assert "in the original" not in said_in(machine, forked.path)
    assert "in the fork" not in said_in(machine, seat.opened.path)
    for path in (forked.path, seat.opened.path):
        assert_sound(machine, path)


def test_session_that_another_process_has_open_can_be_forked(machine):
    seat = machine.seat(host="holder")
    path = seat.open(Fresh()).path
    seat.append(user("one"))
    assert isinstance(fork(machine, seat.id), SessionForked)
    assert said_in(machine, path) == ["one"]


def test_entry_of_another_session_is_no_place_to_fork_at(machine):
    one, _ = branched(machine)
    session_id, path = closed_session(machine, "elsewhere")
    (stranger,) = [entry["id"] for entry in entries_in(machine, path)]
    files = machine.files()
    refused = fork(machine, one.id, stranger)
    assert refused == EntryNotFound(session_id=one.id, entry_id=stranger)
    assert stranger in refused.remedy
    assert machine.files() == files
    assert session_id != one.id


def test_missing_and_unreadable_sessions_cannot_be_forked(machine):
    assert isinstance(fork(machine, SessionId("nowhere")), SessionNotFound)
    machine.put_session("broken", b"nothing")
    assert isinstance(fork(machine, SessionId("broken")), SessionUnreadable)


def test_unknown_entries_and_fields_come_along_byte_for_byte(machine):
    lines = (
        b'{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}',
        b'{"type":"message","id":"a","parentId":null,"x":1.50,"message":{"role":"user",'
        b'"content":"hi","more":{"\\u00e4":[1e3]}}}',
        b'{"type":"never/seen", "id":"b" ,"parentId":"a","blob":"\xc3\xa4"}',
    )
    machine.put_session("s", *lines)
    forked = fork(machine, SessionId("s"))
    assert tuple(machine.lines(forked.path)[1:]) == lines[1:]


def faults_of(machine, work):
    """The number of disk calls that some work makes."""
    before = len(machine.disk.calls)
    work()
    return len(machine.disk.calls) - before


def at_call(number, fault):
    count = 0

    def before(call):
        nonlocal count
        count += 1
        return fault if count == number else None

    return before


@pytest.mark.parametrize("fault", [Fail(errno=5), Fail(errno=28), KillBefore(), KillAfter()])
def test_whatever_fails_at_whatever_call_a_fork_is_whole_or_not_there(fault):
    def prepared():
        machine = Machine()
        return machine, closed_session(machine, "one", "two", "three")

    machine, (session_id, path) = prepared()
    calls = faults_of(machine, lambda: fork(machine, session_id))
    assert calls > 8
    for number in range(1, calls + 1):
        machine, (session_id, path) = prepared()
        original = machine.content(path)
        machine.disk.before = at_call(number, fault)
        try:
            outcome = fork(machine, session_id)
        except ProcessKilled:
            outcome = None
        machine.disk.before = None
        if outcome is None:
            machine.disk.crash(LoseAll())
        found = [each for each in machine.files() if each.endswith(".jsonl")]
        assert machine.content(path) == original
        for other in set(found) - {path}:
            assert said_in(machine, other) == ["one", "two", "three"]
            assert_sound(machine, other)
        if isinstance(outcome, StorageFailed | SessionUnreadable | SessionNotFound):
            assert found == [path], f"call {number}: {outcome}"
        elif outcome is not None:
            assert outcome.path.startswith(SESSIONS)
            machine.disk.crash(LoseAll())
            assert said_in(machine, outcome.path) == ["one", "two", "three"]
