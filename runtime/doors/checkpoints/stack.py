"""The stack of changes that can be undone, read from the entries of a transcript.  Pure.

The newest is last.  A change leaves the stack when the transcript says that its
undo is done, or that it changed nothing.  Where the end of a change, or of its
undo, was never written, it is uncertain and stays.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tenure.messages.checkpoints import CHECKPOINT, Certainty, FileImage, UndoRecord
from tenure.messages.tokens import SessionId


def undo_stack(
    entries: Iterable[Mapping[str, Any]], session_id: SessionId
) -> tuple[UndoRecord, ...]:
    """What can be undone in a session, oldest first.

    Args:
        entries: the fields of its entries, in the order of the file.
        session_id: changes of a session that this one was forked from are its own.
    """
    stack: dict[str, UndoRecord] = {}
    for fields in entries:
        data = fields.get("data")
        if fields.get("customType") == CHECKPOINT and isinstance(data, Mapping):
            _take(stack, data, session_id)
    return tuple(stack.values())


def _take(stack: dict[str, UndoRecord], data: Mapping[str, Any], session_id: SessionId) -> None:
    name = data.get("checkpoint")
    if not isinstance(name, str):
        return
    if data.get("phase") == "intent" and data.get("session") == session_id:
        record = _record(data)
        if record is not None:
            stack[name] = record
        return
    found = stack.get(name)
    if found is None:
        return
    match data.get("phase"):
        case "result":
            after = _images(data.get("after"))
            if _same(found.before, after):
                del stack[name]
            else:
                stack[name] = _with(found, after, "certain" if after else "uncertain")
        case "undo":
            stack[name] = _with(found, found.after, "uncertain")
        case "undone" if data.get("status") == "done":  # guard: APPROVE-7
            del stack[name]
        case "undone":
            certain: Certainty = "certain" if found.after else "uncertain"
            stack[name] = _with(found, found.after, certain)
        case _:
            pass


def _record(data: Mapping[str, Any]) -> UndoRecord | None:
    try:
        return UndoRecord(
            checkpoint=data["checkpoint"],
            turn_id=data["turn"],
            call_id=data["call"],
            tool=data["tool"],
            before=_images(data["before"]),
            after=(),
            certainty="uncertain",
        )
    except KeyError:
        return None


def _images(value: Any) -> tuple[FileImage, ...]:
    try:
        return msgspec.convert(value, tuple[FileImage, ...])
    except msgspec.ValidationError:
        return ()


def _same(before: tuple[FileImage, ...], after: tuple[FileImage, ...]) -> bool:
    """Whether the tool left every file as it was."""
    then = {image.path: image.digest for image in before}
    return bool(after) and then == {image.path: image.digest for image in after}


def _with(record: UndoRecord, after: tuple[FileImage, ...], certainty: Certainty) -> UndoRecord:
    return msgspec.structs.replace(record, after=after, certainty=certainty)
