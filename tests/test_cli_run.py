"""`tenure run`: one prompt through a process of its own, or through the command alone."""

import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_world import TENURE, json_lines, of_type, records, tenure, transcripts, write_script
from click.testing import CliRunner, Result

from tenure.runtime.cli.main import tenure as command
from tenure.runtime.doors.models.names import ModelName, NotAvailable
from tenure.runtime.doors.models.providers import _check

WRITE = {"call": {"name": "write", "arguments": {"path": "new.md", "content": "one\n"}, "id": "c1"}}


def run(root: Path, *args: str, stdin: str = "") -> Result:
    """The command in this process; nobody sits at a terminal."""
    return CliRunner().invoke(command, ["run", "--root", str(root), *args], input=stdin)


def word(chance: random.Random) -> str:
    """A word that stands in no program and in no list of stop words."""
    return "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(5))


# --- the main job -------------------------------------------------------------------------------


@pytest.mark.real
def test_a_prompt_about_generated_notes_is_answered_with_the_right_file_and_line(
    tmp_path: Path,
) -> None:
    chance = random.Random()
    for number in range(8):
        lines = [" ".join(word(chance) for _ in range(6)) for _ in range(12)]
        (tmp_path / f"note-{number}.md").write_text("\n".join(lines) + "\n")
    number, line = chance.randrange(8), chance.randrange(12)
    path = tmp_path / f"note-{number}.md"
    wanted = path.read_text().splitlines()[line].split()[chance.randrange(6)]

    done = tenure("run", f"Where does {wanted} stand?", "--json", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    events = json_lines(done.stdout)
    assert (events[-1]["type"], events[-1]["stop_reason"]) == ("TurnEnded", "end_turn")
    answer = of_type("ModelAnswered", events)[-1]["text"]
    assert f"note-{number}.md:{line + 1}" in answer.splitlines()
    assert path.read_text().splitlines()[line] in answer
    (transcript,) = transcripts(tmp_path)
    assert records(transcript)[-1]["message"]["content"][0]["text"] == answer


@pytest.mark.real
def test_the_answer_goes_to_stdout_and_everything_about_it_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("the heron stands in the reeds\n")
    done = tenure("run", "-", cwd=tmp_path, stdin="heron?")
    assert done.returncode == 0
    assert "a.md:1" in done.stdout
    assert "search" not in done.stdout
    assert '> search query="heron"' in done.stderr
    assert "session " in done.stderr


def test_the_next_run_continues_the_newest_session_and_new_starts_another(tmp_path: Path) -> None:
    for args in ((), (), ("--new",)):
        assert run(tmp_path, "help", *args).exit_code == 0
    counts = sorted(len(records(path)) for path in transcripts(tmp_path))
    assert counts == [2, 4]


def test_a_session_is_named_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    for _ in range(2):
        assert run(tmp_path, "help", "--new").exit_code == 0
    first, second = transcripts(tmp_path)
    before = second.read_bytes()
    session = first.stem.partition("_")[2]
    assert run(tmp_path, "help", "--session", session[:13]).exit_code == 0
    assert len(records(first)) == 4
    assert second.read_bytes() == before


@pytest.mark.real
def test_the_root_is_the_nearest_folder_upward_that_has_sessions(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / ".tenure").mkdir()
    assert tenure("run", "help", cwd=inner).returncode == 0
    assert len(transcripts(tmp_path)) == 1
    assert not (inner / ".tenure").exists()


# --- how it ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "stop_reason"),
    [
        ([{"fail": {"kind": "auth", "reason": "the key is wrong"}}], "error"),
        ([{"text": "cut"}, {"done": {"stop_reason": "length"}}], "max_tokens"),
    ],
)
def test_a_turn_that_does_not_come_to_its_end_exits_with_one(
    tmp_path: Path, answer: Any, stop_reason: str
) -> None:
    model = write_script(tmp_path / "script.json", [answer])
    done = run(tmp_path, "go", "--model", model, "--json")
    assert done.exit_code == 1
    assert json_lines(done.stdout)[-1]["stop_reason"] == stop_reason


def test_a_failed_turn_says_why_on_stderr(tmp_path: Path) -> None:
    model = write_script(
        tmp_path / "script.json", [[{"fail": {"kind": "auth", "reason": "the key is wrong"}}]]
    )
    done = run(tmp_path, "go", "--model", model)
    assert done.exit_code == 1
    assert "the turn failed: auth: the key is wrong" in done.stderr
    assert done.stdout == ""


def test_text_of_a_failed_model_call_is_called_void_and_the_whole_answer_follows(
    tmp_path: Path,
) -> None:
    failing = [{"text": "half"}, {"fail": {"kind": "transport", "reason": "cut"}}]
    model = write_script(tmp_path / "script.json", [failing, "the whole answer"])
    done = run(tmp_path, "go", "--model", model)
    assert done.exit_code == 0
    assert done.stdout == "half\nthe whole answer\n"
    assert "void" in done.stderr
    assert "attempt 2" in done.stderr


@pytest.mark.parametrize(
    ("args", "refusal"),
    [
        (("   ",), "PromptEmpty"),
        (("hi", "--session", "no-such"), "SessionNotFound"),
        (("hi", "--model", "no-such"), "ModelUnavailable"),
    ],
)
def test_a_refusal_is_one_json_object_and_exits_with_three(
    tmp_path: Path, args: tuple[str, ...], refusal: str
) -> None:
    done = run(tmp_path, *args, "--json")
    assert done.exit_code == 3
    assert [line["type"] for line in json_lines(done.stdout)] == [refusal]
    assert transcripts(tmp_path) == []


