"""`tenure trace record` and `tenure replay`: a run is recorded, and stepped again."""

import json
from pathlib import Path

import pytest
from cli_world import json_lines, tenure, write_script
from click.testing import CliRunner, Result

from tenure.runtime.cli.main import tenure as command

WRITE = {"call": {"name": "write", "arguments": {"path": "new.md", "content": "one\n"}, "id": "c1"}}


def invoke(*args: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in args])


def recorded(root: Path, *options: str) -> Path:
    """The trace of a run with a tool call."""
    model = write_script(root / "script.json", [["I write.", WRITE], ["Done."]])
    file = root / "run.trace"
    done = invoke(
        "trace", "record", file, "Write new.md", "--root", root,
        "--model", model, "--approve", "allow", *options,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return file


def test_a_recorded_run_replays_with_the_same_steps(tmp_path: Path) -> None:
    file = recorded(tmp_path)
    assert (tmp_path / "new.md").read_text() == "one\n"
    steps = file.read_bytes().count(b"\n")
    assert steps > 20

    done = invoke("replay", file)

    assert done.exit_code == 0, done.output
    assert f"{steps} steps of " in done.output
    assert "0 owners decide otherwise" in done.output


@pytest.mark.real
def test_a_run_of_the_installed_command_replays_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("the heron stands in the reeds\n")
    ran = tenure("trace", "record", "run.trace", "heron?", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json_lines(ran.stdout)[-1]["type"] == "TurnEnded"
    assert oct((tmp_path / "run.trace").stat().st_mode & 0o777) == oct(0o600)
    done = tenure("replay", "run.trace", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json_lines(done.stdout)
    assert result["type"] == "Replayed"
    assert (result["differences"], result["left_out"]) == ([], [])


def test_a_trace_that_was_decided_otherwise_fails_with_its_first_difference(
    tmp_path: Path,
) -> None:
    file = recorded(tmp_path)
    lines = file.read_text().split("\n")
    place = next(number for number, line in enumerate(lines) if '"TurnAccepted"' in line)
    lines[place] = lines[place].replace('"TurnAccepted"', '"TurnQueued"')
    file.write_text("\n".join(lines))

    done = invoke("replay", file)

    assert done.exit_code == 1
    assert f"line {place + 1}: main/turn takes Answered and decides otherwise" in done.output
    assert 'recorded  {"type":"TurnQueued"' in done.output
    assert 'now       {"type":"TurnAccepted"' in done.output


def test_an_existing_file_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    done = invoke("trace", "record", tmp_path / "kept", "help", "--root", tmp_path)
    assert done.exit_code == 2
    assert "there is such a file" in done.output
    assert (tmp_path / "kept").read_text() == "mine"
    assert not (tmp_path / ".tenure").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("nothing of this kind\n", "line 1 is no line of a trace"),
        (json.dumps({"owner": "main/ghost", "message": {"type": "GetTurn"}}), "no owner"),
    ],
)
def test_a_file_that_is_no_trace_is_told(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "file").write_text(content)
    done = invoke("replay", tmp_path / "file")
    assert done.exit_code == 1
    assert why in done.output
    assert str(tmp_path / "file") in done.output


def test_a_missing_trace_is_told(tmp_path: Path) -> None:
    done = invoke("replay", tmp_path / "none")
    assert done.exit_code == 1
    assert "No such file" in done.output
