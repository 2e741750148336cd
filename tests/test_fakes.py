"""The simulated processes, faults, clock and randomness: as unkind as real ones, and repeatable."""

import asyncio
import errno
from collections.abc import Callable

import pytest

from tenure.runtime.doors.files import File
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.entropy import SeededEntropy
from tenure.runtime.testing.faults import (
    DISK_FULL,
    READ_ONLY,
    DiskCall,
    Fail,
    Fault,
    FaultRule,
    FaultRules,
    KillAfter,
    KillBefore,
    KillDuring,
    LoseAll,
    ProcessKilled,
    WriteShort,
)
from tenure.runtime.testing.leaves import memory_leaves


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.put_folder("/work")
    return disk


@pytest.fixture
def leaves(disk: MemoryDisk) -> Leaves:
    return memory_leaves(disk)


def created(leaves: Leaves, path: str, data: bytes = b"") -> File:
    file = leaves.files.open(path, "create")
    if data:
        file.append(data)
    return file


def durable_file(disk: MemoryDisk, leaves: Leaves, path: str, data: bytes) -> File:
    disk.put(path, data)
    return leaves.files.open(path, "write")


def errno_of(call: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the caller compares the number
        call()
    return raised.value.errno


# --- killed processes -----------------------------------------------------------------------------


def test_a_killed_process_leaves_what_it_wrote_and_does_nothing_more(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = created(leaves, "/work/a", b"written")
    disk.processes.kill(leaves.processes.me())
    assert disk.content("/work/a") == b"written"
    for call in (lambda: file.append(b"more"), file.close, lambda: leaves.files.list("/work")):
        with pytest.raises(ProcessKilled):
            call()
    assert disk.content("/work/a") == b"written"


@pytest.mark.parametrize(
    ("fault", "content"),
    [
        (KillBefore(), b"one,"),
        (KillDuring(bytes_written=2), b"one,tw"),
        (KillDuring(bytes_written=99), b"one,two"),
        (KillAfter(), b"one,two"),
    ],
    ids=str,
)
def test_a_process_can_die_before_in_and_after_an_append(
    disk: MemoryDisk, leaves: Leaves, fault: Fault, content: bytes
) -> None:
    file = created(leaves, "/work/a", b"one,")
    disk.before = FaultRules(FaultRule(fault=fault, calls=("append",)))
    with pytest.raises(ProcessKilled) as killed:
        file.append(b"two")
    assert killed.value.process == leaves.processes.me()
    assert not isinstance(killed.value, Exception)
    assert disk.content("/work/a") == content


def test_a_killed_process_frees_its_lock_and_a_stopped_one_keeps_it(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    other = memory_leaves(disk)
    assert leaves.locks.try_lock("/work/a.lock") is not None
    disk.processes.stop(leaves.processes.me())
    assert other.locks.try_lock("/work/a.lock") is None
    assert other.processes.alive(leaves.processes.me())
    disk.processes.resume(leaves.processes.me())
    disk.processes.kill(leaves.processes.me())
    assert not other.processes.alive(leaves.processes.me())
    assert other.locks.try_lock("/work/a.lock") is not None


def test_a_process_that_dies_as_it_takes_a_lock_does_not_hold_it(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    disk.before = FaultRules(FaultRule(fault=KillAfter(), calls=("lock",)))
    with pytest.raises(ProcessKilled):
        leaves.locks.try_lock("/work/a.lock")
    assert memory_leaves(disk).locks.try_lock("/work/a.lock") is not None


def test_a_dead_process_is_not_kept_alive_by_code_that_handles_errors(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    async def scenario() -> None:
        disk.before = FaultRules(FaultRule(fault=KillBefore(), calls=("list",)))
        with pytest.raises(ProcessKilled):
            await leaves.workers.run(leaves.files.list, "/work")

    asyncio.run(scenario())


# --- faults and the journal -----------------------------------------------------------------------


def test_the_journal_tells_who_called_what_in_which_order(disk: MemoryDisk, leaves: Leaves) -> None:
    other = memory_leaves(disk)
    file = created(leaves, "/work/a.tmp", b"12345")
    file.datasync()
    leaves.files.rename("/work/a.tmp", "/work/a")
    other.files.sync_folder("/work")
    me, another = leaves.processes.me(), other.processes.me()
    assert list(disk.calls) == [
        DiskCall(process=me, name="create", path="/work/a.tmp"),
        DiskCall(process=me, name="append", path="/work/a.tmp", size=5),
        DiskCall(process=me, name="datasync", path="/work/a.tmp"),
        DiskCall(process=me, name="rename", path="/work/a.tmp", target="/work/a"),
        DiskCall(process=another, name="sync_folder", path="/work"),
    ]


def test_a_failed_call_does_nothing_and_the_next_one_works(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = created(leaves, "/work/a")
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EIO), calls=("append", "rename"), nth=2)
    )
    file.append(b"one,")
    assert errno_of(lambda: leaves.files.rename("/work/a", "/work/b")) == errno.EIO
    file.append(b"two")
    assert disk.content("/work/a") == b"one,two"


def test_a_short_append_says_how_much_was_written(disk: MemoryDisk, leaves: Leaves) -> None:
    file = created(leaves, "/work/a")
    disk.before = FaultRules(FaultRule(fault=WriteShort(bytes_written=2), calls=("append",)))
    assert file.append(b"12345") == 2
    assert file.append(b"345") == 3
    assert disk.content("/work/a") == b"12345"


def test_a_rule_hits_its_path_its_process_and_its_count_only(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    other = memory_leaves(disk)
    rule = FaultRule(
        fault=Fail(errno=errno.EIO),
        calls=("stat",),
        path_ends=".x",
        pid=other.processes.me().pid,
        nth=2,
    )
    disk.put("/work/a.x", b"")
    disk.before = FaultRules(rule)
    for _ in range(3):
        leaves.files.stat("/work/a.x")
        other.files.stat("/work")
    other.files.stat("/work/a.x")
    assert errno_of(lambda: other.files.stat("/work/a.x")) == errno.EIO
    other.files.stat("/work/a.x")


def test_a_read_only_disk_refuses_every_change_and_serves_reads(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"data")
    disk.before = FaultRules(READ_ONLY)
    files = leaves.files
    refused: list[Callable[[], object]] = [
        lambda: files.open("/work/b", "create"),
        lambda: file.append(b"x"),
        lambda: file.truncate(0),
        lambda: files.make_folder("/work/b"),
        lambda: files.rename("/work/a", "/work/b"),
        lambda: files.remove("/work/a"),
        lambda: leaves.locks.try_lock("/work/a.lock"),
    ]
    assert [errno_of(call) for call in refused] == [errno.EROFS] * len(refused)
    assert file.read_at(0, 10) == b"data"
    assert files.list("/work") == (("a", "file"),)


def test_a_full_disk_refuses_new_bytes_and_lets_old_ones_go(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"data")
    disk.before = FaultRules(DISK_FULL)
    assert errno_of(lambda: file.append(b"x")) == errno.ENOSPC
    assert errno_of(lambda: leaves.files.open("/work/b", "create")) == errno.ENOSPC
    file.truncate(0)
    leaves.files.remove("/work/a")


def test_a_fault_of_appends_on_another_call_is_a_mistake_of_the_test(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    disk.before = lambda call: WriteShort(bytes_written=1)
    with pytest.raises(ValueError, match="WriteShort is for appends, not for stat"):
        leaves.files.stat("/work")


def test_a_scheduler_is_asked_before_each_call_and_may_let_others_run_first(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    other = memory_leaves(disk)
    asked: list[str] = []

    def switch(call: DiskCall) -> None:
        asked.append(call.name)
        if call.name == "create" and call.process == leaves.processes.me():
            created(other, "/work/a", b"other")

    disk.on_call = switch
    assert errno_of(lambda: leaves.files.open("/work/a", "create")) == errno.EEXIST
    assert asked == ["create", "create", "append"]


def test_a_process_killed_while_others_run_does_not_make_its_call(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = created(leaves, "/work/a")
    disk.on_call = lambda call: disk.processes.kill(call.process)
    with pytest.raises(ProcessKilled):
        file.append(b"never")
    assert disk.content("/work/a") == b""
    assert [call.name for call in disk.calls] == ["create"]


# --- the world outside ----------------------------------------------------------------------------


def test_what_a_test_puts_on_the_disk_is_durable_and_not_in_the_journal(disk: MemoryDisk) -> None:
    disk.put("/work/x/y/a", b"first")
    disk.put("/work/x/y/a", b"again")
    disk.put_link("/work/link", "x/y/a")
    disk.crash(LoseAll())
    assert disk.paths() == ("/work/link", "/work/x/y/a")
    assert disk.content("/work/link") == b"again"
    assert list(disk.calls) == []


def test_files_bear_the_time_of_the_clock_which_stands_still(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = created(leaves, "/work/a", b"one")
    first = file.stat().mtime_ns
    file.append(b"two")
    assert file.stat().mtime_ns == first
    disk.clock.advance(1.5)
    file.append(b"three")
    assert file.stat().mtime_ns == first + 1_500_000_000
    assert first == 1_700_000_000_000 * 1_000_000


# --- clock and randomness -------------------------------------------------------------------------


def test_sleepers_wake_in_the_order_of_their_deadlines_when_time_has_passed_them() -> None:
    async def scenario() -> None:
        clock, woken = ManualClock(), list[str]()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [
            asyncio.create_task(sleeper(name, seconds))
            for name, seconds in (("late", 10), ("early", 1), ("also early", 1), ("now", 0))
        ]
        for _ in range(3):
            await asyncio.sleep(0)
        assert woken == ["now"]
        assert clock.next_wake_s() == 1
        clock.advance(0.5)
        await asyncio.sleep(0)
        assert woken == ["now"]
        assert clock.next_wake_s() == 0.5
        clock.advance(0.5)
        await asyncio.sleep(0)
        assert woken == ["now", "early", "also early"]
        clock.advance(100)
        await asyncio.gather(*tasks)
        assert woken == ["now", "early", "also early", "late"]
        assert clock.next_wake_s() is None

    asyncio.run(scenario())


def test_a_cancelled_sleeper_is_no_deadline() -> None:
    async def scenario() -> None:
        clock = ManualClock()
        task = asyncio.create_task(clock.sleep(5))
        await asyncio.sleep(0)
        assert clock.next_wake_s() == 5
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.next_wake_s() is None
        clock.advance(10)

    asyncio.run(scenario())


def test_the_wall_clock_can_jump_back_and_the_monotonic_one_cannot() -> None:
    clock = ManualClock(now_ms=5_000)
    clock.advance(1)
    assert (clock.now_ms(), clock.monotonic_s()) == (6_000, 1)
    clock.set_now_ms(100)
    assert (clock.now_ms(), clock.monotonic_s()) == (100, 1)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_a_seed_repeats_the_names_and_two_processes_get_different_ones() -> None:
    first, again, other = SeededEntropy(1), SeededEntropy(1), SeededEntropy(2)
    assert [first.fresh(), first.uuid()] == [again.fresh(), again.uuid()]
    assert first.fresh() != other.fresh()
    one, two = MemoryDisk(), MemoryDisk()
    names = [memory_leaves(one, seed=3).entropy.fresh() for _ in range(2)]
    assert names == [memory_leaves(two, seed=3).entropy.fresh() for _ in range(2)]
    assert len(set(names)) == 2
