"""What waits in a session, and the turn that has no end: read from its entries.

The queue belongs to the session and not to a branch of it: it is read from the
whole file, in the order of the file.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from tenure.messages.entries import CustomEntry
from tenure.messages.queue import (
    DELIVERED_KEY,
    QUEUE_ENTRY,
    Add,
    Edit,
    Gone,
    Move,
    QueuedPrompt,
    QueueRecord,
    entry_of,
    moved,
    place_for,
)
from tenure.messages.tokens import QueueItemId, SessionId, TurnId, turn_id
from tenure.messages.turn import TURN_ENTRY
from tenure.runtime.doors.transcripts.scan import loose_fields
from tenure.runtime.doors.transcripts.tree import Tree

_QUEUE_BYTES = QUEUE_ENTRY.encode()
_TURN_BYTES = TURN_ENTRY.encode()


def waiting_in(tree: Tree) -> tuple[QueuedPrompt, ...]:
    """The prompts that wait, next first.  A record that cannot be read changes nothing."""
    items: tuple[QueuedPrompt, ...] = ()
    for head, line in zip(tree.heads, tree.lines, strict=True):
        if head.type == "custom" and _QUEUE_BYTES in line:
            items = _after(items, line)
        key = head.tenure.key if items and head.tenure is not None else ""
        if key.startswith(DELIVERED_KEY):  # guard: TURN-10
            items = _without(items, key[len(DELIVERED_KEY) :])
    return items


def returning(items: Sequence[QueueItemId]) -> list[CustomEntry]:
    """The records that say that these were given back."""
    return [entry_of(Gone(item_id=item_id, fate="returned")) for item_id in items]


def interrupted_in(tree: Tree, session_id: SessionId) -> TurnId | None:
    """The turn whose words are the last of the leaf's path, where it came to no end.

    The last word of a turn that ended is the model's.  A turn that was stopped
    before it had one says so in an entry of its own.
    """
    for place in reversed(tree.path()):
        head = tree.heads[place]
        if head.type == "custom":
            if _TURN_BYTES in tree.lines[place] and _phase(tree.lines[place]) == "stopped":
                return None
        elif head.type == "message" and head.message is not None:
            said_by_model = head.message.role not in ("user", "toolResult")
            if said_by_model or head.tenure is None or not head.tenure.turn:
                return None
            return turn_id(session_id, head.tenure.turn)
        elif head.type in ("custom_message", "branch_summary"):
            return None
    return None


def _after(items: tuple[QueuedPrompt, ...], line: bytes) -> tuple[QueuedPrompt, ...]:
    match _record(line):
        case Add(item=item):
            at = place_for(tuple(each.delivery for each in items), item.delivery)
            return (*items[:at], item, *items[at:])
        case Edit(item_id=item_id, text=text):
            return tuple(
                replace(each, text=text) if each.item_id == item_id else each for each in items
            )
        case Move(item_id=item_id, position=position):
            at = next((n for n, each in enumerate(items) if each.item_id == item_id), -1)
            return items if at < 0 else moved(items, at, position)
        case Gone(item_id=item_id):
            return _without(items, item_id)
        case None:
            return items


def _without(items: tuple[QueuedPrompt, ...], item_id: str) -> tuple[QueuedPrompt, ...]:
    return tuple(each for each in items if each.item_id != item_id)


def _record(line: bytes) -> QueueRecord | None:
    fields = loose_fields(line) or {}
    if fields.get("customType") != QUEUE_ENTRY:
        return None
    try:
        found: QueueRecord = msgspec.convert(fields.get("data"), QueueRecord)
    except msgspec.ValidationError:
        return None
    return found


def _phase(line: bytes) -> Any:
    fields = loose_fields(line) or {}
    data = fields.get("data")
    if fields.get("customType") != TURN_ENTRY or not isinstance(data, dict):
        return None
    return data.get("phase")
