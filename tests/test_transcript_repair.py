"""What an opening makes whole: torn tails, calls without a result, older dialects."""

import errno
import json
from contextlib import suppress
from random import Random

import pytest
from transcript_world import SESSIONS, Machine, answer, result, user

from tenure.messages.entries import Record
from tenure.messages.session import StorageFailed
from tenure.messages.transcripts import ById, Fresh
from tenure.runtime.doors.transcripts.codec import encode_header, encode_record
from tenure.runtime.testing.faults import (
    Fail,
    FaultRule,
    FaultRules,
    KeepAll,
    KillAfter,
    KillBefore,
    ProcessKilled,
    SeededFate,
)


@pytest.fixture
def machine():
    return Machine()


def written(machine, *bodies, host="host"):
    """A session with these entries whose host died; its seat."""
    seat = machine.seat(host)
    seat.open(Fresh())
    seat.append(*bodies)
    machine.kill(seat)
    return seat


def sealed(number, body, *, epoch=1, parent=None):
    record = Record(
        id=f"e{number}", parent_id=parent, timestamp_ms=0, seq=number, turn=0, key="", body=body
    )
    return encode_record(record, epoch)[:-1]


HEADER = encode_header("s1", 0, "/work")[:-1]

# --- the tail ----------------------------------------------------------------------------


@pytest.mark.witness("SESSION-7")
def test_torn_tail_is_kept_aside_and_cut_at_every_byte():
    """A record that was cut at byte k never fuses with the next one."""
    whole = HEADER + b"\n" + sealed(1, user("one")) + b"\n"
    last = sealed(2, user("cut é here"), parent="e1")
    for length in range(len(last) + 1):
        machine = Machine()
        path = machine.put_session("s1", whole + last[:length], end=b"")
        seat = machine.seat()
        opened = seat.open(ById(session_id="s1"))
        torn = 0 < length < len(last)
        assert opened.damage.torn_bytes == (length if torn else 0)
        assert opened.entries == (2 if length == len(last) else 1)
        if torn:
            assert machine.content(f"{path}.torn") == last[:length]
        else:
            assert f"{path}.torn" not in machine.disk.paths()
        seat.append(user("after"))
        machine.kill(seat)
        again = machine.seat()
        assert again.open(ById(session_id="s1")).damage.count == 0
        assert again.texts()[0] == "user: one"
        assert again.texts()[-1] == "user: after"
        assert len(again.texts()) == opened.entries + 1


