"""A session as people read it: the conversation in order, with what is damaged marked."""

import json
from collections.abc import Iterator
from typing import Any

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from tenure.runtime.cli.listing import moment
from tenure.runtime.cli.screen import print_text, shortly
from tenure.runtime.cli.usage import usage_lines
from tenure.runtime.doors.transcripts import EntryView, SessionSnapshot
from tenure.runtime.doors.transcripts.foreign import message_of
from tenure.runtime.doors.transcripts.scan import loose_fields

RESULT_LINES_MAX = 12
DAMAGED_CHARS_MAX = 300

_MARKS = {
    "altered": "ALTERED: its checksum does not fit, so it is not served",
    "unreadable": "UNREADABLE",
    "out_of_epoch": "OUT OF EPOCH: written by a process that no longer had the session",
    "unverified": "unverified: written by another program",
}


def print_story(snapshot: SessionSnapshot) -> None:
    """The leaf's conversation; damaged lines stand where they are in the file."""
    for line in _head(snapshot):
        print_text(line + "\n")
    path = _leaf_path(snapshot)
    aside = 0
    for entry in snapshot.entries:
        if entry.id and entry.id not in path and entry.state in ("intact", "unverified"):
            aside += 1
            continue
        for line in entry_lines(entry):
            print_text(line + "\n")
    if aside:
        print_text(f"\n({aside} entries of other branches are not shown; --json has them)\n")


def _head(snapshot: SessionSnapshot) -> Iterator[str]:
    summary, damage = snapshot.summary, snapshot.damage
    yield f"session {summary.id}" + (f"  {summary.name}" if summary.name else "")
    yield f"{summary.path}"
    yield f"begun {moment(summary.created_ms)}, {summary.messages} messages"
    yield from usage_lines(snapshot.spending)
    told = {
        "unreadable lines": damage.unreadable_lines,
        "altered records": damage.altered_records,
        "records out of their epoch": damage.out_of_epoch_records,
        "records of other programs": damage.unverified_records,
        "bytes of an unfinished last line": damage.torn_bytes,
    }
    if any(told.values()):
        yield ", ".join(f"{count} {what}" for what, count in told.items() if count)


def _leaf_path(snapshot: SessionSnapshot) -> frozenset[str]:
    parents = {entry.id: entry.parent_id for entry in snapshot.entries if entry.id}
    path: set[str] = set()
    at = snapshot.leaf
    while at is not None and at not in path:
        path.add(at)
        at = parents.get(at)
    return frozenset(path)


def entry_lines(entry: EntryView) -> Iterator[str]:
    """One entry, or a damaged line, as people read it."""
    if entry.state != "intact":
        yield f"\n!! line {entry.line} {_MARKS[entry.state]}"
    if entry.state in ("altered", "unreadable"):
        cut = "…" if len(entry.text) > DAMAGED_CHARS_MAX else ""
        yield f"   {entry.text[:DAMAGED_CHARS_MAX]}{cut}"
        return
    fields = loose_fields(entry.text.encode("utf-8", "surrogatepass")) or {}
    message = message_of(fields.get("message"))
    if message is None:
        yield f"\n-- {entry.type} {_brief(fields)}".rstrip()
        return
    yield from _message(message)


def _message(message: ChatMessage) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"\n[{moment(message.timestamp)}] you"
            yield from _text(text_of(message))
            yield from _images(message.content)
        case AssistantMessage():
            yield f"\n[{moment(message.timestamp)}] {message.model or 'model'}"
            for block in message.content:
                yield from _block(block)
            if message.stop_reason == "aborted":
                yield "  (stopped here)"
            elif message.stop_reason == "length":
                yield "  (cut off by the model's length limit)"
            elif message.stop_reason == "error":
                yield f"  (failed: {message.error_message or 'no reason given'})"
        case ToolResultMessage():
            failed = " failed" if message.is_error else ""
            yield f"  < {message.tool_name}{failed}"
            yield from _text(_shortened(text_of(message)), indent="    ")
            yield from _images(message.content)


def _block(block: TextBlock | ThinkingBlock | ToolCallBlock) -> Iterator[str]:
    match block:
        case TextBlock(text=text):
            yield from _text(text)
        case ThinkingBlock(thinking=thinking):
            yield from _text(thinking, indent="  ~ ")
        case ToolCallBlock(name=name, arguments=arguments):
            yield f"  > {name} {shortly(arguments)}"


def _text(text: str, indent: str = "  ") -> Iterator[str]:
    for line in text.rstrip("\n").split("\n"):
        yield f"{indent}{line}".rstrip()


def _images(content: object) -> Iterator[str]:
    if isinstance(content, tuple):
        for block in content:
            if isinstance(block, ImageBlock):
                yield f"  ({block.mime_type}, {len(block.data) * 3 // 4:,} bytes)"


def _shortened(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= RESULT_LINES_MAX:
        return text
    kept = "\n".join(lines[:RESULT_LINES_MAX])
    return f"{kept}\n… {len(lines) - RESULT_LINES_MAX} more lines"


def _brief(fields: dict[str, Any]) -> str:
    """What an entry that is no message says, beside where it hangs."""
    place = ("type", "id", "parentId", "timestamp", "tenure")
    said = {name: value for name, value in fields.items() if name not in place}
    return json.dumps(said, ensure_ascii=False)[:DAMAGED_CHARS_MAX] if said else ""
