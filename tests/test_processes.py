"""Real processes: what is left when they are killed, and what two of them may do at once."""

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_world import (
    TENURE,
    assert_one_chain,
    assert_one_result_a_call,
    json_lines,
    of_type,
    read_until,
    receipts_in,
    records,
    started,
    tenure,
    transcripts,
    wait_until,
    write_script,
)

RECEIPTED = Path(__file__).parent / "processes" / "receipted.py"
KILLS = int(os.environ.get("TENURE_KILLS", "6"))

LOOK = {"call": {"name": "ls", "arguments": {"path": "."}}}
SEARCH = {"call": {"name": "search", "arguments": {"query": "heron"}}}
BUSY_TURN = [[LOOK], [SEARCH, LOOK], [{"text": "half "}, {"text": "way"}, LOOK], "the end"]
"""A turn of four model calls and four tool calls."""

pytestmark = pytest.mark.real


def session_of(transcript: Path) -> str:
    return transcript.stem.partition("_")[2]


def a_session(root: Path) -> Path:
    """A workspace with one session, in which one turn came to its end."""
    assert tenure("run", "help", cwd=root).returncode == 0
    (transcript,) = transcripts(root)
    return transcript


def go_on(root: Path, session: str) -> None:
    done = tenure("run", "--session", session, "go on", cwd=root)
    assert done.returncode == 0, done.stderr


# --- killed -------------------------------------------------------------------------------------


def test_a_host_killed_in_a_tool_call_leaves_every_receipted_entry_and_one_result(
    tmp_path: Path,
) -> None:
    calls = [LOOK, {"call": {"name": "block"}}]
    model = write_script(tmp_path / "s.json", [[LOOK], calls, "never said"])
    receipts, marker = tmp_path / "receipts", tmp_path / "marker"
    command = [sys.executable, str(RECEIPTED), str(tmp_path), model, str(receipts), str(marker)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    try:
        wait_until(marker.exists, holder)
    finally:
        holder.kill()
        holder.communicate()
    receipted = set(receipts.read_text().split())
    assert len(receipted) >= 4  # the prompt, two answers, and the first result
    (transcript,) = transcripts(tmp_path)

    go_on(tmp_path, session_of(transcript))

    entries = records(transcript)
    assert receipted <= {entry["id"] for entry in entries}
    assert_one_chain(entries)
    assert_one_result_a_call(entries)
    blocked = [e for e in entries if e.get("message", {}).get("toolName") == "block"]
    assert [entry["message"]["isError"] for entry in blocked] == [True]
    assert "unknown" in blocked[0]["message"]["content"][0]["text"]


@pytest.mark.timeout(30 + 10 * KILLS)
def test_a_run_killed_at_any_moment_loses_nothing_that_it_had_told(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("the heron stands in the reeds\n")
    model = write_script(tmp_path / "s.json", BUSY_TURN)
    transcript = a_session(tmp_path)
    session = session_of(transcript)
    told: set[str] = set()
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _ in range(KILLS):
        command = (*TENURE, "run", "go", "--json", "--session", session, "--model", model)
        with started(*command, cwd=tmp_path) as run:
            assert run.stdout is not None
            lines = [run.stdout.readline() for _ in range(chance.randrange(24))]
            run.send_signal(signal.SIGKILL)
            lines += run.stdout.readlines()
        told |= receipts_in(lines)

        shown = tenure("sessions", "show", session, "--json", cwd=tmp_path)
        assert shown.returncode == 0, f"seed {seed}: {shown.stderr}"
        whole = json.loads(shown.stdout)
        assert told <= {entry["id"] for entry in whole["entries"]}, f"seed {seed}"
        assert {entry["state"] for entry in whole["entries"]} <= {"intact"}, f"seed {seed}"

        go_on(tmp_path, session)
        entries = records(transcript)
        assert told <= {entry["id"] for entry in entries}, f"seed {seed}"
        assert_one_chain(entries)
        if told:
            assert_one_result_a_call(entries)
    assert [path.name for path in transcripts(tmp_path)] == [transcript.name]


# --- side by side -------------------------------------------------------------------------------


def test_a_second_run_on_a_session_is_refused_and_shown_who_has_it(tmp_path: Path) -> None:
    session = session_of(a_session(tmp_path))
    model = write_script(tmp_path / "s.json", [[{"text": "a"}, {"wait": "file:go"}, {"text": "b"}]])
    command = (*TENURE, "run", "go", "--json", "--session", session, "--model", model)
    with started(*command, cwd=tmp_path) as holder:
        read_until(holder, "TextDelta")
        second = tenure("run", "hi", "--json", "--session", session, cwd=tmp_path)
        in_words = tenure("run", "hi", "--session", session, cwd=tmp_path)
        (tmp_path / "go").touch()
        (ended,) = of_type("TurnEnded", read_until(holder, "TurnEnded"))
        assert holder.wait(30) == 0
    assert second.returncode == 3
    (refusal,) = json_lines(second.stdout)
    assert refusal["type"] == "SessionInUse"
    assert refusal["session_id"] == session
    assert refusal["holder"]["process"]["pid"] == holder.pid
    assert in_words.returncode == 3
    assert f"process {holder.pid}" in in_words.stderr
    assert ended["stop_reason"] == "end_turn"
    go_on(tmp_path, session)  # the claim went with its holder


def test_runs_on_different_sessions_work_side_by_side(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[{"text": "a"}, {"wait": "file:go"}, {"text": "b"}]])
    command = (*TENURE, "run", "go", "--json", "--new", "--model", model)
    with ExitStack() as stack:
        runs = [stack.enter_context(started(*command, cwd=tmp_path)) for _ in range(2)]
        for run in runs:
            read_until(run, "TextDelta")
        (tmp_path / "go").touch()
        for run in runs:
            assert read_until(run, "TurnEnded")[-1]["stop_reason"] == "end_turn"
            assert run.wait(30) == 0
    assert [len(records(path)) for path in transcripts(tmp_path)] == [2, 2]


def test_a_run_passes_over_a_session_that_another_has_open(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[{"text": "a"}, {"wait": "file:go"}, {"text": "b"}]])
    with started(*TENURE, "run", "go", "--json", "--model", model, cwd=tmp_path) as holder:
        read_until(holder, "TextDelta")
        assert tenure("run", "help", cwd=tmp_path).returncode == 0
        (tmp_path / "go").touch()
        read_until(holder, "TurnEnded")
        assert holder.wait(30) == 0
    assert [len(records(path)) for path in transcripts(tmp_path)] == [2, 2]


