"""`tenure sessions` and a chat: what changes sessions, what looks at them, and plain refusals."""

import json
from pathlib import Path

import pytest
from cli_world import json_lines, records, tenure, transcripts
from test_cli_sessions import everything, invoke, said


def ids_of(root: Path) -> list[str]:
    return [path.stem.partition("_")[2] for path in transcripts(root)]


def prompts(path: Path) -> list[str]:
    """What users said, in file order."""
    found = []
    for entry in records(path):
        message = entry.get("message", {})
        if message.get("role") == "user":
            found += [block["text"] for block in message["content"]]
    return found


def entry_with(path: Path, text: str) -> str:
    (found,) = [e["id"] for e in records(path) if f'"text": "{text}"' in json.dumps(e)]
    return str(found)


def test_session_gets_a_name_by_which_it_is_found(tmp_path: Path) -> None:
    said(tmp_path, "help")
    (session,) = ids_of(tmp_path)
    root = str(tmp_path)
    assert invoke("sessions", "rename", session[:8], "Plans", "--root", root).exit_code == 0
    assert "Plans" in invoke("sessions", "ls", "--root", root).stdout
    assert invoke("sessions", "show", "plans", "--root", root).exit_code == 0
    assert invoke("sessions", "rename", "plans", "", "--root", root).exit_code == 0
    assert "Plans" not in invoke("sessions", "ls", "--root", root).stdout


def test_fork_prints_the_id_of_a_session_that_ends_at_the_entry(tmp_path: Path) -> None:
    path = said(tmp_path, "help", "help again")
    root, session = str(tmp_path), ids_of(tmp_path)[0]
    entry = entry_with(path, "help again")
    done = invoke("sessions", "fork", session, entry[:10], "--before", "--root", root)
    assert done.exit_code == 0, done.stderr
    (forked,) = [each for each in transcripts(tmp_path) if each != path]
    assert done.stdout.strip() in forked.name
    assert prompts(forked) == ["help"]
    told = json_lines(invoke("sessions", "fork", session, "--json", "--root", root).stdout)
    assert told[0]["type"] == "SessionForked"


def test_rewound_session_goes_on_from_the_entry(tmp_path: Path) -> None:
    path = said(tmp_path, "help", "help again")
    root, session = str(tmp_path), ids_of(tmp_path)[0]
    entry = entry_with(path, "help again")
    done = invoke("sessions", "rewind", session, entry, "--before", "--root", root)
    assert (done.exit_code, done.stderr.startswith("rewound to ")) == (0, True)
    said(tmp_path, "help otherwise")
    shown = invoke("sessions", "show", session, "--root", root).stdout
    assert "help otherwise" in shown
    assert "help again" not in shown
    tree = invoke("sessions", "tree", session, "--root", root).stdout
    assert "help again" in tree
    (row,) = [line for line in tree.splitlines() if line.endswith("  <")]
    assert row.startswith("* ")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("rewind", "{id}", "nothing"), "no entry begins with 'nothing'"),
        (("fork", "nowhere"), "no session 'nowhere'"),
        (("rm", "nowhere"), "no session 'nowhere'"),
        (("redact", "{id}", "--pattern", "("), "cannot be used"),
        (("redact", "{id}", "--pattern", "never said"), "nothing to change"),
        (("rename", "nowhere", "n"), "no session 'nowhere'"),
    ],
    ids=lambda each: each if isinstance(each, str) else each[0],
)
def test_what_cannot_be_done_is_refused_in_plain_words(
    tmp_path: Path, args: tuple[str, ...], words: str
) -> None:
    path = said(tmp_path, "help")
    before = prompts(path)
    called = [each.format(id=ids_of(tmp_path)[0]) for each in args]
    done = invoke("sessions", *called, "--root", str(tmp_path))
    assert (done.exit_code, words in done.stderr) == (3, True), done.stderr
    assert prompts(path) == before


def test_rewind_and_redact_say_what_they_need(tmp_path: Path) -> None:
    said(tmp_path, "help")
    for command in ("rewind", "redact"):
        done = invoke("sessions", command, ids_of(tmp_path)[0], "--root", str(tmp_path))
        assert done.exit_code == 2


def test_deleted_sessions_are_out_of_the_list_and_kept(tmp_path: Path) -> None:
    for prompt in ("help", "help me"):
        assert invoke("run", prompt, "--new", "--root", str(tmp_path)).exit_code == 0
    root = str(tmp_path)
    done = invoke("sessions", "rm", *ids_of(tmp_path), "--root", root)
    assert done.exit_code == 0
    assert invoke("sessions", "ls", "--root", root).stdout == ""
    assert len(list((tmp_path / ".tenure/trash/sessions").glob("*.jsonl"))) == 2


