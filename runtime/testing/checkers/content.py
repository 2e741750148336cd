"""What stands in a transcript, read in a way of its own: line by line, with the json module."""

import json
from typing import Any

from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.nodes import FileNode, FolderNode, Node


def content_of(disk: MemoryDisk, path: str) -> bytes | None:
    """The bytes that a process would read; None where there is no file."""
    try:
        return bytes(disk.file(path).content)
    except OSError:
        return None


def durable_of(disk: MemoryDisk, path: str) -> bytes | None:
    """The bytes that survive a power loss now; None where the file would not."""
    node: Node | None = disk.folder("/")
    for part in path.split("/")[1:]:
        node = node.durable.get(part) if isinstance(node, FolderNode) else None
    return bytes(node.durable) if isinstance(node, FileNode) else None


def entries_of(data: bytes) -> list[dict[str, Any]]:
    """The readable entries, without the header, in file order.  An unfinished last line is none."""
    entries: list[dict[str, Any]] = []
    for line in data.split(b"\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("type") != "session" and "id" in entry:
            entries.append(entry)
    return entries


def branches_of(entries: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The path to each entry that nothing hangs on, in file order."""
    by_id = {entry["id"]: entry for entry in entries}
    inner = {entry.get("parentId") for entry in entries}
    branches: list[list[dict[str, Any]]] = []
    for entry in entries:
        if entry["id"] in inner:
            continue
        branch: dict[str, dict[str, Any]] = {}
        at: dict[str, Any] | None = entry
        while at is not None and at["id"] not in branch:
            branch[at["id"]] = at
            at = by_id.get(at.get("parentId") or "")
        branches.append(list(reversed(branch.values())))
    return branches


def calls_and_results(entries: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The ids of all tool calls, and those that results name."""
    calls: list[str] = []
    results: list[str] = []
    for entry in entries:
        message = entry.get("message")
        if not isinstance(message, dict):
            continue
        if message.get("role") == "toolResult":
            results.append(message["toolCallId"])
        elif message.get("role") == "assistant":
            blocks = message.get("content", [])
            calls += [block["id"] for block in blocks if block.get("type") == "toolCall"]
    return calls, results


def holds(data: bytes, entry_id: str) -> bool:
    """Whether an entry with this id stands in the bytes of a transcript."""
    return b'"id":"%b"' % entry_id.encode() in data
