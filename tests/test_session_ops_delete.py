"""Deleting sessions: moved out of the list, never while somebody has them open, never lost."""

import random

import pytest
from ops_world import closed_session, ground_of, said_in
from transcript_world import ROOT, SESSIONS, Machine, user

from tenure.messages.session import SessionInUse, SessionNotFound, StorageFailed
from tenure.messages.session_ops import SessionDeleted
from tenure.messages.tokens import SessionId
from tenure.messages.transcripts import Fresh
from tenure.runtime.doors.transcripts import list_sessions
from tenure.runtime.doors.transcripts.discarding import discard, discard_all
from tenure.runtime.testing.faults import (
    Fail,
    KillAfter,
    KillBefore,
    LoseAll,
    ProcessKilled,
    SeededFate,
)
from tenure.runtime.testing.leaves import memory_leaves

TRASH = f"{ROOT}/.tenure/trash/sessions"


@pytest.fixture
def machine():
    return Machine()


def test_deleted_session_is_out_of_the_list_and_whole_in_the_trash(machine):
    session_id, path = closed_session(machine, "one", "two")
    before = machine.content(path)
    done = discard(ground_of(machine.disk), session_id)
    assert isinstance(done, SessionDeleted)
    assert list_sessions(memory_leaves(machine.disk), ROOT) == ()
    assert done.kept_at.startswith(TRASH)
    machine.disk.crash(LoseAll())
    assert machine.content(done.kept_at) == before
    assert path not in machine.files()


def test_what_lies_beside_the_transcript_goes_with_it_and_nothing_else_does(machine):
    session_id, path = closed_session(machine, "one")
    _, other = closed_session(machine, "other")
    machine.disk.put(f"{path}.torn", b"torn")
    machine.disk.put(f"{other}.torn", b"of another")
    done = discard(ground_of(machine.disk), session_id)
    assert machine.content(f"{done.kept_at}.torn") == b"torn"
    assert machine.content(f"{other}.torn") == b"of another"
    assert said_in(machine, other) == ["other"]


def test_session_that_was_moved_back_and_deleted_again_is_kept_twice(machine):
    session_id, path = closed_session(machine, "one")
    first = discard(ground_of(machine.disk), session_id)
    machine.disk.put(path, machine.content(first.kept_at))
    second = discard(ground_of(machine.disk), session_id)
    assert first.kept_at != second.kept_at
    assert machine.content(first.kept_at) == machine.content(second.kept_at)


@pytest.mark.witness("CLAIM-1")
def test_session_that_another_process_has_open_is_not_deleted(machine):
    seat = machine.seat(host="holder")
    path = seat.open(Fresh()).path
    seat.append(user("one"))
    refused = discard(ground_of(machine.disk), seat.id)
    assert isinstance(refused, SessionInUse)
    assert refused.holder.host_id == "holder"
    assert said_in(machine, path) == ["one"]


def test_missing_session_is_told_and_a_corrupt_one_can_be_deleted(machine):
    assert isinstance(discard(ground_of(machine.disk), SessionId("nowhere")), SessionNotFound)
    path = machine.put_session("broken", b"nothing")
    done = discard(ground_of(machine.disk), SessionId("broken"))
    assert isinstance(done, SessionDeleted)
    assert path not in machine.files()


def test_clearing_moves_all_that_nobody_has_open_and_leaves_what_it_cannot_name(machine):
    ids = {closed_session(machine, f"session {number}")[0] for number in range(3)}
    seat = machine.seat(host="holder")
    seat.open(Fresh())
    seat.append(user("in use"))
    machine.disk.put(f"{SESSIONS}/notes.jsonl", b"no session\n")
    done = discard_all(ground_of(machine.disk))
    assert set(done.deleted) == ids
    assert done.in_use == (seat.id,)
    assert done.failed == ()
    left = [name for name in machine.files() if name.startswith(SESSIONS)]
    assert sorted(left) == sorted([seat.opened.path, f"{SESSIONS}/notes.jsonl"])


def test_deleting_twice_at_once_deletes_once(machine):
    session_id, _ = closed_session(machine, "one")
    outcomes = []

    def second(call):
        if call.name == "rename" and call.path.endswith(".jsonl") and not outcomes:
            outcomes.append(None)
            machine.disk.before = None
            outcomes[0] = discard(ground_of(machine.disk, "second"), session_id)

    machine.disk.before = second
    first = discard(ground_of(machine.disk, "first"), session_id)
    assert isinstance(first, SessionDeleted)
    assert isinstance(outcomes[0], SessionInUse)


def at_call(number, fault):
    count = 0

    def before(call):
        nonlocal count
        count += 1
        return fault if count == number else None

    return before


@pytest.mark.parametrize("fault", [Fail(errno=5), Fail(errno=30), KillBefore(), KillAfter()])
def test_whatever_fails_at_whatever_call_the_session_is_in_one_place_whole(fault):
    machine = Machine()
    session_id, path = closed_session(machine, "one", "two")
    calls = len(machine.disk.calls)
    discard(ground_of(machine.disk), session_id)
    calls = len(machine.disk.calls) - calls
    assert calls > 10
    for number in range(1, calls + 1):
        machine = Machine()
        session_id, path = closed_session(machine, "one", "two")
        machine.disk.put(f"{path}.torn", b"torn")
        content = machine.content(path)
        machine.disk.before = at_call(number, fault)
        try:
            outcome = discard(ground_of(machine.disk), session_id)
        except ProcessKilled:
            outcome = None
        machine.disk.before = None
        if outcome is None:
            machine.disk.crash(SeededFate(random.Random(number)))
        copies = [each for each in machine.files() if each.endswith(".jsonl")]
        assert [machine.content(each) for each in copies] == [content], f"call {number}"
        match outcome:
            case SessionDeleted():
                assert path not in copies
            case StorageFailed() | SessionNotFound() | SessionInUse():
                assert copies == [path], f"call {number}: {outcome}"
