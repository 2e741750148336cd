"""`tenure sessions` and `tenure invariants`: looking at things changes nothing."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cli_world import json_lines, transcripts
from click.testing import CliRunner, Result

from tenure.runtime.cli.main import tenure as command
from tenure.runtime.invariants import INVARIANTS

NOBODY = 65_534


def invoke(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def said(root: Path, *prompts: str) -> Path:
    """A workspace with one session in which this was said."""
    for prompt in prompts:
        assert invoke("run", prompt, "--root", str(root)).exit_code == 0
    (transcript,) = transcripts(root)
    return transcript


def damage(transcript: Path, line: int, old: bytes, new: bytes) -> None:
    lines = transcript.read_bytes().split(b"\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    transcript.write_bytes(b"\n".join(lines))


def everything(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    }


def test_each_session_is_one_row_or_one_json_object_the_newest_first(tmp_path: Path) -> None:
    for prompt in ("the first question", "the second question"):
        assert invoke("run", prompt, "--new", "--root", str(tmp_path)).exit_code == 0
    rows = invoke("sessions", "ls", "--root", str(tmp_path)).stdout.splitlines()
    assert ["the second question" in rows[0], "the first question" in rows[1]] == [True, True]
    objects = json_lines(invoke("sessions", "ls", "--root", str(tmp_path), "--json").stdout)
    ids = {path.stem.partition("_")[2] for path in transcripts(tmp_path)}
    assert {each["id"] for each in objects} == ids
    assert objects[0]["first_text"] == "the second question"


def test_no_sessions_are_no_failure(tmp_path: Path) -> None:
    done = invoke("sessions", "ls", "--root", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_transcript_is_a_row_with_its_problem(tmp_path: Path) -> None:
    said(tmp_path, "help")
    (tmp_path / ".tenure" / "sessions" / "broken.jsonl").write_text("nothing\n")
    done = invoke("sessions", "ls", "--root", str(tmp_path))
    assert done.exit_code == 0
    assert any("broken.jsonl: its first line is not" in row for row in done.stdout.splitlines())


def test_show_tells_the_conversation_with_calls_and_results(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("the heron stands in the reeds\n")
    session = said(tmp_path, "heron?").stem.partition("_")[2]
    done = invoke("sessions", "show", session[:8], "--root", str(tmp_path))
    assert done.exit_code == 0
    shown = done.stdout
    places = [shown.index(text) for text in ("heron?", '> search query="heron"', "< search")]
    assert places == sorted(places)
    assert "> the heron stands in the reeds" in shown


def test_show_marks_what_is_damaged_and_hides_nothing_else(tmp_path: Path) -> None:
    transcript = said(tmp_path, "help", "and again help", "a third help")
    damage(transcript, line=3, old=b"librarian", new=b"librarien")  # a record, altered
    damage(transcript, line=5, old=b'{"type"', new=b"type")  # no JSON any more
    with transcript.open("ab") as file:
        file.write(b'{"type":"message","id":"unfin')
    root, session = str(tmp_path), transcript.stem.partition("_")[2]

    shown = invoke("sessions", "show", session, "--root", root)

    assert shown.exit_code == 0
    assert "!! line 3 ALTERED" in shown.stdout
    assert "!! line 5 UNREADABLE" in shown.stdout
    assert "29 bytes of an unfinished last line" in shown.stdout
    for prompt in ("help", "and again help", "a third help"):
        assert prompt in shown.stdout
    (row,) = invoke("sessions", "ls", "--root", root).stdout.splitlines()
    assert "[2 damaged]" in row
    (whole,) = json_lines(invoke("sessions", "show", session, "--root", root, "--json").stdout)
    states = {entry["line"]: entry["state"] for entry in whole["entries"]}
    assert (states[3], states[5], states[7]) == ("altered", "unreadable", "intact")
    assert whole["damage"]["torn_bytes"] == 29


def test_a_run_on_a_damaged_session_says_so(tmp_path: Path) -> None:
    transcript = said(tmp_path, "help", "help")
    damage(transcript, line=3, old=b"librarian", new=b"librarien")
    done = invoke("run", "help", "--root", str(tmp_path))
    assert done.exit_code == 0
    assert "1 damaged place in" in done.stderr


def test_another_programs_session_is_shown_with_its_entries_unverified(tmp_path: Path) -> None:
    sessions = tmp_path / ".tenure" / "sessions"
    sessions.mkdir(parents=True)
    lines = [
        {"type": "session", "version": 3, "id": "theirs", "timestamp": "", "cwd": "/"},
        {
            "type": "message",
            "id": "1",
            "parentId": None,
            "timestamp": "",
            "message": {"role": "user", "content": "said \u001b[2J elsewhere"},
        },
        {"type": "model_change", "id": "2", "parentId": "1", "provider": "p", "modelId": "m"},
    ]
    (sessions / "theirs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = invoke("sessions", "show", "theirs", "--root", str(tmp_path))
    assert done.exit_code == 0
    assert "line 2 unverified" in done.stdout
    assert "elsewhere" in done.stdout
    assert '-- model_change {"provider": "p", "modelId": "m"}' in done.stdout


def test_looking_changes_nothing_on_disk(tmp_path: Path) -> None:
    transcript = said(tmp_path, "help")
    with transcript.open("ab") as file:
        file.write(b'{"type":"mess')  # what a writer would repair
    before = everything(tmp_path)
    session = transcript.stem.partition("_")[2]
    for args in (("ls",), ("ls", "--json"), ("show", session), ("show", session, "--json")):
        assert invoke("sessions", *args, "--root", str(tmp_path)).exit_code == 0
    assert everything(tmp_path) == before


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permission bits bind everybody but root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A workspace with one session that may only be read."""
    with TemporaryDirectory() as folder:  # whose parent everybody can see, unlike tmp_path
        root = Path(folder)
        said(root, "help")
        within = [root, *root.rglob("*")]
        for path in within:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield root
        for path in within:
            path.chmod(0o755)


