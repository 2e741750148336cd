"""What must outlive the messages that a summary stands for: usage, files and references."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ToolResultMessage,
    Usage,
    calls_of,
    text_of,
)

READING = frozenset({"read", "ls", "search"})
CHANGING = frozenset({"write", "edit", "rename", "delete"})
LISTED_MAX = 200
"""Files and references that are listed of each kind; the newest are kept."""

_ARTIFACT = re.compile(r"\bartifact:([A-Za-z0-9][A-Za-z0-9_-]*)")
_ARTIFACT_KEYS = ("artifactId", "sourceArtifactId")


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """Kept in the entry's details, and folded again by the next pass."""

    usage: Usage
    """Of all messages that were summarised, by this pass and by those before it."""
    files_read: tuple[str, ...]
    files_modified: tuple[str, ...]
    artifacts: tuple[str, ...]

    def details(self) -> dict[str, Any]:
        """As they stand in the entry; the lists of files are named as pi names them."""
        return {
            "compactedUsage": msgspec.to_builtins(self.usage),
            "readFiles": list(self.files_read),
            "modifiedFiles": list(self.files_modified),
            "artifacts": list(self.artifacts),
        }


def carried_of(messages: Sequence[ChatMessage], before: dict[str, Any]) -> Carried:
    """What these messages leave behind, together with what an earlier pass carried.

    Args:
        before: the details of the last compaction; whatever they hold.
    """
    read = _strings(before.get("readFiles"))
    modified = _strings(before.get("modifiedFiles"))
    artifacts = _strings(before.get("artifacts"))
    usage = _usage(before.get("compactedUsage"))
    for message in messages:
        artifacts += _artifacts(message)
        if not isinstance(message, AssistantMessage):
            continue
        usage = message.usage if usage is None else usage.plus(message.usage)
        for call in calls_of(message):
            path = call.arguments.get("path")
            if isinstance(path, str) and call.name in READING | CHANGING:
                (modified if call.name in CHANGING else read).append(path)
    return Carried(
        usage=usage or Usage(),
        files_read=_newest(read),
        files_modified=_newest(modified),
        artifacts=_newest(artifacts),
    )


def _artifacts(message: ChatMessage) -> list[str]:
    found = _ARTIFACT.findall(text_of(message))
    if isinstance(message, ToolResultMessage) and isinstance(message.details, dict):
        named = (message.details.get(key) for key in _ARTIFACT_KEYS)
        found += [each for each in named if isinstance(each, str) and each]
    return found


def _newest(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reversed(list(values))))[:LISTED_MAX][::-1]


def _strings(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, str)]


def _usage(value: object) -> Usage | None:
    try:
        return msgspec.convert(value, Usage)
    except msgspec.ValidationError:
        return None
