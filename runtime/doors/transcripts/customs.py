"""The entries of ours in a transcript, by kind."""

from typing import Any

from tenure.runtime.doors.transcripts.scan import loose_fields
from tenure.runtime.doors.transcripts.tree import Tree


def custom_fields(tree: Tree, custom_type: str) -> list[dict[str, Any]]:
    """The fields of every entry of this kind, in the order of the file."""
    holds = custom_type.encode()
    found: list[dict[str, Any]] = []
    for head, line in zip(tree.heads, tree.lines, strict=True):
        if head.type == "custom" and holds in line:
            fields = loose_fields(line) or {}
            if fields.get("customType") == custom_type:
                found.append(fields)
    return found
