"""read, ls and search: what they show, what they leave out, and how they say so."""

import os
from pathlib import Path

import pytest
from tools_world import Bench, disk_leaves, text

from tenure.runtime.doors.tools.door import RESULT_CHARS_MAX
from tenure.runtime.doors.tools.globs import Glob
from tenure.runtime.doors.tools.tool import ToolRefused

RESULT_AND_NOTES_MAX = RESULT_CHARS_MAX + 200


# --- read -----------------------------------------------------------------------------------


def test_read_numbers_the_lines_and_tells_how_many_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\ntwö\n\nfour")
    done = Bench(tmp_path).call("read", path="a.md")
    assert text(done) == "     1\tone\n     2\ttwö\n     3\t\n     4\tfour\n[a.md: lines 1-4 of 4]"
    assert done.details["lines_total"] == 4


def test_read_gives_the_lines_asked_for_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    said = Bench(tmp_path).ok("read", path="a.md", offset=40, limit=2)
    assert said.split("\n") == [
        "    40\tline 40",
        "    41\tline 41",
        "[a.md: lines 40-41 of 100; go on with offset=42]",
    ]


def test_read_refuses_a_line_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    bench = Bench(tmp_path)
    assert "a.md has 1 lines; there is no line 2" in bench.error("read", path="a.md", offset=2)
    assert "wrong arguments" in bench.error("read", path="a.md", offset=0)


def test_read_of_an_empty_file_says_that_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("")
    assert Bench(tmp_path).ok("read", path="a.md") == "[a.md is empty]"


def test_read_hides_the_byte_order_mark_and_names_crlf(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    said = Bench(tmp_path).ok("read", path="a.md")
    assert said == "     1\tone\n     2\ttwo\n[a.md: lines 1-2 of 2; lines end in CR LF]"


def test_read_cuts_long_lines_and_gives_their_rest_by_column(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("ä" * 2_000 + "ß" * 3)
    bench = Bench(tmp_path)
    first = bench.ok("read", path="a.json")
    assert first.startswith("     1\t" + "ä" * 2_000 + "\n[")
    assert "go on with column=2001" in first
    assert bench.ok("read", path="a.json", column=2_001).startswith("     1\tßßß\n[")


def test_read_caps_its_result_and_the_rest_is_reached_by_offset(tmp_path: Path) -> None:
    lines = [f"{n} " + "x" * 500 for n in range(1, 1_001)]
    (tmp_path / "a.md").write_text("\n".join(lines) + "\n")
    bench = Bench(tmp_path)
    seen: list[str] = []
    offset = 1
    while offset <= 1_000:
        done = bench.call("read", path="a.md", offset=offset)
        assert len(text(done)) <= RESULT_AND_NOTES_MAX
        seen += [row.split("\t", 1)[1] for row in text(done).split("\n")[:-1]]
        offset = done.details["last_line"] + 1
    assert seen == lines


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
        ("text in UTF-16".encode("utf-16"), "UTF-16 text"),
        (b"caf\xe9 in latin-1\n", "binary"),
        (b"a\0b", "binary"),
    ],
)
def test_read_describes_what_is_no_text_and_does_not_dump_it(
    tmp_path: Path, data: bytes, kind: str
) -> None:
    (tmp_path / "a.bin").write_bytes(data)
    said = Bench(tmp_path).ok("read", path="a.bin")
    assert said == (
        f"a.bin is not UTF-8 text ({kind}), {len(data)} bytes; its content is not shown"
    )


def test_read_finds_a_line_far_into_a_huge_file_chunk_by_chunk(tmp_path: Path) -> None:
    """The chunks cut lines and characters in two; neither is lost."""
    line = "é" * 49 + "\n"  # 99 bytes: no chunk ends where a line does
    with open(tmp_path / "big.txt", "w", encoding="utf-8") as file:
        for _ in range(30):
            file.write(line * 10_000)
    leaves = disk_leaves()
    done = Bench(tmp_path, leaves).call("read", path="big.txt", offset=299_999, limit=1)
    assert text(done).startswith("299999\t" + "é" * 49 + "\n[")
    assert done.details["lines_total"] == 300_000


def test_read_of_a_sparse_file_of_200_mb_describes_it(tmp_path: Path) -> None:
    with open(tmp_path / "sparse.bin", "wb") as file:
        os.truncate(file.fileno(), 200_000_000)
    said = Bench(tmp_path).ok("read", path="sparse.bin")
    assert "200,000,000 bytes" in said
    assert "not UTF-8 text" in said


def test_read_of_the_start_of_a_huge_file_keeps_its_text_though_zeros_follow(
    tmp_path: Path,
) -> None:
    with open(tmp_path / "log.txt", "wb") as file:
        file.write(b"first\n" * 100_000)
        os.truncate(file.fileno(), 200_000_000)
    assert "     2\tfirst" in Bench(tmp_path).ok("read", path="log.txt", limit=2)


