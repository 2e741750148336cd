"""The audit of compactions in a transcript: which pass has a start and no end, and the last one."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.messages.entries import CustomEntry
from tenure.messages.tokens import EntryId
from tenure.runtime.doors.transcripts.scan import loose_fields
from tenure.runtime.doors.transcripts.tree import ROOT, Tree

AUDIT = "tenure/compaction"
_AUDIT_BYTES = b'"tenure/compaction"'

INTERRUPTED = "the pass ended with its owner, its process or its seat"


def missing_ends(tree: Tree) -> list[CustomEntry]:
    """An end for each pass without one, wherever in the file it began.

    A pass whose summary is there was done, although its end was cut off with it.
    """
    started = _open_passes(tree)
    if not started:
        return []
    done = {_details(fields).get("pass") for fields in _fields(tree, "compaction", b'"details"')}
    return [_end(pass_id, done=pass_id in done) for pass_id in started]


class LastCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The compaction that counts on the leaf's path."""

    entry_id: EntryId
    parent_id: EntryId
    messages_after: int


def last_compaction(tree: Tree) -> LastCompaction | None:
    """None where there is none, or nothing before it."""
    after = 0
    for place in reversed(tree.path()):
        head = tree.heads[place]
        parent = tree.parent_place(place)
        if head.type == "compaction" and parent != ROOT:
            return LastCompaction(
                entry_id=EntryId(head.id),
                parent_id=EntryId(tree.heads[parent].id),
                messages_after=after,
            )
        after += head.type in ("message", "custom_message")
    return None


def _open_passes(tree: Tree) -> list[str]:
    started: dict[str, None] = {}
    for fields in _fields(tree, "custom", _AUDIT_BYTES):
        data = fields.get("data")
        if fields.get("customType") != AUDIT or not isinstance(data, dict):
            continue
        pass_id = data.get("pass")
        if not isinstance(pass_id, str):
            continue
        if data.get("phase") == "start":
            started[pass_id] = None
        if data.get("phase") == "end":  # guard: COMPACT-5
            started.pop(pass_id, None)
    return list(started)


def _fields(tree: Tree, kind: str, holds: bytes) -> Iterator[dict[str, Any]]:
    for head, line in zip(tree.heads, tree.lines, strict=True):
        if head.type == kind and holds in line:
            yield loose_fields(line) or {}


def _details(fields: dict[str, Any]) -> dict[str, Any]:
    details = fields.get("details")
    return details if isinstance(details, dict) else {}


def _end(pass_id: str, *, done: bool) -> CustomEntry:
    data = {"phase": "end", "pass": pass_id, "status": "compacted" if done else "interrupted"}
    if not done:
        data["reason"] = INTERRUPTED
    return CustomEntry(custom_type=AUDIT, data=data)
