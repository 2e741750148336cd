"""Clients that are killed again and again, held against what each of them was told.

The long run is `python tests/soak/run.py --seconds 600`; here is a short one, and what
the judge would say if something were lost.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "soak"))

from judge import judge
from run import soak

SECONDS = float(os.environ.get("TENURE_SOAK_S", "6"))


@pytest.mark.real
@pytest.mark.timeout(120 + 2 * SECONDS)
def test_clients_that_are_killed_again_and_again_find_all_that_they_were_told(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    verdict = soak(root, SECONDS, seed="test")
    assert not verdict.faults, "\n".join(verdict.faults[:20])
    assert verdict.counts["receipts"] > 100
    assert verdict.counts["clients killed"] > 0


HOME = "2b7e2c1e-0000-4000-8000-000000000001"
OTHER = "2b7e2c1e-0000-4000-8000-000000000002"


def note(entry: str, text: str) -> dict[str, object]:
    data = {"text": text}
    return {"type": "custom", "customType": "soak/note", "id": entry, "data": data}


def write_session(root: Path, session: str, *records: dict[str, object]) -> Path:
    folder = root / ".tenure" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"2026_{session}.jsonl"
    lines = [{"type": "session", "version": 3, "id": session}, *records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_ledger(root: Path, name: str = "a-1", epoch: int = 1) -> Path:
    """A client that was told of one note."""
    path = root / f"{name}.jsonl"
    said = {"session": HOME, "epoch": epoch, "marker": f"mark-{name}"}
    lines = [{"kind": "append", **said}, {"kind": "appended", **said, "entries": [f"e-{name}"]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def whole(root: Path) -> None:
    """Nothing is wrong."""
    write_session(root, HOME, note("e-a-1", "mark-a-1"))


def lost(root: Path) -> None:
    write_session(root, HOME)


def elsewhere(root: Path) -> None:
    whole(root)
    write_session(root, OTHER, note("e-2", "mark-a-1"))


def twice(root: Path) -> None:
    write_session(root, HOME, note("e-a-1", "mark-a-1"), note("e-2", "mark-a-1"))


def two_files(root: Path) -> None:
    whole(root)
    path = write_session(root, HOME, note("e-a-1", "mark-a-1"))
    path.with_name("2027_copy.jsonl").write_bytes(path.read_bytes())


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lost, "lost e-a-1"),
        (elsewhere, "is in"),
        (twice, "2 times"),
        (two_files, "2 live files"),
    ],
)
def test_judge_finds_what_was_lost_doubled_or_misplaced(
    tmp_path: Path, damage: Callable[[Path], None], fault: str
) -> None:
    ledger = write_ledger(tmp_path)
    damage(tmp_path)
    faults = judge(tmp_path, [ledger]).faults
    assert any(fault in each for each in faults), faults


def test_judge_finds_nothing_where_nothing_is_wrong(tmp_path: Path) -> None:
    whole(tmp_path)
    assert judge(tmp_path, [write_ledger(tmp_path)]).faults == []


def test_judge_finds_an_epoch_that_two_clients_wrote_in(tmp_path: Path) -> None:
    write_session(tmp_path, HOME, note("e-a-1", "mark-a-1"), note("e-b-1", "mark-b-1"))
    ledgers = [write_ledger(tmp_path, "a-1"), write_ledger(tmp_path, "b-1")]
    (fault,) = judge(tmp_path, ledgers).faults
    assert "was written by a-1 and by b-1" in fault
