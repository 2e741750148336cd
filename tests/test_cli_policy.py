"""`tenure policy` and `tenure audit`, on real files."""

import json
from pathlib import Path

import pytest
from cli_world import json_lines, tenure, write_script
from test_cli_sessions import everything, invoke


def policy(root: Path, *words: str) -> dict[str, object]:
    done = invoke("policy", *words, "--json", "--root", str(root))
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_rules_are_given_shown_and_forgotten(tmp_path: Path) -> None:
    assert policy(tmp_path, "ls")["tools"] == {}
    policy(tmp_path, "set", "bash:git *", "allow")
    policy(tmp_path, "set", "write", "deny")
    policy(tmp_path, "set", "changes", "allow")
    assert policy(tmp_path, "set", "mode", "plan")["mode"] == "plan"
    shown = policy(tmp_path, "ls")
    assert shown["tools"] == {"bash:git *": "allow", "write": "deny"}
    assert (shown["mode"], shown["mutating"]) == ("plan", "allow")
    assert policy(tmp_path, "rm", "write")["tools"] == {"bash:git *": "allow"}
    text = invoke("policy", "ls", "--root", str(tmp_path)).stdout
    assert "mode     plan\n" in text
    assert "allow    bash:git *\n" in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("set", "write", "yolo"), 2),
        (("set", "mode", "allow"), 2),
        (("set", "write", "maybe"), 2),
        (("rm", "write"), 3),
    ],
)
def test_rule_that_is_none_is_refused_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    assert invoke("policy", *words, "--root", str(tmp_path)).exit_code == code
    assert not list(tmp_path.rglob("settings.toml*"))


def test_audit_says_what_was_decided_and_writes_nothing(tmp_path: Path) -> None:
    write = {"call": {"name": "write", "arguments": {"path": "a.md", "content": "secret words"}}}
    model = write_script(tmp_path / "s.json", [[write], "done"])
    root = str(tmp_path)
    assert invoke("run", "go", "--root", root, "--model", model).exit_code == 0
    before = everything(tmp_path)
    (decided,) = json_lines(invoke("audit", "ls", "--json", "--root", root).stdout)
    record = decided["record"]
    assert (record["decision"], record["tool"]) == ("denied", "write")
    line = invoke("audit", "ls", "--root", root).stdout
    assert "denied by" in line
    assert "write a.md" in line
    assert "secret words" not in line
    assert everything(tmp_path) == before


def test_audit_of_a_root_without_sessions_says_so(tmp_path: Path) -> None:
    done = invoke("audit", "ls", "--root", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no session" in done.stderr
    assert invoke("audit", "ls", "nobody", "--root", str(tmp_path)).exit_code == 3


def test_a_chat_has_the_same_and_takes_a_change_back(tmp_path: Path) -> None:
    write = {"call": {"name": "write", "arguments": {"path": "a.md", "content": "new"}}}
    model = write_script(tmp_path / "s.json", [[write], "done"])
    lines = "/policy write allow\ngo\n/undo show\n/undo\n/undo\n/audit\n/policy rm write\n"
    lines += "/mode plan\n/mode wild\n/policy nonsense\n/policy\n/undo it\n/quit\n"
    ran = tenure("chat", "--model", model, cwd=tmp_path, stdin=lines)
    assert ran.returncode == 0, ran.stderr
    told = ran.stderr
    assert "allow    write" in told
    assert "would undo: write of a.md" in told
    assert "undone: write of a.md" in told
    assert "allowed by" in told
    assert "mode     plan" in told
    assert "/mode takes one of: safe, yolo, plan" in told
    assert "/policy takes a tool and one of" in told
    assert "/undo takes nothing, show or force" in told
    assert not (tmp_path / "a.md").exists()