def test_a_missing_file_is_refused_with_the_paths_that_were_perhaps_meant(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "pricing.md").write_text("x")
    (tmp_path / "roadmap.md").write_text("x")
    bench = Bench(tmp_path)
    said = bench.error("read", path="pricing.md")
    assert said == "pricing.md does not exist; did you mean notes/pricing.md?"
    assert "did you mean roadmap.md?" in bench.error("read", path="rodmap.md")
    assert "use ls or search" in bench.error("read", path="zzz")
    assert "is a folder; use ls" in bench.error("read", path="notes")


# --- ls -------------------------------------------------------------------------------------


def test_ls_gives_sorted_paths_to_a_depth(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    for name in ("z.md", "b/y.md", "b/c/x.md"):
        (tmp_path / name).write_text("x")
    bench = Bench(tmp_path)
    assert bench.ok("ls").split("\n") == ["b/", "z.md"]
    assert bench.ok("ls", depth=2).split("\n") == ["b/", "b/c/", "b/y.md", "z.md"]
    assert bench.ok("ls", path="b").split("\n") == ["b/c/", "b/y.md"]
    assert bench.ok("ls", depth=5, glob="*.md").split("\n") == ["b/c/x.md", "b/y.md", "z.md"]
    assert "nothing that fits *.txt is here" in bench.ok("ls", glob="*.txt")
    assert "is a file, not a folder; use read" in bench.error("ls", path="z.md")
    assert "does not exist" in bench.error("ls", path="nowhere")


def test_ls_caps_the_names_and_says_how_many_are_left_out(tmp_path: Path) -> None:
    for n in range(1_105):
        (tmp_path / f"{n:04}.md").touch()
    lines = Bench(tmp_path).ok("ls").split("\n")
    assert lines[999] == "0999.md"
    assert lines[1_000:] == ["[105 more names left out; list a sub-folder or give a glob]"]


def test_ls_shows_names_that_are_no_text_so_that_they_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).touch()
    (tmp_path / "two\nlines").touch()
    (tmp_path / "naïve 🌱.md").touch()
    said = Bench(tmp_path).ok("ls")
    assert said.encode().decode().split("\n") == ["caf\\udce9", "naïve 🌱.md", "two\\nlines"]


# --- search ---------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("Pricing is 5 €\nnothing\r\nthe PRICING\r\n")
    (tmp_path / "sub" / "b.txt").write_text("pricing (draft)\nSTRASSE und Straße\n")
    (tmp_path / "pricing.bin").write_bytes(b"pricing\0")
    return tmp_path


def test_search_gives_path_line_and_text_whatever_the_case(notes: Path) -> None:
    assert Bench(notes).ok("search", query="pricing").split("\n") == [
        "a.md:1: Pricing is 5 €",
        "a.md:3: the PRICING",
        "sub/b.txt:1: pricing (draft)",
    ]


def test_search_tells_the_case_apart_when_asked(notes: Path) -> None:
    said = Bench(notes).ok("search", query="PRICING", caseSensitive=True)
    assert said == "a.md:3: the PRICING"


def test_search_narrows_to_a_glob_a_folder_or_a_file(notes: Path) -> None:
    bench = Bench(notes)
    only_b = "sub/b.txt:1: pricing (draft)"
    assert bench.ok("search", query="pricing", glob="*.txt") == only_b
    assert bench.ok("search", query="pricing", path="sub") == only_b
    assert bench.ok("search", query="pricing", path="sub/b.txt") == only_b
    assert "does not exist" in bench.error("search", query="x", path="sub/c.txt")


def test_search_takes_plain_text_plainly_and_regular_expressions_when_asked(notes: Path) -> None:
    bench = Bench(notes)
    assert bench.ok("search", query="(draft)") == "sub/b.txt:1: pricing (draft)"
    pytest.importorskip("regex")
    assert bench.ok("search", query=r"^the\s+pricing$", regex=True) == "a.md:3: the PRICING"
    assert "no regular expression" in bench.error("search", query="(draft", regex=True)


def test_search_folds_letters_and_composed_accents(notes: Path) -> None:
    (notes / "c.md").write_text("Cafe\u0301 Zu\u0308rich\n")
    bench = Bench(notes)
    assert bench.ok("search", query="CAFÉ") == "c.md:1: Cafe\u0301 Zu\u0308rich"
    assert bench.ok("search", query="strasse") == "sub/b.txt:2: STRASSE und Straße"


def test_search_says_when_nothing_matches(notes: Path) -> None:
    said = Bench(notes).ok("search", query="zebra")
    assert said == "[no line matches 'zebra'; 3 files searched]"


