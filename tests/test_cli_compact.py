"""`tenure compact` and `tenure uncompact`, and the same in a chat."""

from pathlib import Path

import pytest
from cli_world import json_lines, of_type, records, tenure, transcripts, write_script

pytestmark = pytest.mark.real

PROMPTS = [f"prompt {number} " + "word " * 80 for number in range(4)]


def talk(root: Path) -> None:
    """A session with a few turns."""
    script = write_script(root / "script.json", ["answer " + "word " * 80] * len(PROMPTS))
    ran = tenure("chat", "--model", script, cwd=root, stdin="\n".join(PROMPTS) + "\n")
    assert ran.returncode == 0, ran.stderr


def kinds(root: Path) -> list[str]:
    (path,) = transcripts(root)
    return [each["type"] for each in records(path)]


def test_a_session_is_compacted_and_taken_back(tmp_path: Path) -> None:
    talk(tmp_path)
    ran = tenure("compact", "--instructions", "keep the prices", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (compacted,) = of_type("Compacted", json_lines(ran.stdout))
    assert compacted["tokens_after"] < compacted["tokens_before"]
    assert compacted["summariser"] == "deterministic"
    assert "compaction" in kinds(tmp_path)
    back = tenure("uncompact", "--json", cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    (undone,) = of_type("Uncompacted", json_lines(back.stdout))
    assert undone["entry_id"] == compacted["entry_id"]
    again = tenure("uncompact", cwd=tmp_path)
    assert again.returncode == 3
    assert "no compaction that could be taken back" in again.stderr


def test_a_session_with_nothing_to_compact_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    ran = tenure("run", "hello", cwd=tmp_path)
    assert ran.returncode == 0
    refused = tenure("compact", cwd=tmp_path)
    assert refused.returncode == 3
    assert "nothing to compact" in refused.stderr
    assert refused.stdout == ""
    assert "compaction" not in kinds(tmp_path)


def test_a_chat_compacts_when_it_is_told_to(tmp_path: Path) -> None:
    talk(tmp_path)
    lines = "/compact keep the prices\n/uncompact\n/uncompact\n/quit\n"
    ran = tenure("chat", cwd=tmp_path, stdin=lines)
    assert ran.returncode == 0, ran.stderr
    assert "compacted: " in ran.stderr
    assert "tokens, by rule" in ran.stderr
    assert "as it was before its last compaction" in ran.stderr
    assert "no compaction that could be taken back" in ran.stderr


def test_a_turn_shows_that_it_makes_room(tmp_path: Path) -> None:
    settings = tmp_path / ".tenure" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("[compaction]\nwindow = 600\n")
    talk(tmp_path)
    script = write_script(tmp_path / "last.json", ["done"])
    ran = tenure("run", "and " * 100, "--model", script, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "compacting " in ran.stderr
    assert "compacted: " in ran.stderr
    assert ran.stdout == "done\n"
