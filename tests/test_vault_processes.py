"""Real processes on one vault: many at once, and killed with kill -9."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import tenure, wait_until
from vault_world import text_of

from tenure.messages.handoff import (
    GetHandoffCheck,
    GetHandoffs,
    HandoffCheck,
    HandoffList,
    SaveHandoff,
)
from tenure.runtime.alone import Alone
from tenure.runtime.doors.blocking import blocking_leaves
from tenure.runtime.system_alone import handoff_alone

pytestmark = pytest.mark.real

SLEEPER = Path(__file__).parent / "processes" / "sleeper.py"
PROCESSES = 8
SLEEPS = int(os.environ.get("TENURE_SLEEPS", "3"))
"""Of each process; TENURE_SLEEPS sets another number."""


def start(root: Path, name: str, count: int, ledger: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, SLEEPER, root, name, str(count), ledger])


def alone(root: Path) -> Alone:
    return handoff_alone(blocking_leaves(), str(root), lambda event: None)


def rows(root: Path) -> dict[str, int]:
    listed = alone(root).ask(GetHandoffs())
    assert isinstance(listed, HandoffList)
    return {row.id: row.seq for row in listed.handoffs}


def check(root: Path) -> HandoffCheck:
    found = alone(root).ask(GetHandoffCheck())
    assert isinstance(found, HandoffCheck)
    return found


@pytest.mark.witness("CLAIM-1")
def test_every_receipt_of_many_processes_at_once_is_there(tmp_path: Path) -> None:
    root, ledgers = tmp_path / "vault", tmp_path / "ledgers"
    root.mkdir()
    ledgers.mkdir()
    processes = [start(root, f"p{n}", SLEEPS, ledgers / f"{n}") for n in range(PROCESSES)]
    assert [each.wait(50) for each in processes] == [0] * PROCESSES
    receipts = dict(
        line.split()[::-1] for each in ledgers.iterdir() for line in each.read_text().splitlines()
    )
    assert len(receipts) == PROCESSES * SLEEPS
    assert {each: str(seq) for each, seq in rows(root).items()} == receipts
    assert sorted(rows(root).values()) == list(range(1, PROCESSES * SLEEPS + 1))
    assert len(list((root / "handoffs").iterdir())) == PROCESSES * SLEEPS
    assert check(root).sound, check(root)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.witness("HANDOFF-1")
def test_killed_sleeper_has_lost_no_receipt_and_its_keys_go_on(seed: int, tmp_path: Path) -> None:
    root, ledger = tmp_path / "vault", tmp_path / "ledger"
    root.mkdir()
    process = start(root, "p", 10_000, ledger)
    wanted = random.Random(seed).randint(1, 12)
    try:
        wait_until(
            lambda: ledger.exists() and ledger.read_text().count("\n") >= wanted,
            process,  # type: ignore[arg-type]
        )
    finally:
        process.kill()
        process.wait()
    receipts = [line.split() for line in ledger.read_text().splitlines()]
    seen = rows(root)
    assert all(seen[handoff_id] == int(seq) for seq, handoff_id in receipts)
    number = len(receipts) - 1
    repeated = SaveHandoff(
        text=text_of("the same title", next_steps=(f"p {number}",)), idempotency_key=f"p/{number}"
    )
    assert alone(root).ask(repeated).id == receipts[-1][1]  # type: ignore[attr-defined]
    assert check(root).sound, check(root)


def test_two_commands_of_the_same_minute_and_title_are_both_kept(tmp_path: Path) -> None:
    for _ in range(2):
        assert tenure("sleep", "the same", cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "handoffs").iterdir())) == 2


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_system_calls_of_a_command_are_in_the_durable_order(tmp_path: Path) -> None:
    assert tenure("sleep", "first", cwd=tmp_path).returncode == 0
    log = tmp_path / "calls"
    command = [sys.executable, "-m", "tenure.runtime.cli.main", "sleep", "second"]
    watched = "trace=flock,write,fdatasync,fsync,rename,close"
    ran = subprocess.run(
        ["strace", "-f", "-y", "-e", watched, "-o", str(log), *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0 and "PTRACE" in ran.stderr:
        pytest.skip("strace may not trace here")
    assert ran.returncode == 0, ran.stderr
    lines = log.read_text().splitlines()

    def at(*words: str) -> int:
        return next(n for n, line in enumerate(lines) if all(word in line for word in words))

    order = [
        at("flock", "LOCK_EX"),
        at("write(", "handoffs.jsonl"),
        at("fdatasync", "handoffs.jsonl"),
        at("fsync", ".tenure-stage-"),
        at("rename", ".tenure-stage-"),
        at("fsync", "/handoffs>"),
        at("write(1", "handoff 2 saved"),
    ]
    assert order == sorted(order)
