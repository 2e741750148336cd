"""The simulated disk under power loss: what was not synced is kept, lost or torn."""

import errno
import random
from collections.abc import Callable

import pytest

from tenure.runtime.doors.files import File
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import (
    Fail,
    FaultRule,
    FaultRules,
    KeepAll,
    LoseAll,
    ProcessKilled,
    SeededFate,
)
from tenure.runtime.testing.leaves import memory_leaves


class Choices:
    """A fate that is written down: what is kept of each write and each change, in order asked."""

    def __init__(self, *, bytes_kept: tuple[int, ...] = (), kept: tuple[bool, ...] = ()) -> None:
        self._bytes = list(bytes_kept)
        self._kept = list(kept)

    def bytes_kept(self, size: int) -> int:
        return self._bytes.pop(0)

    def is_kept(self) -> bool:
        return self._kept.pop(0)


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


# --- power loss: data -----------------------------------------------------------------------------


@pytest.mark.parametrize("sync", ["sync", "datasync"])
def test_synced_data_survives_and_unsynced_data_may_not(
    disk: MemoryDisk, leaves: Leaves, sync: str
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"old,")
    file.append(b"synced,")
    getattr(file, sync)()
    file.append(b"unsynced")
    assert disk.content("/work/a") == b"old,synced,unsynced"
    disk.crash(LoseAll())
    assert disk.content("/work/a") == b"old,synced,"


def test_an_unsynced_write_may_be_kept_whole_or_torn(disk: MemoryDisk) -> None:
    for kept, content in ((8, b"unsynced"), (3, b"uns"), (0, b"")):
        file = durable_file(disk, memory_leaves(disk), "/work/a", b"")
        file.append(b"unsynced")
        disk.crash(Choices(bytes_kept=(kept,)))
        assert disk.content("/work/a") == content


def test_a_lost_write_before_a_kept_one_leaves_a_hole_of_zeros(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"one,")
    file.append(b"two,")
    file.append(b"three")
    disk.crash(Choices(bytes_kept=(0, 5)))
    assert disk.content("/work/a") == b"one,\0\0\0\0three"


def test_an_unsynced_truncation_may_be_undone(disk: MemoryDisk) -> None:
    for kept, content in ((True, b"whole"), (False, b"whole,torn")):
        file = durable_file(disk, memory_leaves(disk), "/work/a", b"whole,torn")
        file.truncate(5)
        disk.crash(Choices(kept=(kept,)))
        assert disk.content("/work/a") == content


def test_what_a_failed_sync_gave_up_no_later_sync_makes_durable(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"")
    disk.before = FaultRules(FaultRule(fault=Fail(errno=errno.EIO), calls=("datasync",)))
    file.append(b"given up,")
    assert errno_of(file.datasync) == errno.EIO
    file.append(b"synced")
    file.datasync()
    assert disk.content("/work/a") == b"given up,synced"
    disk.crash(LoseAll())
    assert disk.content("/work/a") == b"\0" * 9 + b"synced"


