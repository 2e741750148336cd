"""A bad disk: a refusal means no byte, doubt ends the writing, and no receipt is broken."""

import errno
import random

import pytest
from transcript_world import Machine, user

from tenure.messages.entries import CustomEntry
from tenure.messages.transcripts import (
    Again,
    ById,
    Fresh,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
)
from tenure.runtime.testing.faults import (
    DISK_FULL,
    Fail,
    FaultRule,
    FaultRules,
    KillAfter,
    KillBefore,
    KillDuring,
    LoseAll,
    ProcessKilled,
    SeededFate,
    WriteShort,
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


# --- the disk says no --------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 20, 200])
@pytest.mark.witness("SESSION-3")
def test_short_write_is_cut_back_and_the_next_append_stands_alone(machine, seat, kept):
    path = seat.opened.path
    before = machine.content(path)
    machine.disk.before = rule(WriteShort(bytes_written=kept), "append")
    assert isinstance(seat.append(user("two" * 90)), RecordsRefused)
    assert machine.content(path) == before
    machine.disk.before = None
    assert isinstance(seat.append(user("three")), RecordsAppended)
    assert reopened(machine, seat).texts() == ["user: one", "user: three"]


@pytest.mark.witness("SESSION-3")
def test_full_disk_refuses_and_the_session_goes_on_once_there_is_room(machine, seat):
    before = machine.content(seat.opened.path)
    machine.disk.before = FaultRules(DISK_FULL)
    outcome = seat.append(user("two"))
    assert isinstance(outcome, RecordsRefused)
    assert outcome.reason == "no space left on device"
    assert machine.content(seat.opened.path) == before
    assert seat.texts() == ["user: one"]
    machine.disk.before = None
    seat.append(user("three"))
    assert seat.texts() == ["user: one", "user: three"]


def test_cut_is_durable_before_the_refusal(machine, seat):
    machine.disk.before = rule(WriteShort(bytes_written=20), "append")
    machine.disk.calls.clear()
    seat.append(user("two"))
    names = [call.name for call in machine.disk.calls if call.path == seat.opened.path]
    assert names == ["stat", "append", "truncate", "datasync"]


@pytest.mark.witness("SESSION-3")
def test_failed_sync_is_uncertain_and_never_tried_again(machine, seat):
    machine.disk.before = rule(Fail(errno=errno.EIO), "datasync")
    machine.disk.calls.clear()
    assert isinstance(seat.append(user("two")), RecordsUncertain)
    names = [call.name for call in machine.disk.calls if call.path == seat.opened.path]
    assert names == ["stat", "append", "datasync"]
    assert seat.texts() == ["user: one"]


@pytest.mark.witness("SESSION-3")
def test_session_is_closed_for_writing_after_a_failed_sync(machine, seat):
    machine.disk.before = rule(Fail(errno=errno.EIO), "datasync")
    seat.append(user("two"))
    machine.disk.before = None
    size = len(machine.content(seat.opened.path))
    for outcome in (seat.append(user("three")), seat.append(user("four"))):
        assert isinstance(outcome, RecordsUncertain)
        assert outcome.reason == "input/output error"
    assert len(machine.content(seat.opened.path)) == size


@pytest.mark.parametrize("call", ["truncate", "datasync"])
def test_failed_cut_is_uncertain(machine, seat, call):
    machine.disk.before = FaultRules(
        FaultRule(fault=WriteShort(bytes_written=9), calls=("append",), path_ends=".jsonl"),
        FaultRule(fault=Fail(errno=errno.EIO), calls=(call,), path_ends=".jsonl"),
    )
    outcome = seat.append(user("two"))
    assert isinstance(outcome, RecordsUncertain)
    assert "cutting it off failed" in outcome.reason
    machine.disk.before = None
    assert isinstance(seat.append(user("three")), RecordsUncertain)


def test_doubtful_session_is_whole_again_once_it_is_opened_anew(machine, seat):
    machine.disk.before = rule(Fail(errno=errno.EIO), "datasync")
    seat.append(user("two"))
    machine.disk.before = None
    seat.close()
    opened = seat.open(ById(session_id=seat.id))
    assert opened.token.epoch == 2
    assert isinstance(seat.append(user("three")), RecordsAppended)
    assert seat.texts() == ["user: one", "user: two", "user: three"]


@pytest.mark.parametrize("way", ["same process", "next process"])
def test_what_was_shown_after_a_failed_sync_survives_a_power_loss(machine, seat, way):
    """Bytes behind a failed sync live in memory alone: they are written into a new file."""
    machine.disk.before = rule(Fail(errno=errno.EIO), "datasync")
    seat.append(user("two"))
    machine.disk.before = None
    if way == "same process":
        seat.open(Again(session_id=seat.id))
    else:
        seat = reopened(machine, seat)
    assert seat.texts() == ["user: one", "user: two"]
    seat.append(user("three"))
    machine.disk.crash(LoseAll())
    later = machine.seat()
    assert later.open(ById(session_id=seat.id)).damage.count == 0
    assert later.texts() == ["user: one", "user: two", "user: three"]
    assert not [path for path in machine.disk.paths() if path.endswith(".doubt")]


def test_what_was_shown_after_a_kill_survives_a_power_loss(machine, seat):
    """The killed writer's entry was in memory alone; who shows it makes it durable first."""
    machine.disk.before = rule(KillBefore(), "datasync")
    with pytest.raises(ProcessKilled):
        seat.append(user("two"))
    assert reopened(machine, seat).texts() == ["user: one", "user: two"]
    machine.disk.crash(LoseAll())
    later = machine.seat()
    later.open(ById(session_id=seat.id))
    assert later.texts() == ["user: one", "user: two"]


@pytest.mark.parametrize("call", ["create", "append"])
@pytest.mark.witness("SESSION-3")
def test_failed_creation_leaves_no_file_and_can_be_tried_again(machine, call):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    machine.disk.before = rule(Fail(errno=errno.ENOSPC), call)
    assert isinstance(seat.append(user("one")), RecordsRefused)
    assert path not in machine.disk.paths()
    machine.disk.before = None
    assert isinstance(seat.append(user("two")), RecordsAppended)
    assert reopened(machine, seat).texts() == ["user: two"]


def test_failed_creation_can_be_tried_again_by_a_seat_that_was_parked_meanwhile(machine):
    seat = machine.seat()
    first = seat.open(Fresh(name="Plans"))
    machine.disk.before = rule(Fail(errno=errno.ENOSPC), "append")
    assert isinstance(seat.append(user("one")), RecordsRefused)
    machine.disk.before = None
    seat.close()
    assert seat.open(Again(session_id=seat.id, epoch=1)) == first
    assert isinstance(seat.append(user("two")), RecordsAppended)
    assert reopened(machine, seat).texts() == ["user: two"]


def test_short_creation_leaves_no_file(machine):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    machine.disk.before = rule(WriteShort(bytes_written=30), "append")
    assert isinstance(seat.append(user("one")), RecordsRefused)
    assert path not in machine.disk.paths()


def test_failed_sync_of_a_new_file_is_uncertain(machine):
    seat = machine.seat()
    seat.open(Fresh())
    machine.disk.before = rule(Fail(errno=errno.EIO), "sync")
    assert isinstance(seat.append(user("one")), RecordsUncertain)
    machine.disk.before = None
    assert isinstance(seat.append(user("two")), RecordsUncertain)


def test_new_session_is_not_written_where_its_claim_cannot_be(machine):
    seat = machine.seat()
    path = seat.open(Fresh()).path
    machine.disk.before = rule(Fail(errno=errno.ENOSPC), "append", path_ends=".claim.tmp")
    outcome = seat.append(user("one"))
    assert isinstance(outcome, RecordsRefused)
    assert path not in machine.disk.paths()
    machine.disk.before = None
    assert isinstance(seat.append(user("two")), RecordsAppended)


def test_entry_that_json_cannot_hold_is_refused_and_nothing_is_written(machine, seat):
    before = machine.content(seat.opened.path)
    outcome = seat.append(user("two"), CustomEntry(custom_type="x", data={"bad": object()}))
    assert isinstance(outcome, RecordsRefused)
    assert machine.content(seat.opened.path) == before
    assert isinstance(seat.append(user("three")), RecordsAppended)


# --- lives on a bad disk ---


def test_every_crash_point_keeps_all_receipted_entries_and_no_half_one():
    """Kill the process, or the power, at every call of a life of three appends."""
    for point in range(1, 60):
        for fault in (KillBefore(), KillAfter()):
            machine = Machine()
            seat = machine.seat()
            seat.open(Fresh())
            all_calls = ("append", "create", "sync", "datasync", "sync_folder", "rename", "stat")
            machine.disk.before = rule(fault, *all_calls, path_ends="", nth=point)
            receipts = []
            try:
                for text in ("one", "two", "three"):
                    assert isinstance(seat.append(user(text)), RecordsAppended)
                    receipts.append(f"user: {text}")
            except ProcessKilled:
                pass
            machine.disk.before = None
            machine.disk.crash(SeededFate(random.Random(point)))
            later = machine.seat()
            if not receipts and not later.door._ground.layout.transcripts(later.leaves.files):
                continue
            outcome = later.try_open(ById(session_id=seat.id))
            if receipts:
                assert later.texts()[: len(receipts)] == receipts, outcome
                assert len(later.texts()) <= len(receipts) + 1


def _random_fault(chance):
    """A rule for `disk.before` that now and then lets a call fail, be cut, or kill.

    The note of a failed sync is spared: where both fail, nothing is promised.
    """

    def before(call):
        if chance.random() > 0.06 or call.path.endswith(".doubt"):
            return None
        if call.name == "append":
            kept = chance.randint(0, call.size)
            return chance.choice(
                [
                    Fail(errno=errno.ENOSPC),
                    WriteShort(bytes_written=kept),
                    KillDuring(bytes_written=kept),
                ]
            )
        if chance.random() < 0.2:
            return chance.choice([KillBefore(), KillAfter()])
        return Fail(errno=errno.EIO)

    return before


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.witness("SESSION-3")
def test_no_fault_loses_a_receipted_entry_or_leaves_a_refused_one(seed):
    """Lives of a session on a bad disk: calls fail, are cut, kill, and the power fails."""
    chance = random.Random(seed)
    machine = Machine()
    seat = machine.seat()
    seat.open(Fresh())
    seat.append(user("first"))
    receipted, refused, number = ["user: first"], set(), 0
    for _ in range(8):
        machine.disk.before = _random_fault(chance)
        try:
            for _ in range(chance.randint(1, 6)):
                number += 1
                texts = [f"{number}.{part}" for part in range(chance.randint(1, 3))]
                outcome = seat.append(*map(user, texts))
                if isinstance(outcome, RecordsAppended):
                    receipted += [f"user: {text}" for text in texts]
                elif isinstance(outcome, RecordsRefused):
                    refused |= {f"user: {text}" for text in texts}
                else:
                    break
            seat.close()
        except ProcessKilled:
            pass
        machine.disk.before = None
        if chance.random() < 0.4:
            machine.disk.crash(SeededFate(chance))
        else:
            machine.kill(seat)
        session_id, seat = seat.id, machine.seat()
        opened = seat.open(ById(session_id=session_id))
        assert (opened.damage.unreadable_lines, opened.damage.altered_records) == (0, 0)
        texts = seat.texts()
        assert [text for text in texts if text in receipted] == receipted
        assert not refused & set(texts)
        # What was uncertain may have survived: it was shown, so from now on it stays.
        receipted = texts


def test_append_that_is_cut_at_any_byte_by_a_kill_loses_only_itself(machine, seat):
    length = len(machine.lines(seat.opened.path)[-1])
    for kept in range(0, length, 7):
        machine = Machine()
        seat = machine.seat()
        seat.open(Fresh())
        seat.append(user("one"))
        machine.disk.before = rule(KillDuring(bytes_written=kept), "append")
        with pytest.raises(ProcessKilled):
            seat.append(user("two"))
        later = reopened(machine, seat)
        assert later.texts() == ["user: one"]
        later.append(user("three"))
        assert reopened(machine, later).texts() == ["user: one", "user: three"]