def test_a_refusal_tells_people_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path, "hi", "--model", "no-such")
    assert done.exit_code == 3
    assert done.stdout == ""
    assert "librarian" in done.stderr  # it names the models that are known


def test_an_ambiguous_session_is_refused_with_its_candidates(tmp_path: Path) -> None:
    sessions = tmp_path / ".tenure" / "sessions"
    sessions.mkdir(parents=True)
    for name in ("aaaa-1", "aaaa-2"):
        header = {"type": "session", "version": 3, "id": name, "timestamp": "", "cwd": "/"}
        (sessions / f"2026-01-01T00-00-00-000Z_{name}.jsonl").write_text(json.dumps(header) + "\n")
    done = run(tmp_path, "hi", "--session", "aaaa")
    assert done.exit_code == 3
    assert "aaaa-1" in done.stderr
    assert "aaaa-2" in done.stderr


@pytest.mark.parametrize("args", [("hi", "--new", "--session", "x"), (), ("hi", "--approve", "so")])
def test_what_cannot_be_meant_exits_with_two(tmp_path: Path, args: tuple[str, ...]) -> None:
    assert run(tmp_path, *args).exit_code == 2


def test_a_root_that_is_missing_or_no_folder_is_one_plain_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "missing", tmp_path / "file"):
        done = run(root, "hi")
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert str(root) in line


def test_a_root_whose_tenure_is_a_file_is_one_plain_line(tmp_path: Path) -> None:
    (tmp_path / ".tenure").write_text("a file where the folder should be\n")
    done = run(tmp_path, "hi")
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert ".tenure is a file" in line


# --- approval -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approve", "is_written", "told"),
    [
        ("allow", True, "wrote new.md"),
        ("deny", False, "--approve deny"),
        ("ask", False, "no terminal"),
    ],
)
def test_without_a_terminal_only_approve_allow_lets_a_file_be_written(
    tmp_path: Path, approve: str, is_written: bool, told: str
) -> None:
    model = write_script(tmp_path / "script.json", [[WRITE], "done"])
    done = run(tmp_path, "go", "--model", model, "--approve", approve, "--json")
    assert done.exit_code == 0
    (finished,) = of_type("ToolCallFinished", json_lines(done.stdout))
    assert told in finished["text"]
    assert finished["is_error"] is not is_written
    assert (tmp_path / "new.md").exists() is is_written


# --- output -------------------------------------------------------------------------------------


@pytest.mark.real
def test_bytes_that_are_no_text_and_a_narrow_locale_do_not_crash_it(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Grüße from the heron 🦩\n")
    done = subprocess.run(
        [*TENURE, "run", b"\xff heron"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert "Grüße from the heron 🦩" in done.stdout.decode("utf-8")


@pytest.mark.real
@pytest.mark.parametrize("form", ["--json", "--new"])
def test_a_reader_that_leaves_ends_the_run_without_a_traceback(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.md").write_text("heron\n")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*TENURE, "run", "heron?", form],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.real
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_from_the_start_are_no_obstacle(
    tmp_path: Path, closed: str
) -> None:
    shell = f"exec {shlex.join(TENURE)} run help {closed}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    (transcript,) = transcripts(tmp_path)
    assert len(records(transcript)) == 2


@pytest.mark.real
def test_the_version_is_told_without_the_runtime() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tenure.runtime.cli.main", "--version"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("tenure, version ")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"msgspec", "asyncio", "tenure.runtime.host", "tenure.messages.base"}


@pytest.mark.parametrize("args", [(), ("run",), ("chat",), ("sessions",), ("sessions", "show")])
def test_every_command_explains_itself(args: tuple[str, ...]) -> None:
    done = CliRunner().invoke(command, [*args, "--help"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Usage: ")


@pytest.mark.parametrize("command_words", [("run", "help"), ("sessions", "ls")])
@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_root_that_is_no_folder_is_a_json_object_where_json_is_wanted(
    tmp_path: Path, command_words: tuple[str, ...], kind: str
) -> None:
    root = tmp_path / kind
    if kind == "file":
        root.write_text("no folder\n")
    done = CliRunner().invoke(command, [*command_words, "--json", "--root", str(root)])
    assert done.exit_code == 1
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["type"] == "BadRoot"
    assert str(root) in said["message"]


def test_base_url_beside_librarian_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "help", "--model", "librarian", "--base-url", "http://127.0.0.1:1/v1")
    assert done.exit_code == 2
    assert "--base-url says where a model is served" in done.stderr


def test_model_that_lacks_its_place_is_told_about_the_option() -> None:
    with pytest.raises(NotAvailable, match="give --base-url"):
        _check(ModelName(provider="openai-compatible", name="some"), {})


def test_show_of_an_unreadable_session_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / ".tenure" / "sessions" / "2026-01-01T00-00-00-000Z_s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("junk\n")
    done = CliRunner().invoke(command, ["sessions", "show", "s1", "--root", str(tmp_path)])
    assert done.exit_code == 1
    assert str(path) in done.stderr