def test_what_a_failed_sync_gave_up_and_was_cut_away_does_not_come_back(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    file = durable_file(disk, leaves, "/work/a", b"one,")
    disk.before = FaultRules(FaultRule(fault=Fail(errno=errno.EIO), calls=("datasync",)))
    file.append(b"given up")
    assert errno_of(file.datasync) == errno.EIO
    file.truncate(4)
    file.append(b"two")
    file.datasync()
    disk.crash(KeepAll())
    assert disk.content("/work/a") == b"one,two"


# --- power loss: names ----------------------------------------------------------------------------


def test_a_file_whose_data_is_synced_and_whose_name_is_not_may_vanish(disk: MemoryDisk) -> None:
    for fate, paths in ((LoseAll(), ()), (KeepAll(), ("/work/a",))):
        created(memory_leaves(disk), "/work/a", b"data").sync()
        disk.crash(fate)
        assert disk.paths() == paths


def test_a_file_whose_name_is_synced_and_whose_data_is_not_may_be_empty(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    created(leaves, "/work/a", b"data")
    leaves.files.sync_folder("/work")
    disk.crash(LoseAll())
    assert disk.content("/work/a") == b""


def test_a_folder_whose_name_is_not_synced_takes_what_is_in_it_along(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    leaves.files.make_folder("/work/folder")
    created(leaves, "/work/folder/a", b"data").sync()
    leaves.files.sync_folder("/work/folder")
    disk.crash(LoseAll())
    assert disk.folder("/work").names == {}


def test_a_rename_is_not_durable_before_its_folder_is_synced(disk: MemoryDisk) -> None:
    for fate, content in ((LoseAll(), b"old"), (KeepAll(), b"new")):
        disk.put("/work/a", b"old")
        disk.put("/work/a.tmp", b"new")
        memory_leaves(disk).files.rename("/work/a.tmp", "/work/a")
        assert disk.content("/work/a") == b"new"
        disk.crash(fate)
        assert disk.content("/work/a") == content
    disk.put("/work/a", b"old")
    disk.put("/work/a.tmp", b"new")
    files = memory_leaves(disk).files
    files.rename("/work/a.tmp", "/work/a")
    files.sync_folder("/work")
    disk.crash(LoseAll())
    assert (disk.content("/work/a"), disk.paths()) == (b"new", ("/work/a",))


def test_a_rename_is_whole_or_not_at_all_whatever_a_power_loss_keeps() -> None:
    seen = set()
    for seed in range(60):
        disk = MemoryDisk()
        disk.put("/a", b"old")
        files = memory_leaves(disk).files
        file = files.open("/a.tmp", "create")
        file.append(b"new")
        file.sync()
        files.rename("/a.tmp", "/a")
        disk.crash(SeededFate(random.Random(seed)))
        seen.add((disk.content("/a"), disk.paths()))
    assert seen == {
        (b"old", ("/a",)),
        (b"old", ("/a", "/a.tmp")),
        (b"new", ("/a",)),
    }


def test_a_kept_change_of_a_name_keeps_the_earlier_ones_that_it_rests_on() -> None:
    """A real file system does not lose a file that was only renamed."""
    seen = set()
    for seed in range(60):
        disk = MemoryDisk()
        disk.put("/a", b"old")
        disk.put("/a.tmp", b"new")
        files = memory_leaves(disk).files
        files.rename("/a", "/a.bak")
        files.rename("/a.tmp", "/a")
        disk.crash(SeededFate(random.Random(seed)))
        seen.add(tuple((path, disk.content(path)) for path in disk.paths()))
    assert seen == {
        (("/a", b"old"), ("/a.tmp", b"new")),
        (("/a.bak", b"old"), ("/a.tmp", b"new")),
        (("/a", b"new"), ("/a.bak", b"old")),
    }


def test_syncing_a_folder_makes_what_its_names_rest_on_elsewhere_durable_too() -> None:
    disk = MemoryDisk()
    disk.put("/from/a", b"data")
    disk.put_folder("/to")
    files = memory_leaves(disk).files
    files.rename("/from/a", "/from/b")
    files.rename("/from/b", "/to/a")
    files.sync_folder("/to")
    disk.crash(LoseAll())
    assert disk.paths() == ("/to/a",)


def test_a_removal_may_be_undone(disk: MemoryDisk, leaves: Leaves) -> None:
    disk.put("/work/a", b"data")
    leaves.files.remove("/work/a")
    assert disk.paths() == ()
    disk.crash(LoseAll())
    assert disk.content("/work/a") == b"data"
    assert memory_leaves(disk).files.stat("/work/a").links == 1


def test_the_same_seed_gives_the_same_power_loss() -> None:
    def after(seed: int) -> list[tuple[str, bytes]]:
        disk = MemoryDisk()
        files = memory_leaves(disk).files
        for name in "abcdef":
            file = files.open(f"/{name}", "create")
            for part in (b"one,", b"two,", b"three"):
                file.append(part)
        disk.crash(SeededFate(random.Random(seed)))
        return [(path, disk.content(path)) for path in disk.paths()]

    assert after(1) == after(1)
    assert len({str(after(seed)) for seed in range(20)}) > 10


def test_after_a_power_loss_every_process_is_dead_and_every_lock_free(
    disk: MemoryDisk, leaves: Leaves
) -> None:
    assert leaves.locks.try_lock("/work/a.lock") is not None
    leaves.files.sync_folder("/work")
    disk.crash(LoseAll())
    with pytest.raises(ProcessKilled):
        leaves.files.stat("/work")
    later = memory_leaves(disk)
    assert not later.processes.alive(leaves.processes.me())
    assert later.locks.try_lock("/work/a.lock") is not None
