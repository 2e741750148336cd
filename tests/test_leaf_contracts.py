"""What every handler of a leaf door must do, real or simulated: the same assertions on both."""

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves


@dataclass(frozen=True, kw_only=True)
class World:
    leaves: Leaves
    root: str
    """An empty folder."""
    link: Callable[[str, str], None]
    """Makes a symbolic link: its path, and where it leads to."""

    @property
    def files(self) -> Files:
        return self.leaves.files

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> str:
        file = self.files.open(self.path(name), "create")
        file.append(data)
        file.close()
        return self.path(name)

    def read(self, path: str) -> bytes:
        file = self.files.open(path, "read")
        data = file.read_at(0, 1_000_000)
        file.close()
        return data

    def errno_of(self, call: Callable[[], object]) -> int | None:
        with pytest.raises(OSError) as raised:  # noqa: PT011 - the caller compares the number
            call()
        return raised.value.errno


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "memory":
        disk = MemoryDisk()
        disk.put_folder("/work")
        yield World(leaves=memory_leaves(disk), root="/work", link=disk.put_link)
    else:
        leaves = system_leaves()
        yield World(
            leaves=leaves,
            root=os.path.realpath(tmp_path),
            link=lambda path, leads_to: os.symlink(leads_to, path),
        )
        asyncio.run(leaves.workers.close())


# --- open files -----------------------------------------------------------------------------


def test_append_goes_to_the_end_and_read_at_reads_from_an_offset(world: World) -> None:
    file = world.files.open(world.path("a"), "create")
    assert file.append(b"one,") == 4
    assert file.append(b"two") == 3
    assert file.read_at(0, 100) == b"one,two"
    assert file.read_at(4, 2) == b"tw"
    assert file.read_at(7, 10) == b""
    file.close()


def test_two_openings_of_a_file_see_each_other(world: World) -> None:
    path = world.write("a", b"one")
    writer, reader = world.files.open(path, "write"), world.files.open(path, "read")
    writer.append(b",two")
    assert reader.read_at(0, 100) == b"one,two"
    assert reader.stat().size == 7
    writer.close()
    reader.close()


def test_truncate_cuts_and_the_next_append_starts_there(world: World) -> None:
    file = world.files.open(world.path("a"), "create")
    file.append(b"whole,torn")
    file.truncate(6)
    file.append(b"next")
    file.datasync()
    file.sync()
    assert file.read_at(0, 100) == b"whole,next"
    file.close()


def test_a_file_open_for_reading_refuses_to_be_written(world: World) -> None:
    file = world.files.open(world.write("a", b"x"), "read")
    assert world.errno_of(lambda: file.append(b"y")) == errno.EBADF
    assert world.errno_of(lambda: file.truncate(0)) == errno.EINVAL
    file.close()


def test_a_closed_file_refuses_every_call_but_another_close(world: World) -> None:
    file = world.files.open(world.write("a", b"x"), "write")
    file.close()
    file.close()
    calls: list[Callable[[], object]] = [
        lambda: file.read_at(0, 1),
        lambda: file.append(b"y"),
        file.datasync,
        file.sync,
        file.stat,
    ]
    assert [world.errno_of(call) for call in calls] == [errno.EBADF] * len(calls)


def test_a_removed_file_stays_readable_where_it_is_open(world: World) -> None:
    path = world.write("a", b"still here")
    file = world.files.open(path, "read")
    world.files.remove(path)
    assert file.read_at(0, 100) == b"still here"
    assert file.stat().links == 0
    file.close()


# --- opening --------------------------------------------------------------------------------


def test_create_refuses_what_exists_and_a_link_that_leads_nowhere(world: World) -> None:
    path = world.write("a", b"mine")
    world.link(world.path("dangling"), "nowhere")
    assert world.errno_of(lambda: world.files.open(path, "create")) == errno.EEXIST
    assert (
        world.errno_of(lambda: world.files.open(world.path("dangling"), "create")) == errno.EEXIST
    )
    assert world.read(path) == b"mine"


def test_open_says_what_is_wrong_with_a_path(world: World) -> None:
    world.files.make_folder(world.path("folder"))
    file = world.write("file", b"")
    files = world.files
    assert world.errno_of(lambda: files.open(world.path("none"), "read")) == errno.ENOENT
    assert world.errno_of(lambda: files.open(world.path("none"), "write")) == errno.ENOENT
    assert world.errno_of(lambda: files.open(world.path("none/a"), "create")) == errno.ENOENT
    assert world.errno_of(lambda: files.open(f"{file}/a", "create")) == errno.ENOTDIR
    assert world.errno_of(lambda: files.open(world.path("folder"), "read")) == errno.EISDIR
    assert world.errno_of(lambda: files.open(world.path("folder"), "write")) == errno.EISDIR
    assert world.errno_of(lambda: files.open(world.path("n" * 256), "create")) == errno.ENAMETOOLONG


def test_open_follows_links_of_files_and_of_folders(world: World) -> None:
    world.files.make_folder(world.path("folder"))
    world.write("folder/a", b"there")
    world.link(world.path("short"), "folder")
    world.link(world.path("shorter"), world.path("short/a"))
    assert world.read(world.path("short/a")) == b"there"
    assert world.read(world.path("shorter")) == b"there"
    assert world.read(world.path("folder/../shorter")) == b"there"


