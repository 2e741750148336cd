"""write and edit: all or nothing, what the user saw or nothing, and not one byte more."""

import errno
import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from tools_world import Bench

from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import (
    DISK_FULL,
    READ_ONLY,
    DiskCall,
    Fail,
    Fault,
    FaultRule,
    FaultRules,
    KeepAll,
    KillBefore,
    LoseAll,
    ProcessKilled,
    WriteShort,
)
from tenure.runtime.testing.leaves import memory_leaves


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def edit(old: str, new: str) -> dict[str, str]:
    return {"oldText": old, "newText": new}


# --- write ----------------------------------------------------------------------------------


def test_write_makes_a_file_with_its_folders(tmp_path: Path) -> None:
    said = Bench(tmp_path).ok("write", path="new/deep/ä.md", content="eins\nzwei\n")
    assert said == "wrote new/deep/ä.md: 2 lines, 10 bytes (a new file)"
    assert (tmp_path / "new/deep/ä.md").read_text() == "eins\nzwei\n"
    assert sorted(path.name for path in (tmp_path / "new/deep").iterdir()) == ["ä.md"]


def test_write_replaces_a_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("old\n")
    path.chmod(0o750)
    done = Bench(tmp_path).call("write", path="run.sh", content="new\n")
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert done.details == {"path": "run.sh", "created": False, "digest": digest(b"new\n")}


def test_write_refuses_a_folder_a_file_in_the_way_and_half_a_character(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("x")
    bench = Bench(tmp_path)
    assert "is a folder" in bench.error("write", path="sub", content="x")
    assert "names a folder" in bench.error("write", path="new/", content="x")
    assert "is a file, not a folder" in bench.error("write", path="a.md/b.md", content="x")
    assert "surrogate" in bench.error("write", path="b.md", content="\ud800")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "sub"]


def test_write_and_edit_refuse_a_read_only_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old\n")
    (tmp_path / "a.md").chmod(0o444)
    bench = Bench(tmp_path)
    assert "is read-only" in bench.error("write", path="a.md", content="new")
    assert "is read-only" in bench.error("edit", path="a.md", edits=[edit("old", "new")])
    assert (tmp_path / "a.md").read_text() == "old\n"


# --- what the preview showed (APPROVE-4) ----------------------------------------------------


