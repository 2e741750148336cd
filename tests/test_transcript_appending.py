"""Appending: a receipt means durable, one chain, one file, and no half write for anybody."""

import asyncio
import dataclasses
import errno
import itertools
import json
import random

import pytest
from transcript_world import ROOT, Machine, Seat, answer, beside, run, user

from tenure.messages.entries import Record
from tenure.messages.tokens import SessionToken
from tenure.messages.transcripts import (
    AppendRecords,
    ById,
    Fresh,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    TranscriptChanged,
)
from tenure.runtime.testing.faults import (
    Fail,
    FaultRule,
    FaultRules,
    LoseAll,
)


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def seat(machine):
    """A seat with a session of one entry."""
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    return seat


def rule(fault, *calls, path_ends=".jsonl", nth=1):
    return FaultRules(FaultRule(fault=fault, calls=calls, path_ends=path_ends, nth=nth))


def reopened(machine, seat):
    """What another process finds after this one died."""
    machine.disk.before = None
    machine.kill(seat)
    other = machine.seat("later")
    other.open(ById(session_id=seat.id))
    return other


# --- durability --------------------------------------------------------------------------


@pytest.mark.witness("SESSION-3")
def test_append_is_one_write_and_one_sync_before_the_receipt(machine, seat):
    machine.disk.calls.clear()
    outcome = seat.append(user("two"), user("three"), user("four"))
    assert isinstance(outcome, RecordsAppended)
    path = seat.opened.path
    calls = [call.name for call in machine.disk.calls if call.path == path]
    assert calls == ["stat", "append", "datasync"]


def test_first_append_syncs_the_file_then_the_names_of_file_and_folders(machine):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    machine.disk.calls.clear()
    seat.append(user("one"))
    calls = [(call.name, call.path) for call in machine.disk.calls]
    sessions = f"{ROOT}/.tenure/sessions"
    order = [
        ("rename", f"{ROOT}/.tenure/claims/sessions/{seat.id}.claim.tmp"),
        ("make_folder", sessions),
        ("sync_folder", f"{ROOT}/.tenure"),
        ("create", path),
        ("append", path),
        ("sync", path),
        ("sync_folder", sessions),
    ]
    places = [max(at for at, call in enumerate(calls) if call == step) for step in order[:-1]]
    assert places == sorted(places)
    assert calls.index(order[-1], places[-1]) > places[-1]


@pytest.mark.witness("SESSION-3")
def test_what_was_receipted_survives_a_power_loss(machine):
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("one"))
    seat.append(user("two"))
    machine.disk.crash(LoseAll())
    later = machine.seat()
    later.open(ById(session_id=seat.id))
    assert later.texts() == ["user: one", "user: two"]


def test_flush_does_not_sync_appends(machine):
    seat = machine.seat(sync="flush")
    seat.open(Fresh())
    seat.append(user("one"))
    machine.disk.calls.clear()
    seat.append(user("two"))
    assert not [call for call in machine.disk.calls if call.name in ("datasync", "sync")]


# --- one chain ---------------------------------------------------------------------------


@pytest.mark.witness("SESSION-6")
def test_append_behind_another_entry_than_the_last_is_refused(machine, seat):
    stale = seat.leaf
    seat.append(user("two"))
    before = machine.content(seat.opened.path)
    late = seat.records(user("late"))
    assert isinstance(seat.append_records(late, after=stale), RecordsRefused)
    assert isinstance(seat.append_records(late, after=None), RecordsRefused)
    assert machine.content(seat.opened.path) == before


@pytest.mark.witness("SESSION-6")
def test_two_appends_at_once_make_one_chain(machine, seat):
    """The second starts before the first is on disk: it is refused, not forked."""
    first, second = seat.records(user("two")), seat.records(user("too"))

    async def both():
        return await asyncio.gather(
            *(
                seat.door.append(
                    AppendRecords(token=seat.token, after=seat.leaf, records=records),
                    seat.context,
                )
                for records in (first, second)
            )
        )

    outcomes = asyncio.run(both())
    assert [type(outcome) for outcome in outcomes] == [RecordsAppended, RecordsRefused]
    assert reopened(machine, seat).texts() == ["user: one", "user: two"]


@pytest.mark.witness("SESSION-6")
def test_every_entry_of_many_batches_is_on_the_path(machine, seat):
    chance = random.Random(3)
    for batch in range(30):
        seat.append(*(user(f"{batch}.{n}") for n in range(chance.randint(1, 4))))
    found = [json.loads(line) for line in machine.lines(seat.opened.path)[1:]]
    for before, after in itertools.pairwise(found):
        assert after["parentId"] == before["id"]
    assert [entry["tenure"]["seq"] for entry in found] == list(range(1, len(found) + 1))


def test_empty_batch_is_done_without_a_write(machine, seat):
    machine.disk.calls.clear()
    assert isinstance(seat.append_records((), after=seat.leaf), RecordsAppended)
    assert not machine.disk.calls