def test_links_in_a_circle_are_refused(world: World) -> None:
    world.link(world.path("a"), "b")
    world.link(world.path("b"), "a")
    assert world.errno_of(lambda: world.files.stat(world.path("a"))) == errno.ELOOP
    assert world.errno_of(lambda: world.files.open(world.path("a/x"), "read")) == errno.ELOOP


def test_permissions_of_a_new_file_are_as_asked(world: World) -> None:
    world.files.open(world.path("secret"), "create", permissions=0o600).close()
    assert world.files.stat(world.path("secret")).mode == 0o600


# --- names ----------------------------------------------------------------------------------


def test_stat_follows_a_link_and_lstat_does_not(world: World) -> None:
    path = world.write("a", b"12345")
    world.link(world.path("link"), "a")
    world.link(world.path("dangling"), "nowhere")
    assert world.files.stat(world.path("link")) == world.files.stat(path)
    assert world.files.stat(path).kind == "file"
    assert world.files.stat(path).size == 5
    assert world.files.lstat(world.path("link")).kind == "link"
    assert world.files.stat(world.root).kind == "folder"
    assert world.errno_of(lambda: world.files.stat(world.path("dangling"))) == errno.ENOENT
    assert world.errno_of(lambda: world.files.lstat(world.path("none"))) == errno.ENOENT


def test_list_gives_names_in_order_with_their_kinds(world: World) -> None:
    file = world.write("b", b"")
    world.files.make_folder(world.path("c"))
    world.link(world.path("a"), "c")
    assert world.files.list(world.root) == (("a", "link"), ("b", "file"), ("c", "folder"))
    assert world.errno_of(lambda: world.files.list(file)) == errno.ENOTDIR
    assert world.errno_of(lambda: world.files.list(world.path("none"))) == errno.ENOENT


def test_make_folder_needs_a_parent_and_a_free_name(world: World) -> None:
    path = world.write("a", b"")
    assert world.errno_of(lambda: world.files.make_folder(path)) == errno.EEXIST
    assert world.errno_of(lambda: world.files.make_folder(world.path("x/y"))) == errno.ENOENT
    assert world.errno_of(lambda: world.files.make_folder(world.root)) == errno.EEXIST


def test_rename_replaces_a_file_and_leaves_its_old_readers_alone(world: World) -> None:
    old, new = world.write("old", b"old"), world.write("new", b"new")
    reader = world.files.open(old, "read")
    before = world.files.stat(old)
    renamed = world.files.stat(new)
    world.files.rename(new, old)
    assert world.read(old) == b"new"
    assert reader.read_at(0, 10) == b"old"
    assert world.files.stat(old).inode == renamed.inode != before.inode
    assert world.errno_of(lambda: world.files.stat(new)) == errno.ENOENT
    reader.close()


def test_rename_moves_a_folder_with_what_is_in_it(world: World) -> None:
    world.files.make_folder(world.path("a"))
    world.files.make_folder(world.path("b"))
    world.write("a/file", b"inside")
    world.files.rename(world.path("a"), world.path("b"))
    assert world.read(world.path("b/file")) == b"inside"
    assert world.files.list(world.root) == (("b", "folder"),)


def test_rename_refuses_what_it_cannot_replace(world: World) -> None:
    files = world.files
    file = world.write("file", b"")
    for name in ("empty", "full"):
        files.make_folder(world.path(name))
    world.write("full/file", b"")
    assert world.errno_of(lambda: files.rename(file, world.path("empty"))) == errno.EISDIR
    assert world.errno_of(lambda: files.rename(world.path("empty"), file)) == errno.ENOTDIR
    assert (
        world.errno_of(lambda: files.rename(world.path("empty"), world.path("full")))
        == errno.ENOTEMPTY
    )
    assert (
        world.errno_of(lambda: files.rename(world.path("full"), world.path("full/in")))
        == errno.EINVAL
    )
    assert world.errno_of(lambda: files.rename(world.path("none"), file)) == errno.ENOENT
    files.rename(file, file)
    assert files.stat(file).kind == "file"


def test_remove_takes_files_and_links_and_remove_folder_empty_folders(world: World) -> None:
    files = world.files
    path = world.write("a", b"kept")
    files.make_folder(world.path("folder"))
    world.write("folder/b", b"")
    world.link(world.path("link"), "a")
    files.remove(world.path("link"))
    assert world.read(path) == b"kept"
    assert world.errno_of(lambda: files.remove(world.path("link"))) == errno.ENOENT
    assert world.errno_of(lambda: files.remove(world.path("folder"))) == errno.EISDIR
    assert world.errno_of(lambda: files.remove_folder(world.path("folder"))) == errno.ENOTEMPTY
    assert world.errno_of(lambda: files.remove_folder(path)) == errno.ENOTDIR
    files.remove(world.path("folder/b"))
    files.remove_folder(world.path("folder"))
    assert files.list(world.root) == (("a", "file"),)