# --- stopped ------------------------------------------------------------------------------------


def test_ctrl_c_stops_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    half = [{"text": "half of it"}, {"wait": "file:never"}, {"text": " and the rest"}]
    model = write_script(tmp_path / "s.json", [[LOOK], half])
    command = (*TENURE, "run", "go", "--json", "--model", model)
    with started(*command, cwd=tmp_path) as run:
        read_until(run, "TextDelta")
        run.send_signal(signal.SIGINT)
        ended = read_until(run, "TurnEnded")[-1]
        assert run.wait(30) == 130
        assert run.stdout is not None
        assert run.stdout.read() == ""
    assert (ended["stop_reason"], ended["cause"]) == ("stopped", "user")
    (transcript,) = transcripts(tmp_path)
    entries = records(transcript)
    last = entries[-1]["message"]
    assert (last["role"], last["stopReason"]) == ("assistant", "aborted")
    assert last["content"] == [{"type": "text", "text": "half of it"}]
    assert_one_result_a_call(entries)


def test_a_run_that_is_told_to_end_stops_its_turn_in_order(tmp_path: Path) -> None:
    model = write_script(tmp_path / "s.json", [[{"text": "half"}, {"wait": "file:never"}]])
    with started(*TENURE, "run", "go", "--json", "--model", model, cwd=tmp_path) as run:
        read_until(run, "TextDelta")
        run.send_signal(signal.SIGTERM)
        assert run.wait(30) == 143
    (transcript,) = transcripts(tmp_path)
    last = records(transcript)[-1]["message"]
    assert (last["stopReason"], last["content"][0]["text"]) == ("aborted", "half")
