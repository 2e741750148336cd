"""The branches of a session, for people: who hangs on whom, and where the leaf is."""

import msgspec

from tenure.messages.content import AssistantMessage, ToolResultMessage, calls_of, text_of
from tenure.runtime.doors.transcripts.catalogue import EntryView, SessionSnapshot, shortened
from tenure.runtime.doors.transcripts.exporting import leaf_path
from tenure.runtime.doors.transcripts.foreign import message_of
from tenure.runtime.doors.transcripts.scan import loose_fields

TEXT_CHARS_MAX = 100


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with its place in the tree."""

    id: str
    parent_id: str | None
    depth: int
    """How many branchings stand above it: an entry that is the only child is as deep as its
    parent."""
    kind: str
    """`user`, `assistant`, `toolResult`, or the type of an entry that is no message."""
    text: str
    """What it says, on one line, shortened."""
    label: str
    on_path: bool
    """Whether it is on the path of the leaf."""


class SessionTree(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    session_id: str
    path: str
    leaf: str | None
    nodes: tuple[TreeNode, ...]
    """Parents before children, a branch behind the other."""


def tree_of(snapshot: SessionSnapshot) -> SessionTree:
    """Every readable entry; one whose parent is lost hangs on the readable one before it."""
    entries = [entry for entry in snapshot.entries if entry.id and entry.type]
    children: dict[str | None, list[EntryView]] = {}
    for entry in entries:
        children.setdefault(entry.parent_id, []).append(entry)
    labels = _labels(entries)
    path = frozenset(leaf_path(snapshot))
    nodes: list[TreeNode] = []
    roots = children.get(None, [])
    waiting = [(entry, 1 if len(roots) > 1 else 0) for entry in reversed(roots)]
    while waiting:
        entry, depth = waiting.pop()
        kind, text = _said(entry)
        nodes.append(
            TreeNode(
                id=entry.id,
                parent_id=entry.parent_id,
                depth=depth,
                kind=kind,
                text=text,
                label=labels.get(entry.id, ""),
                on_path=entry.id in path,
            )
        )
        below = children.get(entry.id, [])
        deeper = depth + 1 if len(below) > 1 else depth
        waiting += [(each, deeper) for each in reversed(below)]
    return SessionTree(
        session_id=snapshot.summary.id,
        path=snapshot.summary.path,
        leaf=snapshot.leaf,
        nodes=tuple(nodes),
    )


def _labels(entries: list[EntryView]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for entry in entries:
        if entry.type == "label":
            fields = loose_fields(entry.text.encode("utf-8", "replace")) or {}
            target, label = fields.get("targetId"), fields.get("label")
            if isinstance(target, str):
                labels[target] = label if isinstance(label, str) else ""
    return labels


def _said(entry: EntryView) -> tuple[str, str]:
    """What kind of entry it is, and the beginning of what it says."""
    fields = loose_fields(entry.text.encode("utf-8", "replace")) or {}
    message = message_of(fields.get("message"))
    if message is None:
        said = next(
            (
                value
                for name in ("name", "label", "summary", "customType", "modelId", "thinkingLevel")
                if isinstance(value := fields.get(name), str) and value
            ),
            "",
        )
        return entry.type, _line(said)
    text = text_of(message)
    if isinstance(message, AssistantMessage):
        calls = ", ".join(f"> {call.name}" for call in calls_of(message))
        text = f"{text} {calls}".strip()
        return "assistant", _line(text)
    if isinstance(message, ToolResultMessage):
        failed = " failed" if message.is_error else ""
        return "toolResult", _line(f"{message.tool_name}{failed}: {text}")
    return "user", _line(text)


def _line(text: str) -> str:
    return shortened(" ".join(text.split()), TEXT_CHARS_MAX)
