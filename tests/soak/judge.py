"""Compares what the clients were told with what is on the disk.

It reads the files on its own: of tenure it uses nothing but the names of the fields.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import lines_of

WRITTEN_NOWHERE = frozenset({"Stale", "AppendFailed", "NoSession", "Overloaded"})
"""Refusals after which nothing may have been written."""


@dataclass
class Copy:
    """One file that holds a session: the live one, one in the trash, or an old one."""

    path: Path
    header: dict[str, Any]
    records: list[dict[str, Any]]

    def texts(self) -> Iterator[str]:
        """What the clients had written: the notes, and the prompts."""
        for record in self.records:
            data = record.get("data")
            if record.get("customType") == "soak/note" and isinstance(data, dict):
                yield data.get("text", "")


@dataclass
class Session:
    live: list[Copy] = field(default_factory=list)
    others: list[Copy] = field(default_factory=list)

    def copies(self, lost: bool) -> list[Copy]:
        return [*self.live, *self.others] if lost else self.live


@dataclass
class Verdict:
    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(root: Path, ledgers: Iterable[Path]) -> Verdict:
    """Every receipt against the files of the root, after all clients are gone."""
    verdict = Verdict()
    sessions = _sessions(root, verdict)
    told = {path.stem: list(lines_of(path)) for path in ledgers}
    everything = [line for lines in told.values() for line in lines]
    moved = {each["session"] for each in everything if each["kind"] in ("delete", "vacuum")}
    _check_receipts(sessions, everything, moved, verdict)
    _check_markers(sessions, everything, moved, verdict)
    _check_prompts(sessions, everything, moved, verdict)
    _check_epochs(told, verdict)
    for line in everything:
        name = line["name"] if line["kind"] == "op" else line["kind"]
        verdict.counts[f"op {name}" if line["kind"] == "op" else name] += 1
        if line["kind"] == "refused":
            verdict.counts[f"refused {line['reply']}"] += 1
    return verdict


def _sessions(root: Path, verdict: Verdict) -> dict[str, Session]:
    found: dict[str, Session] = defaultdict(Session)
    folder = root / ".tenure" / "sessions"
    for path in sorted((root / ".tenure").rglob("*.jsonl*")):
        copy = _copy(path)
        if copy is None:
            continue
        session = found[copy.header["id"]]
        if path.parent == folder and path.suffix == ".jsonl":
            session.live.append(copy)
        elif ".jsonl" in path.name:
            session.others.append(copy)
    for session_id, session in found.items():
        if len(session.live) > 1:
            verdict.faults.append(f"{session_id} has {len(session.live)} live files")
    return found


def _copy(path: Path) -> Copy | None:
    lines = []
    for line in path.read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue  # `tenure sessions verify` says what a damaged line means
    if not lines or not isinstance(lines[0], dict) or lines[0].get("type") != "session":
        return None
    return Copy(path, lines[0], [each for each in lines[1:] if isinstance(each, dict)])


def _check_receipts(
    sessions: dict[str, Session],
    lines: list[dict[str, Any]],
    moved: set[str],
    verdict: Verdict,
) -> None:
    """Every entry with a receipt is in its session."""
    held: dict[tuple[str, bool], set[str]] = {}
    for line in lines:
        if line["kind"] not in ("appended", "seen"):
            continue
        session_id, lost = line["session"], line["session"] in moved
        if (session_id, lost) not in held:
            copies = sessions[session_id].copies(lost) if session_id in sessions else []
            ids = {record.get("id") for copy in copies for record in copy.records}
            held[session_id, lost] = {each for each in ids if isinstance(each, str)}
        for entry in line["entries"]:
            verdict.counts["receipts"] += 1
            if entry not in held[session_id, lost]:
                verdict.faults.append(f"{session_id} lost {entry}, which had a receipt: {line}")


def _check_markers(
    sessions: dict[str, Session],
    lines: list[dict[str, Any]],
    moved: set[str],
    verdict: Verdict,
) -> None:
    """Every note is in its own session, once, or nowhere."""
    home = {line["marker"]: line["session"] for line in lines if line["kind"] == "append"}
    appended = {line["marker"] for line in lines if line["kind"] == "appended"}
    refused = {
        line["marker"]
        for line in lines
        if line["kind"] == "refused" and line.get("reply") in WRITTEN_NOWHERE and "marker" in line
    }
    redacting = {line["marker"] for line in lines if line["kind"] == "redact"}
    redacted = {line["marker"] for line in lines if line["kind"] == "redacted"}
    for session_id, session in sessions.items():
        for copy in session.copies(lost=True):
            for marker, times in Counter(copy.texts()).items():
                if times > 1 and marker != "[redacted]":
                    verdict.faults.append(f"{copy.path.name} has {marker} {times} times")
                forked = "parentSession" in copy.header
                if marker in home and home[marker] != session_id and not forked:
                    verdict.faults.append(f"{marker} of {home[marker]} is in {copy.path.name}")
                if marker in refused - appended:
                    verdict.faults.append(f"{copy.path.name} has {marker}, which was refused")
        if session.live:
            kept = set(session.live[0].texts())
            for marker in redacted & kept:
                if home[marker] == session_id:
                    verdict.faults.append(f"{session_id} still says {marker}, which was redacted")
    for marker in appended - redacting:
        session = sessions.get(home[marker], Session())
        copies = session.copies(lost=home[marker] in moved)
        if not any(marker in copy.texts() for copy in copies):
            verdict.faults.append(f"{marker} had a receipt and is not in {home[marker]}")


def _check_prompts(
    sessions: dict[str, Session],
    lines: list[dict[str, Any]],
    moved: set[str],
    verdict: Verdict,
) -> None:
    """A prompt that was accepted is in the session of its turn."""
    for line in lines:
        if line["kind"] != "taken" or line["reply"] != "TurnAccepted":
            continue
        session_id = line["turn"].partition("/")[0]
        session = sessions.get(session_id, Session())
        whole = "\n".join(
            json.dumps(record)
            for copy in session.copies(lost=session_id in moved)
            for record in copy.records
            if record.get("type") == "message"
        )
        if line["marker"] not in whole:
            verdict.faults.append(f"{session_id} lost the accepted prompt {line['marker']}")


def _check_epochs(told: dict[str, list[dict[str, Any]]], verdict: Verdict) -> None:
    """An epoch of a session has one holder: nobody else gets a receipt in it."""
    holder: dict[tuple[str, int], str] = {}
    for name, lines in told.items():
        for line in lines:
            if line["kind"] not in ("appended", "seen"):
                continue
            key = (line["session"], line["epoch"])
            if holder.setdefault(key, name) != name:
                verdict.faults.append(f"{key} was written by {holder[key]} and by {name}")
    verdict.counts["epochs"] = len(holder)