def test_redacted_text_is_gone_and_the_session_still_sound(tmp_path: Path) -> None:
    path = said(tmp_path, "help with sk-123", "help")
    root, session = str(tmp_path), ids_of(tmp_path)[0]
    assert invoke("sessions", "fork", session, "--root", root).exit_code == 0
    (fork,) = [each for each in transcripts(tmp_path) if each != path]
    done = invoke("sessions", "redact", session, "--pattern", "sk-[0-9]+", "--root", root)
    assert done.exit_code == 0, done.stderr
    assert b"sk-123" not in path.read_bytes()
    assert str(fork) in done.stderr
    checked = invoke("sessions", "verify", session, "--root", root)
    assert (checked.exit_code, ": sound" in checked.stdout) == (0, True)


def test_vacuum_tells_where_the_old_file_is(tmp_path: Path) -> None:
    path = said(tmp_path, "help", "help again")
    root, session = str(tmp_path), ids_of(tmp_path)[0]
    entry = entry_with(path, "help again")
    invoke("sessions", "rewind", session, entry, "--before", "--root", root)
    done = invoke("sessions", "vacuum", session, "--root", root)
    assert (done.exit_code, f"{path}.bak" in done.stderr) == (0, True)
    assert prompts(path) == ["help"]
    assert Path(f"{path}.bak").exists()


def test_check_of_a_damaged_file_names_the_line_and_exits_1(tmp_path: Path) -> None:
    path = said(tmp_path, "help")
    path.write_bytes(path.read_bytes().replace(b"librarian", b"librarien", 1))
    done = invoke("sessions", "verify", ids_of(tmp_path)[0], "--root", str(tmp_path))
    assert done.exit_code == 1
    assert "line 3: sum" in done.stdout
    (report,) = json_lines(
        invoke("sessions", "verify", ids_of(tmp_path)[0], "--json", "--root", str(tmp_path)).stdout
    )
    assert report["type"] == "Verification"


def test_verify_without_an_id_checks_every_session(tmp_path: Path) -> None:
    for text in ("one", "two"):
        assert invoke("run", text, "--new", "--root", str(tmp_path)).exit_code == 0
    sound = invoke("sessions", "verify", "--json", "--root", str(tmp_path))
    assert sound.exit_code == 0, sound.output
    reports = [json.loads(line) for line in sound.stdout.splitlines()]
    assert sorted(report["session_id"] for report in reports) == sorted(ids_of(tmp_path))

    damaged = next((tmp_path / ".tenure" / "sessions").glob("*.jsonl"))
    damaged.write_bytes(damaged.read_bytes().replace(b"librarian", b"librarien", 1))
    assert invoke("sessions", "verify", "--root", str(tmp_path)).exit_code == 1


def test_search_and_export_show_what_was_said_and_write_nothing_here(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    said(root, "help, heron")
    before = everything(root)
    (row, *_) = invoke("sessions", "search", "HERON", "--root", str(root)).stdout.splitlines()
    assert "help, heron" in row
    assert invoke("sessions", "search", "never", "--root", str(root)).stdout == ""
    session = ids_of(root)[0]
    text = invoke("sessions", "export", session, "--root", str(root)).stdout
    assert text.startswith('---\ntitle: "Help, heron"\n')
    document = invoke("sessions", "export", session, "--json", "--root", str(root)).stdout
    assert json.loads(document)["session"] == session
    for _ in range(2):
        done = invoke("sessions", "export", session, "--dir", str(tmp_path), "--root", str(root))
        assert Path(done.stdout.strip()).read_text() == text
    assert len(list(tmp_path.glob("*.md"))) == 2
    assert everything(root) == before


def test_chat_names_forks_rewinds_and_searches(tmp_path: Path) -> None:
    lines = [
        "help",
        "/name Trip",
        "help again",
        "/rewind",
        "/tree",
        "/fork",
        "/search trip",
        "/export",
    ]
    done = tenure("chat", cwd=tmp_path, stdin="\n".join([*lines, "/quit"]))
    assert done.returncode == 0, done.stderr
    assert "renamed" in done.stderr
    assert "rewound to " in done.stderr
    assert len(ids_of(tmp_path)) == 2
    assert done.stdout.count("Trip") >= 3
    bad = tenure("chat", cwd=tmp_path, stdin="/rewind nothing\n/export /nowhere\n/quit\n")
    assert bad.returncode == 0
    assert "no entry begins with 'nothing'" in bad.stderr
    assert "/nowhere" in bad.stderr
