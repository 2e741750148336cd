"""A session as a document: Markdown for people, JSON for programs."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from tenure.runtime.doors.transcripts.catalogue import SessionSnapshot, shortened
from tenure.runtime.doors.transcripts.codec import iso_time, portable
from tenure.runtime.doors.transcripts.scan import loose_fields
from tenure.runtime.doors.transcripts.titles import auto_title, without_preamble

Form = Literal["markdown", "json"]

TITLE_CHARS_MAX = 80
VALUE_CHARS_MAX = 200

_SUMMARY = re.compile(
    r"\A<(conversation|branch)-summary>\n(?P<text>.*)\n</\1-summary>\Z", re.DOTALL
)
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*#^\[\]]+')


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A document, and the file name that suits it."""

    file_name: str
    text: str


class NothingToExport(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The conversation has no message yet."""

    path: str

    @property
    def remedy(self) -> str:
        return f"{self.path}: nothing was said in this session yet"


def export_session(
    snapshot: SessionSnapshot, form: Form, now_ms: int
) -> Exported | NothingToExport:
    """The conversation as it stands, from the first message of the leaf's path.

    Args:
        now_ms: of the export; it is in the file name, in UTC.
    """
    if not snapshot.messages:
        return NothingToExport(path=snapshot.summary.path)
    title = title_of(snapshot)
    stamp = iso_time(now_ms)[:19].replace(":", "-").replace("T", " ")
    name = f"{_file_name(title)} {stamp}Z"
    if form == "json":
        return Exported(file_name=f"{name}.json", text=_json(snapshot, title))
    return Exported(file_name=f"{name}.md", text="\n".join(_markdown(snapshot, title)) + "\n")


def title_of(snapshot: SessionSnapshot) -> str:
    """The session's name, else the beginning of its first prompt."""
    summary = snapshot.summary
    return shortened(summary.name or auto_title(summary.first_text) or "Session", TITLE_CHARS_MAX)


def _file_name(title: str) -> str:
    name = " ".join(_NOT_IN_NAMES.sub(" ", title).split()).strip(". ")
    return name or "Session"


def _json(snapshot: SessionSnapshot, title: str) -> str:
    entries = [loose_fields(each.text.encode("utf-8", "replace")) for each in snapshot.entries]
    path = set(leaf_path(snapshot))
    document = {
        "title": title,
        "session": snapshot.summary.id,
        "source": snapshot.summary.path,
        "created": iso_time(snapshot.summary.created_ms),
        "updated": iso_time(snapshot.summary.updated_ms),
        "messages": portable(msgspec.to_builtins(snapshot.messages)),
        "entries": [
            fields
            for fields, each in zip(entries, snapshot.entries, strict=True)
            if fields is not None and each.id in path
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def leaf_path(snapshot: SessionSnapshot) -> tuple[str, ...]:
    """The ids of the leaf's path, from a root to the leaf."""
    parents = {entry.id: entry.parent_id for entry in snapshot.entries if entry.id}
    path: dict[str, None] = {}
    at = snapshot.leaf
    while at is not None and at not in path:
        path[at] = None
        at = parents.get(at)
    return tuple(reversed(path))


# --- Markdown ------------------------------------------------------------------------------


def _markdown(snapshot: SessionSnapshot, title: str) -> Iterator[str]:
    summary = snapshot.summary
    yield "---"
    yield f"title: {_yaml(title)}"
    yield f"created: {_yaml(iso_time(summary.created_ms))}"
    yield f"updated: {_yaml(iso_time(summary.updated_ms))}"
    yield f"source: {_yaml(summary.path)}"
    yield "---"
    yield f"\n# {_one_line(title)}"
    failed = {
        message.tool_call_id: message.is_error
        for message in snapshot.messages
        if isinstance(message, ToolResultMessage)
    }
    for message in snapshot.messages:
        yield from _section(message, failed)


def _yaml(text: str) -> str:
    """A double-quoted scalar: JSON strings are YAML, once no line break is raw in them."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\x85")


def _section(message: ChatMessage, failed: dict[str, bool]) -> Iterator[str]:
    match message:
        case UserMessage():
            yield from _asked(message)
        case AssistantMessage():
            yield from _answered(message, failed)
        case ToolResultMessage():
            return  # its call says whether it failed


def _asked(message: UserMessage) -> Iterator[str]:
    text = text_of(message)
    summary = _SUMMARY.match(text)
    if summary is not None:
        yield "\n## Summary of what came before\n"
        yield summary["text"]
        return
    yield f"\n## You{_at(message.timestamp)}\n"
    yield without_preamble(text)
    if not isinstance(message.content, str):
        for block in message.content:
            if isinstance(block, ImageBlock):
                yield f"\n*({block.mime_type}, {len(block.data) * 3 // 4:,} bytes)*"


def _answered(message: AssistantMessage, failed: dict[str, bool]) -> Iterator[str]:
    yield f"\n## Assistant{_at(message.timestamp)}\n"
    for block in message.content:
        match block:
            case TextBlock(text=text):
                yield text
            case ToolCallBlock():
                yield _call(block, failed)
            case _:
                pass  # thoughts are not for a document
    match message.stop_reason:
        case "aborted":
            yield "\n*(stopped here)*"
        case "length":
            yield "\n*(cut off by the model's length limit)*"
        case "error":
            yield f"\n*(failed: {message.error_message or 'no reason given'})*"


def _call(block: ToolCallBlock, failed: dict[str, bool]) -> str:
    flag = " (failed)" if failed.get(block.id, False) else ""
    arguments = " ".join(f"{name}={_value(value)}" for name, value in block.arguments.items())
    return (
        f"- `{_code(block.name)}`{flag} `{_code(arguments)}`"
        if arguments
        else (f"- `{_code(block.name)}`{flag}")
    )


def _value(value: Any) -> str:
    return shortened(json.dumps(portable(value), ensure_ascii=False), VALUE_CHARS_MAX)


def _code(text: str) -> str:
    return _one_line(text).replace("`", "'")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _at(timestamp_ms: int) -> str:
    if timestamp_ms <= 0:
        return ""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return ""
    return f", {moment:%Y-%m-%d %H:%M} UTC"
