"""Previews: what the user is shown before a change, and that showing changes nothing."""

import hashlib
import re
from pathlib import Path

import pytest
from tools_world import Bench

from tenure.messages.approval import CallNotPreviewed
from tenure.runtime.doors.tools.diff import DIFF_CHARS_MAX, unified_diff


def refused(bench: Bench, tool: str, **arguments: object) -> str:
    outcome = bench.preview(tool, **arguments)
    assert isinstance(outcome, CallNotPreviewed)
    return outcome.reason


def test_write_shows_a_new_file_as_new(tmp_path: Path) -> None:
    preview = Bench(tmp_path).shown("write", path="new/a.md", content="one\ntwo").preview
    assert preview.path == "new/a.md"
    assert preview.summary == "new file new/a.md: 2 lines, 7 bytes"
    assert preview.digest == "absent"
    assert preview.diff == (
        "--- /dev/null\n+++ b/new/a.md\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_write_shows_what_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwo\nthree\n")
    bench = Bench(tmp_path)
    preview = bench.shown("write", path="a.md", content="one\n2\nthree\n").preview
    assert preview.diff == "--- a/a.md\n+++ b/a.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert preview.digest == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    same = bench.shown("write", path="a.md", content="one\ntwo\nthree\n").preview
    assert (same.diff, same.summary) == ("", "a.md has this content already")


def test_write_over_a_binary_file_says_so_and_still_binds_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\0")
    preview = Bench(tmp_path).shown("write", path="a.png", content="text").preview
    assert preview.diff == ""
    assert "Before: a.png is not UTF-8 text (PNG image)" in preview.summary
    assert preview.digest == hashlib.sha256(b"\x89PNG\r\n\0").hexdigest()


def test_edit_shows_exactly_what_it_would_write(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("".join(f"{n}\n" for n in range(1, 101)))
    bench = Bench(tmp_path)
    edits = [{"oldText": "50\n", "newText": "fifty\n"}]
    preview = bench.shown("edit", path="a.md", edits=edits).preview
    assert preview.diff.split("\n")[2:] == [
        "@@ -47,7 +47,7 @@",
        *(" 47", " 48", " 49", "-50", "+fifty", " 51", " 52", " 53", ""),
    ]
    assert preview.summary == "edits a.md: 1 replacement"


def test_edit_that_would_not_apply_has_no_preview(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\none\n")
    bench = Bench(tmp_path)
    twice = refused(bench, "edit", path="a.md", edits=[{"oldText": "one", "newText": "x"}])
    assert "more than once" in twice
    gone = refused(bench, "edit", path="b.md", edits=[{"oldText": "one", "newText": "x"}])
    assert "does not exist" in gone
    assert "wrong arguments" in refused(bench, "edit", path="a.md", edits="one")


def test_delete_shows_the_content_and_rename_both_names(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    (tmp_path / "sub").mkdir()
    bench = Bench(tmp_path)
    preview = bench.shown("delete", path="a.md").preview
    assert preview.diff == "--- a/a.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    assert preview.summary == "deletes a.md: 1 line, 4 bytes. It is kept in .tenure/trash/"
    moved = bench.shown("rename", path="a.md", newPath="b.md").preview
    assert (moved.diff, moved.summary) == ("", "renames a.md to b.md")
    assert "an empty folder" in bench.shown("delete", path="sub").preview.summary
    assert "exists" in refused(bench, "rename", path="a.md", newPath="sub")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "sub"]


def test_what_changes_nothing_and_what_leads_out_has_no_preview(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    assert "shows no preview" in refused(bench, "read", path="a.md")
    assert "there is no tool" in refused(bench, "reed", path="a.md")
    assert "outside the workspace" in refused(bench, "write", path="../a.md", content="x")
    assert "no valid JSON" in refused(bench, "write", __invalid_json__='{"path": ')


def test_only_tools_that_change_files_promise_previews(tmp_path: Path) -> None:
    specs = {spec.name: spec for spec in Bench(tmp_path).tools.specs()}
    assert [name for name, spec in specs.items() if spec.mutating] == [
        *("write", "edit", "rename", "delete"),
    ]
    for spec in specs.values():
        assert spec.previews == spec.mutating
        assert spec.sequential or not spec.mutating
        assert set(spec.path_arguments) <= set(spec.parameters["properties"])
        assert spec.parameters["additionalProperties"] is False
    assert specs["rename"].path_arguments == ("path", "newPath")


# --- diffs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nc\n"),
        ("", "a\n"),
        ("a\n", ""),
        ("a", "a\n"),
        ("a\nb", "a\nb\nc"),
        ("".join(f"{n}\n" for n in range(60)), "".join(f"{n}\n" for n in range(3, 63) if n % 9)),
        ("x\n" * 30, "x\n" * 12 + "y\n" + "x\n" * 18),
        ("a\n" * 1_200, "b\n" * 1_100),
        ("a\u2028b\x0cc\n", "a\u2028b\x0cd\n"),
    ],
)
def test_a_diff_makes_the_new_text_of_the_old_one(before: str, after: str) -> None:
    assert applied(unified_diff(before, after, "a.md"), before) == after


def applied(diff: str, before: str) -> str:
    """What a patch program makes of a text; it takes every number and context line at its word."""
    old = before.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    new: list[str] = []
    at = 0
    for hunk in re.split(r"^@@ ", diff, flags=re.MULTILINE)[1:]:
        header, _, body = hunk.partition("\n")
        numbers = re.fullmatch(r"-(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", header)
        assert numbers is not None, header
        old_from, old_count, new_from, new_count = (int(n or 1) for n in numbers.groups())
        start = old_from - 1 if old_count else old_from
        new += old[at:start]
        assert len(new) == (new_from - 1 if new_count else new_from)
        rows: list[str] = []
        for line in body.split("\n")[:-1]:
            if line.startswith("\\"):
                rows[-1] = rows[-1].removesuffix("\n")
            else:
                rows.append(line + "\n")
        assert [row[1:] for row in rows if row[0] in " -"] == old[start : start + old_count]
        added = [row[1:] for row in rows if row[0] in " +"]
        assert len(added) == new_count
        new += added
        at = start + old_count
    return "".join(new + old[at:])


def test_a_diff_is_capped_and_says_how_much_is_left_out() -> None:
    diff = unified_diff("".join(f"{n} {'x' * 90}\n" for n in range(2_000)), "", "a.md")
    assert len(diff) < DIFF_CHARS_MAX + 100
    assert diff.endswith("more lines of the diff left out]\n")
    one_line = unified_diff("x" * 100_000, "y" * 100_000, "a.md")
    assert len(one_line) < DIFF_CHARS_MAX
    assert "-xxx" in one_line


def test_a_diff_of_large_texts_takes_no_time() -> None:
    before = "".join(f"{n % 7}\n" for n in range(200_000))
    after = "".join(f"{n % 11}\n" for n in range(200_000))
    assert "left out" in unified_diff(before, after, "a.md")
    small = unified_diff(before, before[:200_000] + "new\n" + before[200_000:], "a.md")
    assert "+new" in small
    assert len(small) < 200


def test_a_diff_shows_line_ends_that_change() -> None:
    assert "-a\n+a\\r\n" in unified_diff("a\n", "a\r\n", "a.md")