@pytest.mark.real
def test_a_root_that_may_only_be_read_can_be_looked_at_and_refuses_a_run(read_only: Path) -> None:
    before = everything(read_only)
    with without_privileges():
        listed = invoke("sessions", "ls", "--root", str(read_only))
        refused = invoke("run", "help", "--root", str(read_only))
    assert listed.exit_code == 0
    assert "help" in listed.stdout
    assert refused.exit_code == 3
    assert "permission denied" in refused.stderr.lower()
    assert everything(read_only) == before


@pytest.mark.real
def test_a_root_that_may_not_be_read_is_one_plain_line(read_only: Path) -> None:
    read_only.chmod(0)
    for args in (("sessions", "ls"), ("run", "help")):
        with without_privileges():
            done = invoke(*args, "--root", str(read_only))
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert "Permission denied" in line
        assert str(read_only) in line


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_session_that_is_not_there_is_refused(tmp_path: Path, form: tuple[str, ...]) -> None:
    done = invoke("sessions", "show", "nope", "--root", str(tmp_path), *form)
    assert done.exit_code == 3
    assert "nope" in (done.stdout if form else done.stderr)


def test_a_session_that_cannot_be_read_is_one_plain_line(tmp_path: Path) -> None:
    sessions = tmp_path / ".tenure" / "sessions"
    sessions.mkdir(parents=True)
    name = "2026-01-01T00-00-00-000Z_abc.jsonl"
    (sessions / name).write_text("nothing\n")
    done = invoke("sessions", "show", "abc", "--root", str(tmp_path))
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert "its first line is not a session header" in line


def test_the_invariants_are_listed_as_they_stand_in_the_table() -> None:
    objects = json_lines(invoke("invariants", "--json").stdout)
    assert [each["id"] for each in objects] == [each.id for each in INVARIANTS]
    shown = invoke("invariants").stdout
    for invariant in INVARIANTS:
        assert f"{invariant.id}  ({invariant.owner}, " in shown