def test_rewound_append_hangs_on_its_target(machine, seat):
    root = seat.leaf
    seat.append(user("two"))
    turned = Record(
        id="turn", parent_id=root, timestamp_ms=0, seq=3, turn=0, key="", body=user("instead")
    )
    assert isinstance(seat.append_records((turned,), after=seat.leaf), RecordsAppended)
    assert seat.texts() == ["user: one", "user: instead"]
    assert reopened(machine, seat).texts() == ["user: one", "user: instead"]


# --- whose file it is --------------------------------------------------------------------


def test_append_of_another_seat_is_refused(machine, seat):
    other = beside(seat, "second")
    other.opened, other.leaf, other.seq = seat.opened, seat.leaf, seat.seq
    assert isinstance(other.append(user("two")), RecordsRefused)
    assert seat.texts() == ["user: one"]


def test_append_to_a_session_that_is_not_open_is_refused(machine, seat):
    token = SessionToken(session_id="nobody", epoch=1)
    effect = AppendRecords(token=token, after=None, records=seat.records(user("x")))
    outcome = run(seat.door.append(effect, seat.context))
    assert outcome == RecordsRefused(session_id="nobody", reason="it is not open in this seat")


def test_append_lands_in_its_own_session_whatever_else_the_seat_has_open(machine, seat):
    first = Seat(seat.door, seat.leaves, "main")
    first.opened, first.leaf, first.seq = seat.opened, seat.leaf, seat.seq
    seat.open(Fresh())
    seat.append(user("other"))
    assert isinstance(first.append(user("two")), RecordsAppended)
    assert first.texts() == ["user: one", "user: two"]
    assert seat.texts() == ["user: other"]


@pytest.mark.parametrize("change", ["deleted", "replaced", "grown", "shortened", "folder"])
@pytest.mark.witness("SESSION-3")
def test_file_that_changed_outside_is_told_and_not_written(machine, seat, change):
    path = seat.opened.path
    data = machine.content(path)
    other = machine.seat("other").leaves.files
    match change:
        case "deleted":
            other.remove(path)
        case "replaced":
            machine.disk.put(f"{path}.copy", data)
            other.rename(f"{path}.copy", path)
        case "grown":
            machine.disk.put(path, data + b'{"type":"custom","id":"x","parentId":null}\n')
        case "shortened":
            machine.disk.put(path, data[:-10])
        case "folder":
            other.remove(path)
            machine.disk.put_folder(path)
    before = {name: machine.content(name) for name in machine.files()}
    assert seat.append(user("two")) == TranscriptChanged(session_id=seat.id, path=path)
    assert {name: machine.content(name) for name in machine.files()} == before


@pytest.mark.witness("SESSION-5")
def test_session_whose_claim_was_taken_away_is_not_written(machine, seat):
    """Somebody removed the lock file: two could now believe to hold it."""
    claim = f"{ROOT}/.tenure/claims/sessions/{seat.id}.lock"
    machine.seat("other").leaves.files.remove(claim)
    before = machine.content(seat.opened.path)
    assert isinstance(seat.append(user("two")), TranscriptChanged)
    assert machine.content(seat.opened.path) == before


def test_settling_tells_what_the_disk_said(machine, seat):
    seat.append(answer("", "c1"))
    machine.disk.before = rule(Fail(errno=errno.ENOSPC), "append")
    assert isinstance(seat.settle(), RecordsRefused)
    machine.disk.before = rule(Fail(errno=errno.EIO), "datasync")
    assert isinstance(seat.settle(), RecordsUncertain)


# --- cancelled callers -------------------------------------------------------------------


class HeldWorkers:
    """Workers whose work ends when the test says so; a cancelled caller loses only the result."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.begun = asyncio.Event()

    async def run(self, work, /, *args, **kwargs):
        loop = asyncio.get_running_loop()
        settled = loop.create_future()

        async def later():
            self.begun.set()
            await self.gate.wait()
            result = work(*args, **kwargs)
            if not settled.done():
                settled.set_result(result)

        self.task = loop.create_task(later())
        return await settled


def test_cancelled_append_is_awaited_and_taken_into_memory(machine, seat):
    """The caller goes away while the disk works: disk and memory still say the same."""
    before = machine.content(seat.opened.path)

    async def scenario():
        workers = HeldWorkers()
        door = seat.door
        door._leaves = dataclasses.replace(door._leaves, workers=workers)
        records = seat.records(user("two"))
        effect = AppendRecords(token=seat.token, after=seat.leaf, records=records)
        task = asyncio.ensure_future(door.append(effect, seat.context))
        await workers.begun.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        assert machine.content(seat.opened.path) == before
        workers.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert seat.texts() == ["user: one", "user: two"]
    assert reopened(machine, seat).texts() == ["user: one", "user: two"]
