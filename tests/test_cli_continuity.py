"""`tenure sleep`, `wake`, `ack`, `checkpoint`, `recover`, `handoffs` as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_world import json_lines, tenure

pytestmark = pytest.mark.real


def told(ran: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    """The last object that was printed."""
    assert ran.returncode == code, ran.stderr
    return json_lines(ran.stdout)[-1]


def test_a_session_is_handed_over_from_sleep_to_acknowledgement(tmp_path: Path) -> None:
    tenure("checkpoint", "--working-on", "the parser, mostly", cwd=tmp_path)
    brief = told(tenure("wake", "--json", cwd=tmp_path))
    assert brief["type"] == "Brief"
    assert brief["died"] is True
    acknowledged = told(tenure("ack", brief["brief_id"], "--json", cwd=tmp_path))
    assert acknowledged["cleared"] == [brief["notices"][0]["id"]]
    saved = told(
        tenure(
            "sleep", "Fix parser, ship v1", "--next", "Call Bob, then Alice", "--next", "-x",
            "--decision", "Use yaml, not toml", "--json", cwd=tmp_path,
        )
    )  # fmt: skip
    assert (saved["seq"], saved["stages"]["git"]["status"]) == (1, "skipped")
    assert Path(saved["path"]).exists()
    brief = told(tenure("wake", "--json", cwd=tmp_path))
    assert brief["died"] is False
    assert [item["text"] for item in brief["items"]] == [
        "Fix parser, ship v1",
        "Call Bob, then Alice",
        "-x",
        "Use yaml, not toml",
    ]
    assert brief["omitted"] == []


def test_wake_exits_zero_after_a_death_and_otherwise_only_when_asked(tmp_path: Path) -> None:
    tenure("checkpoint", cwd=tmp_path)
    assert tenure("wake", cwd=tmp_path).returncode == 0
    assert tenure("wake", "--exit-code", cwd=tmp_path).returncode == 10
    assert tenure("wake", "--exit-code", "--root", "nowhere", cwd=tmp_path).returncode == 1


@pytest.mark.witness("HANDOFF-1")
def test_receipt_comes_first_and_a_stage_that_fails_gives_exit_code_four(tmp_path: Path) -> None:
    ran = tenure("sleep", "x", "--transcript", "/nope/t.jsonl", "--json", cwd=tmp_path)
    lines = json_lines(ran.stdout)
    assert ran.returncode == 4
    assert lines[0]["type"] == "HandoffReceipted"
    assert (lines[0]["seq"], lines[-1]["type"]) == (1, "HandoffSaved")
    assert lines[-1]["stages"]["transcript"]["status"] == "failed"
    assert lines[-1]["stages"]["observe"]["status"] in ("skipped", "failed")
    shown = told(tenure("handoffs", "show", "1", "--json", cwd=tmp_path))
    assert shown["stages"]["transcript"]["status"] == "failed"


def test_refusals_exit_three_and_say_why(tmp_path: Path) -> None:
    ran = tenure("sleep", " ", cwd=tmp_path)
    assert (ran.returncode, "summary is empty" in ran.stderr) == (3, True)
    assert tenure("sleep", "x", "--require-next", cwd=tmp_path).returncode == 3
    assert tenure("ack", "nope", cwd=tmp_path).returncode == 3
    assert tenure("handoffs", "show", "7", cwd=tmp_path).returncode == 3
    tenure("sleep", "x", "--key", "k", cwd=tmp_path)
    assert (
        told(tenure("sleep", "y", "--key", "k", "--json", cwd=tmp_path), 3)["type"] == "KeyReused"
    )
    assert told(tenure("sleep", "x", "--key", "k", "--json", cwd=tmp_path))["seq"] == 1


@pytest.mark.parametrize("count", ["abc", "-1"])
def test_wrong_number_of_handoffs_is_a_usage_error(count: str, tmp_path: Path) -> None:
    assert tenure("wake", f"--handoffs={count}", cwd=tmp_path).returncode == 2


def test_summary_and_lists_are_taken_from_stdin(tmp_path: Path) -> None:
    tenure("sleep", "-", cwd=tmp_path, stdin="from stdin, all of it\n")
    said = {"summary": "a, b", "next": ["c", "d, e"], "decisions": "f"}
    tenure("sleep", "--input-json", cwd=tmp_path, stdin=json.dumps(said))
    rows = json_lines(tenure("handoffs", "ls", "--json", cwd=tmp_path).stdout)
    assert [row["summary"] for row in rows] == ["a, b", "from stdin, all of it"]
    text = told(tenure("handoffs", "show", "2", "--json", cwd=tmp_path))["text"]
    assert (text["next_steps"], text["decisions"]) == (["c", "d, e"], ["f"])
    assert tenure("sleep", "--input-json", cwd=tmp_path, stdin="{").returncode == 2
    assert tenure("sleep", "--input-json", cwd=tmp_path, stdin='{"nxt": "x"}').returncode == 2


def test_looking_writes_nothing(tmp_path: Path) -> None:
    for words in (("recover",), ("handoffs", "ls"), ("handoffs", "verify")):
        assert tenure(*words, cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_vault_of_clawvault_is_found_from_a_folder_inside_it(tmp_path: Path) -> None:
    (tmp_path / ".clawvault.json").write_text("{}")
    inside = tmp_path / "projects"
    inside.mkdir()
    saved = told(tenure("sleep", "x", "--json", cwd=inside))
    assert Path(saved["path"]).parent == tmp_path / "handoffs"
    assert (tmp_path / ".clawvault.json").read_text() == "{}"


def test_verify_exits_one_where_something_is_wrong(tmp_path: Path) -> None:
    path = told(tenure("sleep", "x", "--json", cwd=tmp_path))["path"]
    assert tenure("handoffs", "verify", cwd=tmp_path).returncode == 0
    Path(path).unlink()
    ran = tenure("handoffs", "verify", cwd=tmp_path)
    assert (ran.returncode, "missing" in ran.stdout) == (1, True)


def test_items_obey_no_terminal(tmp_path: Path) -> None:
    tenure("sleep", "a\x1b[31mb\nc", cwd=tmp_path)
    ran = tenure("wake", cwd=tmp_path)
    assert "\x1b" not in ran.stdout
    assert "a [31mb c" in ran.stdout


def test_commands_of_a_session_load_no_event_loop_of_a_host(tmp_path: Path) -> None:
    """What a command loads is what a user waits for."""
    program = (
        "import sys; from click.testing import CliRunner; "
        "from tenure.runtime.cli.main import tenure; "
        "ran = CliRunner().invoke(tenure, ['wake']); assert ran.exit_code == 0, ran.output; "
        "print([each for each in ('tenure.runtime.host', 'httpx', 'anyio', 'portalocker', 'yaml', "
        "'tomlkit', 'tenure.runtime.supervisor') if each in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
