"""Where a tool may go: inside the root, never into `.tenure/`, not to what is hidden."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tools_world import Bench

from tenure.runtime.doors.tools.tool import ToolRefused
from tenure.runtime.doors.tools.workspace import Workspace
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall
from tenure.runtime.testing.leaves import memory_leaves

SECRET = "the secret is outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a neighbour that no tool may reach."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("inside\n")
    (root / ".tenure").mkdir()
    (root / ".tenure" / "settings.toml").write_text("model = 'x'\n")
    (tmp_path / "secret.md").write_text(SECRET)
    (tmp_path / "workbench").mkdir()
    (tmp_path / "workbench" / "b.md").write_text(SECRET)
    return root


def everything(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, to see that nothing changed."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def every_tool(bench: Bench, path: str) -> list[str]:
    """What every tool says to one path; each must be an error."""
    return [
        bench.error("read", path=path),
        bench.error("ls", path=path),
        bench.error("search", query="e", path=path),
        bench.error("write", path=path, content="mine"),
        bench.error("edit", path=path, edits=[{"oldText": "e", "newText": "x"}]),
        bench.error("rename", path=path, newPath="new.md"),
        bench.error("rename", path="a.md", newPath=path),
        bench.error("delete", path=path),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "sub/../../secret.md",
        "./.././secret.md",
        "../workbench/b.md",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/environ",
        "//etc/passwd",
        "..",
        "../new.md",
        "new/../../new.md",
    ],
)
@pytest.mark.witness("TOOL-1")
def test_tools_refuse_every_spelling_of_a_path_out_of_the_root(root: Path, path: str) -> None:
    before = everything(root.parent)
    for said in every_tool(Bench(root), path):
        assert "is outside the workspace" in said
        assert SECRET not in said
    assert everything(root.parent) == before


@pytest.mark.witness("TOOL-1")
def test_tools_refuse_absolute_paths_beside_the_root(root: Path) -> None:
    before = everything(root.parent)
    for name in ("secret.md", "workbench/b.md", "new.md"):
        for said in every_tool(Bench(root), str(root.parent / name)):
            assert "is outside the workspace" in said
    assert everything(root.parent) == before


def test_tools_take_an_absolute_path_inside_the_root(root: Path) -> None:
    bench = Bench(root)
    assert "inside" in bench.ok("read", path=str(root / "a.md"))
    bench.ok("write", path=str(root / "sub" / "new.md"), content="new\n")
    assert (root / "sub" / "new.md").read_text() == "new\n"
    assert bench.ok("ls", path=str(root)) == bench.ok("ls", path=".")


@pytest.mark.parametrize("target", ["../secret.md", "../workbench", "..", "/etc"])
@pytest.mark.witness("TOOL-1")
def test_tools_do_not_follow_a_link_out_of_the_root(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    before = everything(root.parent)
    bench = Bench(root)
    for path in ("link", "link/b.md", "link/new.md", "link/new/deep.md"):
        said = [
            bench.error("read", path=path),
            bench.error("ls", path=path),
            bench.error("search", query="e", path=path),
            bench.error("write", path=path, content="mine"),
        ]
        assert all("is outside the workspace" in one for one in said), said
    assert "is outside" in bench.error("rename", path="a.md", newPath="link/a.md")
    assert SECRET not in bench.ok("search", query="secret")
    assert everything(root.parent) == before


@pytest.mark.witness("TOOL-1")
def test_write_does_not_follow_a_dangling_link_out_of_the_root(root: Path) -> None:
    (root / "link.md").symlink_to("../made-by-a-tool.md")
    assert "is outside" in Bench(root).error("write", path="link.md", content="mine")
    assert not (root.parent / "made-by-a-tool.md").exists()


def test_write_through_a_link_inside_the_root_keeps_the_link(root: Path) -> None:
    (root / "link.md").symlink_to("a.md")
    Bench(root).ok("write", path="link.md", content="by the link\n")
    assert (root / "link.md").is_symlink()
    assert (root / "a.md").read_text() == "by the link\n"


def test_rename_and_delete_move_the_link_and_not_what_it_leads_to(root: Path) -> None:
    (root / "link.md").symlink_to("../secret.md")
    bench = Bench(root)
    assert SECRET not in bench.shown("delete", path="link.md").preview.diff
    bench.ok("rename", path="link.md", newPath="sub/link.md")
    assert (root / "sub" / "link.md").is_symlink()
    bench.ok("delete", path="sub/link.md")
    assert not (root / "sub" / "link.md").is_symlink()
    assert (root.parent / "secret.md").read_text() == SECRET


@pytest.mark.parametrize(
    "path",
    [
        ".tenure",
        ".tenure/settings.toml",
        ".tenure/new.md",
        "sub/../.tenure/settings.toml",
        ".TENURE/settings.toml",
        ".Tenure/new.md",
        ".ten\u200bure/settings.toml",
        "\uff0etenure/settings.toml",
        ".tenure./settings.toml",
        ".tenure /settings.toml",
        "sub/.tenure/settings.toml",
    ],
)
@pytest.mark.witness("TOOL-1")
def test_tools_refuse_every_spelling_of_the_closed_folder(root: Path, path: str) -> None:
    before = everything(root)
    for said in every_tool(Bench(root), path):
        assert "closed to tools" in said
    assert everything(root) == before


@pytest.mark.parametrize("path", ["inner", "inner/settings.toml", "file.toml", "inner/new.md"])
@pytest.mark.witness("TOOL-1")
def test_tools_do_not_follow_a_link_into_the_closed_folder(root: Path, path: str) -> None:
    (root / "inner").symlink_to(".tenure")
    (root / "file.toml").symlink_to(".tenure/settings.toml")
    before = everything(root / ".tenure")
    bench = Bench(root)
    for said in (
        bench.error("read", path=path),
        bench.error("ls", path=path),
        bench.error("search", query="model", path=path),
        bench.error("write", path=path, content="mine"),
    ):
        assert "closed to tools" in said
    assert "[no line matches" in bench.ok("search", query="model")
    assert everything(root / ".tenure") == before


@pytest.mark.witness("TOOL-1")
def test_the_closed_folder_stays_closed_where_it_is_a_link_itself(root: Path) -> None:
    (root / ".tenure").rename(root / "state")
    (root / ".tenure").symlink_to("state")
    bench = Bench(root)
    assert "closed to tools" in bench.error("read", path="state/settings.toml")
    assert "closed to tools" in bench.error("read", path=".tenure/settings.toml")
    assert "state" not in bench.ok("ls", depth=3)
    assert "[no line matches" in bench.ok("search", query="model")


def test_a_root_that_lies_below_a_closed_folder_is_open_to_its_own_tools(tmp_path: Path) -> None:
    root = tmp_path / ".tenure" / "work"
    root.mkdir(parents=True)
    (root / "a.md").write_text("inside\n")
    assert "inside" in Bench(root).ok("read", path="a.md")


def test_ls_and_search_never_show_the_closed_folder(root: Path) -> None:
    bench = Bench(root)
    assert ".tenure" not in bench.ok("ls", depth=5)
    assert "[no line matches" in bench.ok("search", query="model")


def test_tools_refuse_a_path_that_is_empty_too_long_or_no_text(root: Path) -> None:
    bench = Bench(root)
    assert "is empty" in bench.error("read", path=" ")
    assert "is longer than" in bench.error("read", path="a/" * 4_000)
    assert "no file name has" in bench.error("read", path="a\0b")
    assert "no file name has" in bench.error("write", path="a\ud800b", content="x")
    assert "File name too long" in bench.error("write", path="n" * 300, content="x")


def swap_in(disk: MemoryDisk, trigger: Callable[[DiskCall], bool], act: Callable[[], None]) -> None:
    """Let somebody else act right before the first call that the trigger knows."""
    waiting = [act]

    def on_call(call: DiskCall) -> None:
        if waiting and trigger(call):
            waiting.pop()()

    disk.on_call = on_call


@pytest.mark.witness("TOOL-1")
def test_write_looks_again_at_its_folder_right_before_the_file_is_put_there() -> None:
    disk = MemoryDisk()
    disk.put("/work/sub/a.md", b"old\n")
    disk.put("/outside/a.md", b"not yours\n")
    other = memory_leaves(disk).files

    def swap() -> None:
        other.rename("/work/sub", "/work/moved")
        disk.put_link("/work/sub", "/outside")

    swap_in(disk, lambda call: call.name == "sync" and ".tenure-stage-" in call.path, swap)
    said = Bench("/work", memory_leaves(disk)).error("write", path="sub/a.md", content="mine\n")
    assert "moved while the tool ran" in said
    assert disk.content("/outside/a.md") == b"not yours\n"
    assert disk.content("/work/moved/a.md") == b"old\n"


def test_make_folders_looks_again_before_the_first_one() -> None:
    disk = MemoryDisk()
    disk.put("/work/sub/a.md", b"old\n")
    disk.put_folder("/outside")
    workspace = Workspace(memory_leaves(disk).files, "/work")
    place = workspace.target("sub/new/b.md")
    memory_leaves(disk).files.rename("/work/sub", "/work/moved")
    disk.put_link("/work/sub", "/outside")
    with pytest.raises(ToolRefused, match="moved while"):
        workspace.confirm(place)


# --- what is hidden ------------------------------------------------------------------------


@pytest.fixture
def hiding(root: Path) -> Path:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("token\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n!kept.log\n[\n!\n")
    (root / ".tenureignore").write_text("private/\n*.key\n!build/report.md\n")
    (root / "sub" / ".gitignore").write_text("only-here.md\n")
    for name in (
        "x.log",
        "kept.log",
        "build/out.md",
        "private/diary.md",
        "id.key",
        "sub/x.log",
        "sub/only-here.md",
        "only-here.md",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("token\n")
    return root


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".git/new",
        "x.log",
        "sub/x.log",
        "build",
        "build/out.md",
        "build/new/deep.md",
        "private/diary.md",
        "id.key",
        "sub/only-here.md",
    ],
)
def test_what_ignore_files_hide_is_hidden_from_every_tool(hiding: Path, path: str) -> None:
    before = everything(hiding)
    for said in every_tool(Bench(hiding), path):
        assert "hidden from tools by" in said
    assert everything(hiding) == before


def test_ls_and_search_leave_out_what_is_hidden(hiding: Path) -> None:
    bench = Bench(hiding)
    assert bench.ok("ls", depth=9).split("\n") == [
        ".gitignore",
        ".tenureignore",
        "a.md",
        "kept.log",
        "only-here.md",
        "sub/",
        "sub/.gitignore",
    ]
    assert bench.ok("search", query="token").split("\n") == [
        "kept.log:1: token",
        "only-here.md:1: token",
    ]


def test_the_refusal_names_the_ignore_file_that_hides(hiding: Path) -> None:
    bench = Bench(hiding)
    assert "by sub/.gitignore" in bench.error("read", path="sub/only-here.md")
    assert "by .tenureignore" in bench.error("read", path="id.key")


def test_a_link_does_not_open_what_is_hidden(hiding: Path) -> None:
    (hiding / "open.md").symlink_to("private/diary.md")
    (hiding / "folder").symlink_to("private")
    bench = Bench(hiding)
    assert "hidden" in bench.error("read", path="open.md")
    assert "hidden" in bench.error("read", path="folder/diary.md")
    assert "hidden" in bench.error("write", path="folder/new.md", content="x")


def test_tenureignore_overrules_gitignore_in_both_directions(root: Path) -> None:
    (root / ".gitignore").write_text("*.csv\n!open.txt\n")
    (root / ".tenureignore").write_text("!report.csv\nopen.txt\n")
    for name in ("report.csv", "other.csv", "open.txt"):
        (root / name).write_text("x\n")
    bench = Bench(root)
    bench.ok("read", path="report.csv")
    assert "hidden" in bench.error("read", path="other.csv")
    assert "hidden" in bench.error("read", path="open.txt")


def test_no_tool_changes_a_tenureignore(hiding: Path) -> None:
    before = everything(hiding)
    bench = Bench(hiding)
    only = "only the user may change it"
    assert only in bench.error("write", path=".tenureignore", content="")
    assert only in bench.error("write", path="sub/.tenureignore", content="!*\n")
    edits = [{"oldText": "private/\n", "newText": ""}]
    assert only in bench.error("edit", path=".tenureignore", edits=edits)
    assert only in bench.error("rename", path=".tenureignore", newPath="x")
    assert only in bench.error("rename", path="a.md", newPath="sub/.tenureignore")
    assert only in bench.error("delete", path=".tenureignore")
    assert everything(hiding) == before


def test_rename_does_not_carry_hidden_files_to_where_they_would_show(root: Path) -> None:
    (root / ".tenureignore").write_text("sub/private.md\n")
    (root / "sub" / "private.md").write_text("token\n")
    assert "hidden from tools" in Bench(root).error("rename", path="sub", newPath="open")
    assert (root / "sub" / "private.md").exists()


def test_rename_does_not_move_a_folder_with_another_workspace_in_it(root: Path) -> None:
    (root / "sub" / "deep" / ".tenure").mkdir(parents=True)
    assert "hidden from tools" in Bench(root).error("rename", path="sub", newPath="other")


def test_a_pipe_is_refused_and_nobody_waits_for_it(root: Path) -> None:
    os.mkfifo(root / "pipe")
    bench = Bench(root)
    assert "no plain file" in bench.error("read", path="pipe")
    assert "no plain file" in bench.error("search", query="x", path="pipe")
    assert "no plain file" in bench.error("write", path="pipe", content="x")
    assert "[no line matches" in bench.ok("search", query="zzz")


def test_a_link_that_leads_to_itself_is_refused(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    assert "no plain file" in Bench(root).error("read", path="loop")
    assert "loop" in Bench(root).ok("ls")
