"""Real processes and one index: one writer, a stopped one that keeps it, and kill -9."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import read_until, started, tenure

pytestmark = pytest.mark.real

INDEXING = str(Path(__file__).parent / "processes" / "indexing.py")
NOTES = 120


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for number in range(NOTES):
        text = f"# Note {number}\n\nThe word{number} of this note.\n"
        (tmp_path / f"note-{number:03}.md").write_text(text)
    (tmp_path / ".tenure").mkdir()
    (tmp_path / ".tenure" / "settings.toml").write_text('[index]\nmodel = "keyword"\n')
    return tmp_path


def index(root: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return tenure("index", *args, "--json", cwd=root)


def indexing(root: Path, batch_s: float) -> tuple[str, ...]:
    return (sys.executable, INDEXING, str(root), str(batch_s))


def test_index_is_built_searched_checked_and_swept_on_the_command_line(notes: Path) -> None:
    assert json.loads(index(notes, "status").stdout)["index"]["type"] == "NoIndex"
    assert json.loads(index(notes, "build", "--estimate").stdout)["changed"] == NOTES
    built = index(notes, "build")
    assert (built.returncode, json.loads(built.stdout)["notes"]) == (0, NOTES)
    assert "120 notes, 120 new" in built.stderr
    found = json.loads(index(notes, "search", "word17").stdout)
    assert [hit["path"] for hit in found["hits"]] == ["note-017.md"]
    assert found["hits"][0]["passages"][0]["line"] == 3
    plain = tenure("index", "search", "word17", cwd=notes)
    assert plain.stdout.splitlines()[1] == "  3: The word17 of this note."
    assert index(notes, "search", "nowhere").returncode == 1
    assert json.loads(index(notes, "verify").stdout)["problems"] == []
    assert json.loads(index(notes, "gc").stdout)["files"] == []
    assert index(notes, "cancel").returncode == 3
    segment = next((notes / ".tenure" / "index").glob("*.seg"))
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    assert index(notes, "verify").returncode == 1


@pytest.mark.witness("INDEX-1")
def test_second_process_is_refused_with_the_pid_also_while_the_first_is_stopped(
    notes: Path,
) -> None:
    with started(*indexing(notes, 0.02), cwd=notes) as first:
        read_until(first, "progress")
        first.send_signal(signal.SIGSTOP)
        refused = index(notes, "build")
        assert refused.returncode == 3
        busy = json.loads(refused.stdout)
        assert (busy["type"], busy["holder"]["process"]["pid"]) == ("IndexBusy", first.pid)
        running = json.loads(index(notes, "status").stdout)
        assert running["run"]["type"] == "RunActive"
        first.send_signal(signal.SIGCONT)
        assert read_until(first, "RunComplete")[-1]["notes"] == NOTES


def test_run_of_another_process_is_cancelled_over_its_socket(notes: Path) -> None:
    with started(*indexing(notes, 0.5), cwd=notes) as first:
        read_until(first, "progress")
        cancelled = index(notes, "cancel")
        assert (cancelled.returncode, json.loads(cancelled.stdout)["now"]) == (0, "cancelling")
        assert read_until(first, "RunCancelled")
        run = json.loads(index(notes, "status").stdout)["run"]
        assert run["type"] == "RunCancelled"


@pytest.mark.witness("INDEX-4")
def test_killed_writers_leave_the_last_or_the_next_generation(notes: Path) -> None:
    assert index(notes, "build").returncode == 0
    chance = random.Random(5)
    known = 1
    for number in range(3):
        (notes / "changing.md").write_text(f"# Changing\n\nversion{number} here.\n")
        with started(*indexing(notes, 0.0), cwd=notes) as writer:
            read_until(writer, "begun")
            try:
                writer.wait(chance.random() * 0.5)
            except subprocess.TimeoutExpired:
                writer.kill()
            writer.wait()
        status = json.loads(index(notes, "status").stdout)
        assert status["index"]["type"] == "IndexReady"
        assert status["index"]["problem"] == ""
        assert status["index"]["generation"] in (known, known + 1)
        known = status["index"]["generation"]
        assert status["run"]["type"] != "RunActive"
    assert json.loads(index(notes, "verify").stdout)["problems"] == []