def test_second_torn_tail_is_kept_behind_the_first(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{first")
    first = machine.seat("a")
    first.open(ById(session_id="s1"))
    machine.kill(first)
    machine.disk.put(path, machine.content(path) + b"{second")
    machine.seat("b").open(ById(session_id="s1"))
    assert machine.content(f"{path}.torn") == b"{first{second"


def test_torn_tail_is_durable_aside_before_it_is_cut(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{torn")
    seat = machine.seat()
    machine.disk.calls.clear()
    seat.open(ById(session_id="s1"))
    calls = [
        (call.name, call.path.removeprefix(path))
        for call in machine.disk.calls
        if call.path.startswith(path) or call.path == SESSIONS
    ]
    wanted = [
        ("create", ".torn"),
        ("append", ".torn"),
        ("sync", ".torn"),
        ("close", ".torn"),
        ("sync_folder", SESSIONS),
        ("truncate", ""),
        ("sync", ""),
    ]
    begin = calls.index(wanted[0])
    assert calls[begin : begin + len(wanted)] == wanted


def test_session_whose_tail_cannot_be_kept_is_not_opened_and_not_cut(machine):
    path = machine.put_session("s1", HEADER, end=b"\n{torn")
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",), path_ends=".torn")
    )
    refusal = machine.seat().refused(ById(session_id="s1"))
    assert isinstance(refusal, StorageFailed)
    assert machine.content(path).endswith(b"\n{torn")
    machine.disk.before = None
    assert machine.seat("b").open(ById(session_id="s1")).damage.torn_bytes == 5


def test_damage_in_the_middle_stays_in_the_file(machine):
    path = machine.put_session("s1", HEADER, sealed(1, user("one")), b"junk", end=b"\n")
    before = machine.content(path)
    seat = machine.seat()
    opened = seat.open(ById(session_id="s1"))
    assert opened.damage.unreadable_lines == 1
    seat.append(user("two"))
    assert machine.content(path).startswith(before)


# --- calls without a result --------------------------------------------------------------


@pytest.mark.witness("TURN-7")
def test_open_calls_get_one_result_each_when_the_session_is_opened(machine):
    seat = written(machine, user("go"), answer("", "c1", "c2", "c3"), result("c2"))
    other = machine.seat()
    opened = other.open(ById(session_id=seat.id))
    assert opened.settled == 2
    assert opened.seq == 5
    entries = [json.loads(line) for line in machine.lines(opened.path)[-2:]]
    assert [entry["message"]["toolCallId"] for entry in entries] == ["c1", "c3"]
    assert all(entry["message"]["isError"] for entry in entries)
    assert "side effects are unknown" in entries[0]["message"]["content"][0]["text"]
    assert entries[1]["parentId"] == entries[0]["id"]
    assert entries[1]["id"] == opened.leaf
    assert entries[1]["tenure"]["epoch"] == opened.token.epoch
    machine.kill(other)
    assert machine.seat("c").open(ById(session_id=seat.id)).settled == 0


def test_settled_results_bear_the_turn_of_their_call(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(answer("", "c1"), turn=4)
    machine.kill(seat)
    opened = machine.seat().open(ById(session_id=seat.id))
    assert opened.last_turn == 4
    assert json.loads(machine.lines(opened.path)[-1])["tenure"]["turn"] == 4


def test_call_on_another_branch_is_not_settled(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    root = seat.leaf
    seat.append(answer("", "c1"))
    aside = seat.records(user("instead"))[0]
    moved = Record(
        id=aside.id,
        parent_id=root,
        timestamp_ms=0,
        seq=aside.seq,
        turn=0,
        key="",
        body=aside.body,
    )
    seat.append_records((moved,), after=seat.leaf)
    machine.kill(seat)
    assert machine.seat().open(ById(session_id=seat.id)).settled == 0


def test_settling_an_open_session_answers_with_its_new_leaf(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(answer("", "c1"))
    before = seat.token
    outcome = seat.settle()
    assert (outcome.opened.settled, outcome.opened.token) == (1, before)
    assert seat.append(user("go on")).session_id == seat.id
    assert seat.settle().opened.settled == 0


def test_session_is_not_opened_where_its_calls_cannot_be_settled(machine):
    seat = written(machine, answer("", "c1"))
    machine.disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",), path_ends=".jsonl")
    )
    other = machine.seat()
    refusal = other.refused(ById(session_id=seat.id))
    assert isinstance(refusal, StorageFailed)
    assert refusal.reason == "no space left on device"
    machine.disk.before = None
    assert machine.seat("c").open(ById(session_id=seat.id)).settled == 1


# --- older dialects ----------------------------------------------------------------------


def test_older_dialect_is_replaced_and_its_bytes_are_kept_beside_it(machine):
    old = [
        b'{"type":"session","version":1,"id":"s1","projectId":"p"}',
        b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}',
        b'{"type":"plan_tracker","id":"b","parentId":"a","state":{"x":1}}',
        b"junk",
    ]
    path = machine.put_session("s1", *old, end=b"\n{torn")
    before = machine.content(path)
    seat = machine.seat()
    opened = seat.open(ById(session_id="s1"))
    assert machine.content(f"{path}.v1.bak") == before
    header, *rest = machine.lines(path)
    assert json.loads(header)["version"] == 3
    assert rest == old[1:]
    assert (opened.entries, opened.leaf) == (2, "b")
    seat.append(user("more"))
    machine.kill(seat)
    again = machine.seat()
    again.open(ById(session_id="s1"))
    assert again.texts() == ["user: hi", "user: more"]
    assert machine.content(f"{path}.v1.bak") == before


def test_older_backup_is_never_replaced(machine):
    path = machine.put_session("s1", b'{"type":"session","version":2,"id":"s1"}')
    machine.disk.put(f"{path}.v2.bak", b"mine")
    machine.seat().open(ById(session_id="s1"))
    assert machine.content(f"{path}.v2.bak") == b"mine"
    assert machine.content(f"{path}.v2.bak-2").startswith(b'{"type":"session","version":2')


# --- deaths while it is made whole ---


def _old(machine):
    header = b'{"type":"session","version":1,"id":"s1"}'
    entry = b'{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}'
    return machine.put_session("s1", header, entry, end=b"\n{torn")


def _torn(machine):
    return machine.put_session("s1", HEADER, sealed(1, user("hi")), end=b"\n{torn")


def _bare(machine):
    return machine.put_session("s1", HEADER, sealed(1, user("hi")), end=b"")


def _doubted(machine):
    path = _torn(machine)
    machine.disk.put("/work/.tenure/claims/sessions/s1.doubt", b"")
    return path


def _owing(machine):
    lines = sealed(1, user("hi")), sealed(2, answer("go", "c1"), parent="e1")
    return machine.put_session("s1", HEADER, *lines)


@pytest.mark.parametrize("put", [_old, _torn, _bare, _doubted, _owing])
@pytest.mark.parametrize("fault", [KillBefore(), KillAfter(), Fail(errno=errno.EIO)])
@pytest.mark.parametrize("power", ["stays", "fails"])
def test_opening_that_ends_at_any_call_loses_nothing(put, fault, power):
    """The process dies, or the disk refuses, at each call of an opening; the next one works."""
    calls = ("create", "append", "truncate", "sync", "datasync", "rename", "sync_folder", "remove")
    for point in range(1, 40):
        machine = Machine()
        path = put(machine)
        before = machine.content(path)
        machine.disk.before = FaultRules(FaultRule(fault=fault, calls=calls, nth=point))
        with suppress(ProcessKilled):
            machine.seat("first").try_open(ById(session_id="s1"))
        done = len([call for call in machine.disk.calls if call.name in calls]) < point
        machine.disk.before = None
        machine.disk.crash(SeededFate(Random(point)) if power == "fails" else KeepAll())
        seat = machine.seat("second")
        opened = seat.open(ById(session_id="s1"))
        assert (opened.damage.unreadable_lines, opened.damage.altered_records) == (0, 0)
        assert seat.texts()[0] == "user: hi"
        assert opened.entries == (3 if put is _owing else 1)
        kept = b"".join(machine.content(each) for each in machine.files() if each.startswith(path))
        assert before.rpartition(b"\n")[2].strip() in kept
        if done:
            break
    else:
        pytest.fail("the opening has more calls than were tried")
