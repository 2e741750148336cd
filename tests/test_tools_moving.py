"""rename and delete: nothing is overwritten, nothing is destroyed."""

import errno
from pathlib import Path

import pytest
from tools_world import Bench

from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall, Fail, FaultRule, FaultRules
from tenure.runtime.testing.leaves import memory_leaves


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("a\n")
    (tmp_path / "b.md").write_text("b\n")
    (tmp_path / "sub" / "c.md").write_text("c\n")
    return tmp_path


def test_rename_moves_a_file_into_folders_that_it_makes(root: Path) -> None:
    said = Bench(root).ok("rename", path="a.md", newPath="new/deep/z.md")
    assert said == "renamed a.md to new/deep/z.md"
    assert (root / "new/deep/z.md").read_text() == "a\n"
    assert not (root / "a.md").exists()


def test_rename_moves_a_folder(root: Path) -> None:
    Bench(root).ok("rename", path="sub", newPath="notes/old")
    assert (root / "notes/old/c.md").read_text() == "c\n"


def test_rename_refuses_a_path_that_is_taken(root: Path) -> None:
    bench = Bench(root)
    for path in ("b.md", "sub", "sub/c.md", "a.md"):
        assert "exists; nothing was renamed" in bench.error("rename", path="a.md", newPath=path)
    (root / "dangling").symlink_to("nowhere")
    assert "exists" in bench.error("rename", path="a.md", newPath="dangling")
    assert (root / "b.md").read_text() == "b\n"
    assert (root / "a.md").read_text() == "a\n"


def test_rename_does_not_overwrite_a_file_that_came_a_moment_before() -> None:
    disk = MemoryDisk()
    disk.put("/work/a.md", b"a\n")

    def on_call(call: DiskCall) -> None:
        if call.name == "create" and call.path.endswith("b.md"):
            disk.put("/work/b.md", b"somebody's\n")

    disk.on_call = on_call
    said = Bench("/work", memory_leaves(disk)).error("rename", path="a.md", newPath="b.md")
    assert "exists; nothing was renamed" in said
    assert disk.content("/work/b.md") == b"somebody's\n"
    assert disk.content("/work/a.md") == b"a\n"


def test_rename_refuses_the_root_a_missing_file_and_a_folder_into_itself(root: Path) -> None:
    bench = Bench(root)
    assert "the workspace root itself" in bench.error("rename", path=".", newPath="x")
    assert "the workspace root itself" in bench.error("rename", path="sub/..", newPath="x")
    assert "does not exist" in bench.error("rename", path="zzz", newPath="x")
    assert "into itself" in bench.error("rename", path="sub", newPath="sub/deeper/still")
    assert sorted(path.name for path in (root / "sub").iterdir()) == ["c.md"]


def test_a_rename_that_fails_leaves_no_empty_file_and_no_folder_behind() -> None:
    disk = MemoryDisk()
    disk.put("/work/a.md", b"a\n")
    disk.before = FaultRules(FaultRule(fault=Fail(errno=errno.EIO), calls=("rename",)))
    bench = Bench("/work", memory_leaves(disk))
    said = bench.error("rename", path="a.md", newPath="new/b.md")
    assert said == "the file system refused: Input/output error; nothing was changed"
    assert bench.ok("ls", depth=5) == "a.md"


def test_delete_moves_to_the_trash_and_says_where(root: Path) -> None:
    bench = Bench(root)
    done = bench.call("delete", path="sub/c.md")
    kept = done.details["kept"]
    assert kept.startswith(".tenure/trash/")
    assert kept.endswith("/sub/c.md")
    assert (root / kept).read_text() == "c\n"
    assert not (root / "sub/c.md").exists()


def test_delete_keeps_every_file_of_one_name(root: Path) -> None:
    bench = Bench(root)
    kept = [bench.call("delete", path="a.md").details["kept"]]
    (root / "a.md").write_text("second\n")
    kept.append(bench.call("delete", path="a.md").details["kept"])
    assert [(root / path).read_text() for path in kept] == ["a\n", "second\n"]


def test_delete_takes_an_empty_folder_and_refuses_a_full_one(root: Path) -> None:
    bench = Bench(root)
    assert "with something in it" in bench.error("delete", path="sub")
    bench.ok("delete", path="sub/c.md")
    bench.ok("delete", path="sub")
    assert not (root / "sub").exists()
    assert "the workspace root itself" in bench.error("delete", path=".")
    assert "does not exist" in bench.error("delete", path="zzz")


def test_delete_that_the_disk_refuses_leaves_the_file() -> None:
    disk = MemoryDisk()
    disk.put("/work/a.md", b"a\n")
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EXDEV), calls=("rename",), hits="lasting")
    )
    said = Bench("/work", memory_leaves(disk)).error("delete", path="a.md")
    assert "nothing was changed" in said
    assert disk.content("/work/a.md") == b"a\n"
