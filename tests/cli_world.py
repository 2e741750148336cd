"""The command line as a process of its own, and what it leaves on disk."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

TENURE = (sys.executable, "-m", "tenure.runtime.cli.main")
WAIT_S_MAX = 30.0
LOOK_AGAIN_S = 0.01

Record = dict[str, Any]


def tenure(*args: str | bytes, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run to the end.  stdin is a pipe, so there is no terminal."""
    return subprocess.run(
        [*TENURE, *args],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=WAIT_S_MAX,
    )


@contextmanager
def started(*command: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A process under way, its stdout to be read line by line; gone at the end."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Look again and again, for as long as the process lives and the patience lasts."""
    patience_ends = time.monotonic() + WAIT_S_MAX
    while not true():
        assert process.poll() is None, f"it ended with {process.returncode} before that"
        assert time.monotonic() < patience_ends, "it did not come"
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_AGAIN_S)


def read_until(process: subprocess.Popen[str], kind: str) -> list[Record]:
    """The JSON lines up to the first of this type."""
    assert process.stdout is not None
    seen: list[Record] = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if seen[-1]["type"] == kind:
            return seen
    raise AssertionError(f"the output ended without a {kind}: {[each['type'] for each in seen]}")


def json_lines(text: str) -> list[Record]:
    return [json.loads(line) for line in text.splitlines()]


def of_type(kind: str, events: list[Record]) -> list[Record]:
    return [event for event in events if event["type"] == kind]


def receipts_in(lines: list[str]) -> set[str]:
    """The entry ids that whole `EntriesAppended` lines name; a line that was cut off names none."""
    ids: set[str] = set()
    for line in lines:
        if line.endswith("\n") and (event := json.loads(line))["type"] == "EntriesAppended":
            ids.update(event["entry_ids"])
    return ids


# --- the transcript, read with nothing of ours ------------------------------------------------


def transcripts(root: Path) -> list[Path]:
    return sorted((root / ".tenure" / "sessions").glob("*.jsonl"))


def records(path: Path) -> list[Record]:
    """All entries behind the header; every line must be whole."""
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b"", "the last line lacks its newline"
    return [json.loads(line) for line in lines[1:]]


def assert_one_chain(entries: list[Record]) -> None:
    parent = None
    for entry in entries:
        assert entry["parentId"] == parent, f"{entry['id']} hangs on {entry['parentId']}"
        parent = entry["id"]
    ids = [entry["id"] for entry in entries]
    assert len(set(ids)) == len(ids)


def calls_and_results(entries: list[Record]) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results, each with the number of its turn, in order."""
    calls: list[str] = []
    results: list[str] = []
    for entry in entries:
        message = entry.get("message", {})
        turn = entry.get("tenure", {}).get("turn")
        if message.get("role") == "assistant":
            blocks = [block for block in message["content"] if block["type"] == "toolCall"]
            calls.extend(f"{turn}/{block['id']}" for block in blocks)
        elif message.get("role") == "toolResult":
            results.append(f"{turn}/{message['toolCallId']}")
    return calls, results


def assert_one_result_a_call(entries: list[Record]) -> None:
    calls, results = calls_and_results(entries)
    assert calls
    assert sorted(results) == sorted(calls)


def write_script(path: Path, answers: list[Any]) -> str:
    """A script for `--model`; gives the model string."""
    path.write_text(json.dumps({"answers": answers}))
    return f"scripted:{path}"
