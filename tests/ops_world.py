"""For tests of what is done to stored sessions: a machine, its ground, and what lies in a file."""

import json
from typing import Any

from transcript_world import ROOT, Machine, Seat, answer, result, user

from tenure.messages.entries import LabelEntry, SessionInfoEntry
from tenure.messages.tokens import EntryId, SessionId
from tenure.messages.transcripts import Fresh
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.doors.transcripts.verifying import verify_session
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves


def ground_of(disk: MemoryDisk, host: str = "other") -> Ground:
    """What a new process of this machine stands on."""
    leaves = memory_leaves(disk)
    layout = Layout(ROOT)
    return Ground(
        leaves=leaves, layout=layout, claims=Claims(leaves, host), host_id=host, sync="fsync"
    )


def entries_in(machine: Machine, path: str) -> list[dict[str, Any]]:
    """Every entry of a file, decoded with nothing of ours."""
    return [json.loads(line) for line in machine.lines(path)[1:]]


def said_in(machine: Machine, path: str) -> list[str]:
    """What was said, in file order."""
    found: list[str] = []
    for entry in entries_in(machine, path):
        content = entry.get("message", {}).get("content")
        if isinstance(content, str):
            found.append(content)
        elif content:
            found.extend(block["text"] for block in content if block["type"] == "text")
    return found


def assert_sound(machine: Machine, path: str) -> None:
    report = verify_session(memory_leaves(machine.disk), path)
    assert report.problems == (), report.problems


def closed_session(machine: Machine, *texts: str, name: str = "") -> tuple[SessionId, str]:
    """A session in which this was said, in turns of question and answer, that nobody has open."""
    seat = machine.seat(host="writer")
    path = seat.open(Fresh(name=name)).path
    for at, text in enumerate(texts):
        seat.append(user(text) if at % 2 == 0 else answer(text))
    seat.close()
    return seat.id, path


def branched(machine: Machine) -> tuple[Seat, list[str]]:
    """A session with a question, an answer, a second question; and the ids of its entries.

    The answer has a label, the session a name.
    """
    seat = machine.seat(host="writer")
    seat.open(Fresh())
    ids: list[str] = []
    for body in (user("one"), answer("two", "c1"), result("c1"), user("three")):
        seat.append(body)
        ids.append(str(seat.leaf))
    seat.append(LabelEntry(target_id=EntryId(ids[1]), label="good"), SessionInfoEntry(name="Trip"))
    return seat, ids