def test_search_refuses_a_query_that_cannot_match(notes: Path) -> None:
    bench = Bench(notes)
    assert "is empty" in bench.error("search", query="")
    assert "more than one line" in bench.error("search", query="a\nb")
    assert "is longer than" in bench.error("search", query="x" * 1_001)


def test_search_stops_after_200_lines_and_says_so(tmp_path: Path) -> None:
    for n in range(9):
        (tmp_path / f"{n}.md").write_text("hit\n" * 40)
    lines = Bench(tmp_path).ok("search", query="hit").split("\n")
    assert len([line for line in lines if line.endswith(": hit")]) == 200
    assert lines[200:] == ["[stopped after 200 matches; give a longer query, a glob or a path]"]


def test_search_lets_no_file_crowd_out_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("hit\n" * 1_000)
    (tmp_path / "b.md").write_text("hit\n")
    bench = Bench(tmp_path)
    lines = bench.ok("search", query="hit").split("\n")
    assert lines[50] == "b.md:1: hit"
    assert "only the first 50 matches are given of a.log" in lines[51]
    assert "stopped after 200" in bench.ok("search", query="hit", path="a.log")


def test_search_shows_what_surrounds_the_match_in_a_long_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("x" * 5_000 + "needle" + "y" * 5_000)
    said = Bench(tmp_path).ok("search", query="needle")
    assert said.startswith("a.json:1: …xxx")
    assert "needle" in said
    assert len(said) < 500


def test_search_keeps_line_numbers_across_the_blocks_of_a_huge_file(tmp_path: Path) -> None:
    lines = ["ü" * 99] * 30_000  # about 6 MB, in several blocks
    lines[29_990] = "the needle"
    (tmp_path / "a.txt").write_text("\n".join(lines))
    (tmp_path / "b.txt").write_text("ü" * 3_000_000 + "\nthe needle")
    assert Bench(tmp_path).ok("search", query="needle").split("\n") == [
        "a.txt:29991: the needle",
        "b.txt:2: the needle",
    ]


def test_search_ends_a_regular_expression_that_would_work_for_ever(tmp_path: Path) -> None:
    pytest.importorskip("regex")
    (tmp_path / "a.md").write_text("ab" * 3_000 + "!")
    bench = Bench(tmp_path)
    assert "takes too long" in bench.error("search", query="(a|ab|b|ba)*[xy]", regex=True)
    assert "repeats more than" in bench.error("search", query="((a{99}){99}){99}", regex=True)


def test_search_names_files_that_cannot_be_read(tmp_path: Path) -> None:
    from tenure.runtime.testing.disk import MemoryDisk
    from tenure.runtime.testing.faults import Fail, FaultRule, FaultRules
    from tenure.runtime.testing.leaves import memory_leaves

    disk = MemoryDisk()
    disk.put("/work/a.md", b"hit\n")
    disk.put("/work/b.md", b"hit\n")
    disk.before = FaultRules(FaultRule(fault=Fail(errno=5), calls=("open",), path_ends="a.md"))
    said = Bench("/work", memory_leaves(disk)).ok("search", query="hit")
    assert said == "b.md:1: hit\n[could not be read: a.md (Input/output error)]"


# --- globs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("", "a/b.md", True),
        ("*.md", "b.md", True),
        ("*.md", "a/b/c.md", True),
        ("*.md", "a/b/c.txt", False),
        ("a/*.md", "a/b.md", True),
        ("a/*.md", "x/a/b.md", False),
        ("a/*.md", "a/b/c.md", False),
        ("a/**/*.md", "a/c.md", True),
        ("a/**/*.md", "a/x/y/c.md", True),
        ("**/c.md", "c.md", True),
        ("a/", "a/b/c.md", True),
        ("a/", "x/a/c.md", True),
        ("/a.md", "a.md", True),
        ("/a.md", "x/a.md", False),
        ("*.{md,txt}", "x/a.txt", True),
        ("*.{md,txt}", "x/a.log", False),
        ("!*.log", "a.md", True),
        ("!*.log", "a.log", False),
        ("[ab].md", "b.md", True),
        ("?.md", "ab.md", False),
        ("a", "a/b.md", False),
    ],
)
def test_a_glob_fits_paths_as_people_expect(pattern: str, path: str, fits: bool) -> None:
    assert Glob(pattern).fits(path) is fits


def test_a_hostile_glob_takes_no_time() -> None:
    assert not Glob("*a" * 100 + "b").fits("a" * 250)
    assert not Glob("**/" * 100 + "b").fits("/".join("a" * 1_000))
    with pytest.raises(ToolRefused):
        Glob("{a,b}" * 10)
    with pytest.raises(ToolRefused):
        Glob("*" * 501)