def test_sync_folder_takes_folders_only(world: World) -> None:
    path = world.write("a", b"")
    world.files.sync_folder(world.root)
    assert world.errno_of(lambda: world.files.sync_folder(path)) == errno.ENOTDIR
    assert world.errno_of(lambda: world.files.sync_folder(world.path("none"))) == errno.ENOENT


def test_real_path_follows_every_link_and_keeps_what_does_not_exist(world: World) -> None:
    world.files.make_folder(world.path("folder"))
    world.write("folder/a", b"")
    world.link(world.path("short"), "folder")
    world.link(world.path("file"), world.path("short/a"))
    world.link(world.path("dangling"), "short/none")
    real = world.files.real_path
    assert real(world.path("file")) == world.path("folder/a")
    assert real(world.path("short/x/../y/z")) == world.path("folder/y/z")
    assert real(world.path("dangling")) == world.path("folder/none")
    assert real("/") == "/"


# --- locks ----------------------------------------------------------------------------------


def test_a_lock_excludes_a_second_take_in_the_same_process_until_released(world: World) -> None:
    locks = world.leaves.locks
    first = locks.try_lock(world.path("a.lock"))
    assert first is not None
    assert first.in_place()
    assert locks.try_lock(world.path("a.lock")) is None
    other = locks.try_lock(world.path("b.lock"))
    assert other is not None
    first.release()
    first.release()
    assert not first.in_place()
    again = locks.try_lock(world.path("a.lock"))
    assert again is not None
    first.release()
    assert again.in_place()
    assert locks.try_lock(world.path("a.lock")) is None
    again.release()
    other.release()
    assert world.files.stat(world.path("a.lock")).size == 0


def test_a_lock_whose_file_was_removed_or_replaced_is_not_in_place(world: World) -> None:
    path = world.path("a.lock")
    first = world.leaves.locks.try_lock(path)
    assert first is not None
    world.files.remove(path)
    assert not first.in_place()
    second = world.leaves.locks.try_lock(path)
    assert second is not None
    assert not first.in_place()
    first.release()
    assert second.in_place()
    assert world.leaves.locks.try_lock(path) is None
    second.release()


def test_a_lock_is_of_the_file_and_not_of_the_path(world: World) -> None:
    world.link(world.path("alias.lock"), "a.lock")
    held = world.leaves.locks.try_lock(world.path("alias.lock"))
    assert held is not None
    assert world.leaves.locks.try_lock(world.path("a.lock")) is None
    held.release()


def test_a_lock_needs_its_folder(world: World) -> None:
    assert (
        world.errno_of(lambda: world.leaves.locks.try_lock(world.path("none/a.lock")))
        == errno.ENOENT
    )


# --- processes, entropy, clock ----------------------------------------------------------------


def test_a_process_is_told_from_another_with_its_pid_by_its_start(world: World) -> None:
    processes = world.leaves.processes
    me = processes.me()
    assert processes.me() == me
    assert processes.alive(me)
    assert not processes.alive(ProcessName(pid=me.pid, started=me.started + "0"))


def test_entropy_gives_names_in_their_forms_and_never_twice(world: World) -> None:
    entropy = world.leaves.entropy
    names = {entropy.fresh() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) == 16 and set(name) <= set("0123456789abcdef") for name in names)
    uuids = {entropy.uuid() for _ in range(100)}
    assert len(uuids) == 100
    assert all(len(uuid) == 36 and uuid[14] == "4" for uuid in uuids)


def test_the_monotonic_clock_never_goes_back(world: World) -> None:
    clock = world.leaves.clock
    times = [clock.monotonic_s() for _ in range(100)]
    assert times == sorted(times)
    assert clock.now_ms() > 1_600_000_000_000
    asyncio.run(clock.sleep(0))


# --- workers --------------------------------------------------------------------------------


def test_workers_give_back_the_result_and_the_exception(world: World) -> None:
    async def scenario() -> None:
        run = world.leaves.workers.run
        assert await run(lambda: 42) == 42
        assert await run(int, "ff", base=16) == 255
        with pytest.raises(ZeroDivisionError):
            await run(lambda: 1 // 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await run(next, iter(()))

    asyncio.run(scenario())


def test_a_cancelled_caller_does_not_cancel_the_work(world: World) -> None:
    done: list[str] = []

    async def scenario() -> None:
        async def caller() -> None:
            await world.leaves.workers.run(done.append, "work")
            done.append("caller")

        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.leaves.workers.close()

    asyncio.run(scenario())
    assert done == ["work"]


def test_the_exception_of_abandoned_work_is_logged(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(world.leaves.workers.run(lambda: 1 // 0))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.leaves.workers.close()

    asyncio.run(scenario())
    assert [record.name for record in caplog.records] == ["tenure.workers"]
    assert "ZeroDivisionError" in caplog.text


def test_closed_workers_take_no_work(world: World) -> None:
    async def scenario() -> None:
        await world.leaves.workers.run(int)
        await world.leaves.workers.close()
        await world.leaves.workers.close()
        with pytest.raises(RuntimeError):
            await world.leaves.workers.run(int)

    asyncio.run(scenario())