def test_write_of_what_the_preview_showed_is_made(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old\n")
    bench = Bench(tmp_path)
    for path, content in (("a.md", "new\n"), ("new.md", "first\n")):
        preview = bench.shown("write", path=path, content=content).preview
        bench.ok("write", expects=preview.digest, path=path, content=content)
        assert (tmp_path / path).read_text() == content


@pytest.mark.parametrize("tool", ["write", "edit", "delete", "rename"])
@pytest.mark.witness("APPROVE-4")
def test_a_change_is_refused_where_the_file_changed_since_its_preview(
    tmp_path: Path, tool: str
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "write": {"content": "mine\n"},
        "edit": {"edits": [edit("old", "mine")]},
        "delete": {},
        "rename": {"newPath": "b.md"},
    }
    more = changes[tool]
    path = tmp_path / "a.md"
    path.write_text("old\n")
    bench = Bench(tmp_path)
    preview = bench.shown(tool, path="a.md", **more).preview
    assert preview.digest == digest(b"old\n")
    path.write_text("old, and somebody's work\n")
    said = bench.error(tool, expects=preview.digest, path="a.md", **more)
    assert "changed since the preview, nothing was written" in said
    assert path.read_text() == "old, and somebody's work\n"
    assert [found.name for found in tmp_path.iterdir()] == ["a.md"]


def test_write_is_refused_where_the_new_file_of_the_preview_exists_by_now(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    preview = bench.shown("write", path="a.md", content="mine\n").preview
    assert preview.digest == "absent"
    (tmp_path / "a.md").write_text("somebody's\n")
    said = bench.error("write", expects=preview.digest, path="a.md", content="mine\n")
    assert "changed since the preview" in said
    assert (tmp_path / "a.md").read_text() == "somebody's\n"


@pytest.mark.witness("APPROVE-4")
def test_write_is_refused_where_the_file_of_the_preview_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old\n")
    bench = Bench(tmp_path)
    preview = bench.shown("write", path="a.md", content="mine\n").preview
    (tmp_path / "a.md").unlink()
    said = bench.error("write", expects=preview.digest, path="a.md", content="mine\n")
    assert "changed since the preview" in said
    assert not (tmp_path / "a.md").exists()


def test_a_change_that_comes_while_the_tool_runs_is_not_overwritten() -> None:
    disk = MemoryDisk()
    disk.put("/work/a.md", b"old\n")

    def on_call(call: DiskCall) -> None:
        if call.name == "sync" and ".tenure-stage-" in call.path:
            disk.clock.advance(1)
            disk.put("/work/a.md", b"somebody's\n")

    disk.on_call = on_call
    bench = Bench("/work", memory_leaves(disk))
    assert "changed while the tool ran" in bench.error("write", path="a.md", content="mine\n")
    assert disk.content("/work/a.md") == b"somebody's\n"
    assert disk.paths() == ("/work/a.md",)


# --- the disk -------------------------------------------------------------------------------


def world(*faults: FaultRule) -> tuple[MemoryDisk, Bench]:
    disk = MemoryDisk()
    disk.put("/work/a.md", b"old\n")
    disk.before = FaultRules(*faults)
    return disk, Bench("/work", memory_leaves(disk))


@pytest.mark.parametrize("path", ["a.md", "new/deep/b.md"])
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (DISK_FULL, "No space left on device"),
        (READ_ONLY, "Read-only file system"),
        (FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",)), "No space left"),
        (FaultRule(fault=Fail(errno=errno.EIO), calls=("sync",)), "Input/output error"),
        (FaultRule(fault=Fail(errno=errno.EACCES), calls=("rename",)), "Permission denied"),
    ],
)
def test_a_disk_that_refuses_leaves_the_file_as_it_was_and_nothing_beside_it(
    fault: FaultRule, reason: str, path: str
) -> None:
    disk, bench = world(fault)
    said = bench.error("write", path=path, content="mine\n")
    assert reason in said
    assert "nothing was changed" in said
    assert disk.content("/work/a.md") == b"old\n"
    assert disk.paths() == ("/work/a.md",)
    disk.before = None
    assert bench.ok("ls", depth=9) == "a.md"


def test_no_space_in_the_middle_of_a_write_leaves_the_old_file() -> None:
    disk, bench = world(
        FaultRule(fault=WriteShort(bytes_written=2), calls=("append",)),
        FaultRule(fault=Fail(errno=errno.ENOSPC), calls=("append",), nth=2),
    )
    assert "No space left" in bench.error("write", path="a.md", content="longer than two\n")
    assert disk.content("/work/a.md") == b"old\n"
    assert disk.paths() == ("/work/a.md",)


def test_a_short_write_is_gone_on_with() -> None:
    disk, bench = world(FaultRule(fault=WriteShort(bytes_written=3), calls=("append",)))
    bench.ok("write", path="a.md", content="the whole\n")
    assert disk.content("/work/a.md") == b"the whole\n"


def test_a_folder_sync_that_fails_is_told_and_not_called_a_failure() -> None:
    disk, bench = world(
        FaultRule(fault=Fail(errno=errno.EIO), calls=("sync_folder",), hits="lasting")
    )
    assert "The disk did not confirm it" in bench.ok("write", path="a.md", content="new\n")
    assert disk.content("/work/a.md") == b"new\n"


@pytest.mark.parametrize("fate", [LoseAll(), KeepAll()])
@pytest.mark.parametrize("path", ["a.md", "new/b.md"])
def test_after_death_at_any_call_a_file_is_the_old_one_or_the_new_one(
    path: str, fate: LoseAll | KeepAll
) -> None:
    for nth in itertools.count(1):
        disk = MemoryDisk()
        disk.put("/work/a.md", b"old\n")
        bench = Bench("/work", memory_leaves(disk))
        calls = itertools.count(1)

        def before(
            call: DiskCall, nth: int = nth, calls: "itertools.count[int]" = calls
        ) -> Fault | None:
            return KillBefore() if next(calls) == nth else None

        disk.before = before
        try:
            bench.ok("write", path=path, content="mine\n")
            survived = True
        except ProcessKilled:
            survived = False
        disk.before = None
        disk.crash(fate)
        files = {name: disk.content(name) for name in disk.paths() if ".tenure-stage-" not in name}
        assert files.pop("/work/a.md") in ((b"old\n", b"mine\n") if path == "a.md" else (b"old\n",))
        assert set(files.values()) <= {b"mine\n"}
        assert "stage" not in Bench("/work", memory_leaves(disk)).ok("ls", depth=3)
        if survived:
            assert disk.content(f"/work/{path}") == b"mine\n"
            return


# --- edit -----------------------------------------------------------------------------------


def test_edit_replaces_exact_pieces_of_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one two\nthree\nfour\n")
    said = Bench(tmp_path).ok(
        "edit", path="a.md", edits=[edit("four", "4"), edit("one", "four"), edit("three\n", "")]
    )
    assert said == "edited a.md: 3 replacements"
    assert (tmp_path / "a.md").read_text() == "four two\n4\n"


def test_edit_says_which_text_is_not_there_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n  two three\n")
    bench = Bench(tmp_path)
    said = bench.error("edit", path="a.md", edits=[edit("one", "1"), edit("two  three", "x")])
    assert "oldText of edit 2 is not in a.md" in said
    assert "line 2 differs from it only in white space" in said
    assert (tmp_path / "a.md").read_text() == "one\n  two three\n"


def test_edit_says_which_text_is_not_unique_and_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x = 1\ny = 2\nx = 1\n")
    bench = Bench(tmp_path)
    said = bench.error("edit", path="a.md", edits=[edit("y", "z"), edit("x = 1", "x = 2")])
    assert "oldText of edit 2 is in a.md more than once, at lines 1, 3" in said
    assert (tmp_path / "a.md").read_text() == "x = 1\ny = 2\nx = 1\n"


def test_edit_counts_occurrences_that_overlap_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("aaa\n")
    assert "more than once" in Bench(tmp_path).error("edit", path="a.md", edits=[edit("aa", "b")])


def test_edit_refuses_overlaps_no_ops_and_empty_texts(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one two three\n")
    bench = Bench(tmp_path)
    overlap = [edit("one two", "x"), edit("two three", "y")]
    assert "edits 1 and 2 overlap" in bench.error("edit", path="a.md", edits=overlap)
    assert "change nothing" in bench.error("edit", path="a.md", edits=[edit("one", "one")])
    assert "is empty" in bench.error("edit", path="a.md", edits=[edit("", "x")])
    assert "wrong arguments" in bench.error("edit", path="a.md", edits=[])
    assert "wrong arguments" in bench.error("edit", path="a.md", edits=[{"oldText": "one"}])
    assert (tmp_path / "a.md").read_text() == "one two three\n"


def test_edit_keeps_crlf_whatever_line_ends_the_model_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes("\ufeffone\r\ntwo\r\nthree\r\n".encode())
    bench = Bench(tmp_path)
    bench.ok("edit", path="a.md", edits=[edit("one\ntwo\n", "1\n1b\n2\n")])
    assert path.read_bytes() == "\ufeff1\r\n1b\r\n2\r\nthree\r\n".encode()
    bench.ok("edit", path="a.md", edits=[edit("2\r\nthree", "2\r\n3")])
    assert path.read_bytes() == "\ufeff1\r\n1b\r\n2\r\n3\r\n".encode()


def test_edit_leaves_every_other_byte_of_mixed_line_ends_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"a\r\nb\nc\rd\r\n\r\nlast")
    Bench(tmp_path).ok("edit", path="a.md", edits=[edit("b\n", "B\nBB\n"), edit("last", "end")])
    assert path.read_bytes() == b"a\r\nB\r\nBB\r\nc\rd\r\n\r\nend"


def test_edit_keeps_the_newline_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwo\n")
    (tmp_path / "b.md").write_text("one\ntwo")
    bench = Bench(tmp_path)
    bench.ok("edit", path="a.md", edits=[edit("two\n", "three")])
    bench.ok("edit", path="b.md", edits=[edit("two", "three")])
    assert (tmp_path / "a.md").read_text() == "one\nthree\n"
    assert (tmp_path / "b.md").read_text() == "one\nthree"


def test_edit_refuses_binary_missing_and_huge_files(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0one")
    with open(tmp_path / "big.txt", "wb") as file:
        file.truncate(17_000_000)
    bench = Bench(tmp_path)
    assert "not UTF-8 text" in bench.error("edit", path="a.bin", edits=[edit("one", "1")])
    assert "does not exist" in bench.error("edit", path="b.md", edits=[edit("one", "1")])
    assert "too many to change" in bench.error("edit", path="big.txt", edits=[edit("o", "1")])
