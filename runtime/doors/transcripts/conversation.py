"""What a model is shown of a transcript: the messages of the leaf's path, ready to send."""

from typing import Any, Literal

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    calls_of,
)
from tenure.messages.entries import MessageEntry
from tenure.runtime.doors.transcripts.codec import parse_time
from tenure.runtime.doors.transcripts.foreign import content_of, message_of
from tenure.runtime.doors.transcripts.scan import loose_fields
from tenure.runtime.doors.transcripts.tree import ROOT, Head, Tree

INTERRUPTED = (
    "This call was interrupted before it gave a result. Its side effects are unknown: "
    "look at what it may have changed before you call it again."
)


class Shown(msgspec.Struct, frozen=True, gc=False):
    """One message that a model is shown, and where it comes from."""

    entry_id: str
    """Empty for what has no entry of its own: a summary, and what another program kept in it."""
    message: ChatMessage
    kind: Literal["prompt", "summary", "other"]
    """prompt: a user's own message.  summary: it stands for what was compacted."""
    since: bool
    """Whether it came after the last compaction."""


class History(msgspec.Struct, frozen=True):
    """What a model is shown, entry by entry: an immutable snapshot."""

    shown: tuple[Shown, ...]
    details: dict[str, Any]
    """Of the last compaction; empty for none."""


class Conversation:
    """Decodes the messages of a tree once, and keeps up with its leaf."""

    __slots__ = ("_decoded", "_path", "_tree")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._path: list[int] = []
        self._decoded: dict[int, ChatMessage | None] = {}

    def messages(self) -> tuple[ChatMessage, ...]:
        """The snapshot: calls and results pair one to one, in order.

        With a compaction on the path: its summary, the entries that it kept,
        then those behind it; only the last one counts.
        """
        return tuple(paired(self._shown(self._places())))

    def history(self) -> History:
        """The same messages with their entries, as they stand: results are not sorted."""
        places = self._places()
        heads = self._tree.heads
        behind = [index for index, at in enumerate(places) if heads[at].type == "compaction"]
        if not behind:
            return History(tuple(self._entries(places, since=True)), {})
        index = behind[-1]
        (summary, *tail), kept_from = self._compaction(places[index])
        first = next((i for i in range(index) if heads[places[i]].id == kept_from), index)
        shown = [Shown("", summary, "summary", False)]
        shown += [Shown("", message, "other", False) for message in tail]
        shown += self._entries(places[first:index], since=False)
        shown += self._entries(places[index:], since=True)
        details = (loose_fields(self._tree.lines[places[index]]) or {}).get("details")
        return History(tuple(shown), details if isinstance(details, dict) else {})

    def open_calls(self, path: list[int] | None = None) -> list[tuple[int, ToolCallBlock]]:
        """The tool calls of a path without a result, with the place of their message.

        Args:
            path: the places; None for the leaf's.
        """
        waiting: dict[str, list[tuple[int, ToolCallBlock]]] = {}
        heads, lines = self._tree.heads, self._tree.lines
        for place in self._places() if path is None else path:
            message = heads[place].message
            if message is None:
                continue
            if message.role == "toolResult":
                calls = waiting.get(message.tool_call_id)
                if calls:
                    calls.pop()
            elif message.role == "assistant" and b'"toolCall"' in lines[place]:
                decoded = self._message(place)
                if isinstance(decoded, AssistantMessage):
                    for call in calls_of(decoded):
                        waiting.setdefault(call.id, []).append((place, call))
        return sorted(
            (found for calls in waiting.values() for found in calls), key=lambda found: found[0]
        )

    def _places(self) -> list[int]:
        """The places of the leaf's path; walks only what is new."""
        known = self._path[-1] if self._path else ROOT
        fresh = self._tree.path(behind=known)
        first = self._tree.parent_place(fresh[0]) if fresh else self._tree.leaf_place
        if first == known:
            self._path.extend(fresh)
        else:
            self._path = fresh
        return self._path

    def _shown(self, places: list[int]) -> list[ChatMessage]:
        heads = self._tree.heads
        for index in range(len(places) - 1, -1, -1):
            if heads[places[index]].type == "compaction":
                summary, kept_from = self._compaction(places[index])
                kept = places[:index]
                first = next((i for i, at in enumerate(kept) if heads[at].id == kept_from), index)
                return summary + self._decode(places[first:index]) + self._decode(places[index:])
        return self._decode(places)

    def _decode(self, places: list[int]) -> list[ChatMessage]:
        decoded = (self._message(place) for place in places)
        return [message for message in decoded if message is not None]

    def _entries(self, places: list[int], *, since: bool) -> list[Shown]:
        heads = self._tree.heads
        shown: list[Shown] = []
        for place in places:
            message = self._message(place)
            if message is None:
                continue
            head = heads[place]
            prompt = head.type == "message" and isinstance(message, UserMessage)
            shown.append(Shown(head.id, message, "prompt" if prompt else "other", since))
        return shown

    def _message(self, place: int) -> ChatMessage | None:
        try:
            return self._decoded[place]
        except KeyError:
            message = message_at(self._tree.heads[place], self._tree.lines[place])
            self._decoded[place] = message
            return message

    def _compaction(self, place: int) -> tuple[list[ChatMessage], str]:
        """The summary, with what later releases of pi keep inside the entry, and the kept id."""
        fields = loose_fields(self._tree.lines[place]) or {}
        moment = parse_time(self._tree.heads[place].timestamp)
        text = f"<conversation-summary>\n{fields.get('summary', '')}\n</conversation-summary>"
        shown: list[ChatMessage] = [_said_by_user(text, moment)]
        tail = fields.get("retainedTail")
        if isinstance(tail, list):
            messages = (message_of(held) for held in tail)
            return shown + [message for message in messages if message is not None], ""
        kept_from = fields.get("firstKeptEntryId")
        return shown, kept_from if isinstance(kept_from, str) else ""


def paired(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages with exactly one result behind each call, in the order of the calls.

    A result without its call is left out; a call without a result gets one that
    says so.  Ids may come again in a later turn: a result belongs to the newest
    call that waits under its id.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    results: dict[tuple[int, int], ToolResultMessage] = {}
    for at, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for number, call in enumerate(calls_of(message)):
                waiting.setdefault(call.id, []).append((at, number))
        elif isinstance(message, ToolResultMessage):
            slots = waiting.get(message.tool_call_id)
            if slots:  # guard: TURN-7 keeps
                results[slots.pop()] = message
    shown: list[ChatMessage] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            continue
        shown.append(message)
        if isinstance(message, AssistantMessage):
            for number, call in enumerate(calls_of(message)):
                result = results.get((at, number))
                shown.append(result or interrupted(call, message.timestamp))
    return shown


def interrupted(call: ToolCallBlock, timestamp_ms: int) -> ToolResultMessage:
    """The result of a call that never got one."""
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextBlock(text=INTERRUPTED),),
        is_error=True,
        timestamp=timestamp_ms,
    )


_decode_entry = msgspec.json.Decoder(MessageEntry).decode


def message_at(head: Head, line: bytes) -> ChatMessage | None:
    """The message that an entry shows to a model; None for none."""
    if head.type == "message":
        try:
            return _decode_entry(line).message
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return message_of((loose_fields(line) or {}).get("message"))
    if head.type == "custom_message":
        content = content_of((loose_fields(line) or {}).get("content"))
        return UserMessage(content=content, timestamp=parse_time(head.timestamp))
    if head.type == "branch_summary":
        summary = (loose_fields(line) or {}).get("summary")
        if isinstance(summary, str) and summary:
            text = f"<branch-summary>\n{summary}\n</branch-summary>"
            return _said_by_user(text, parse_time(head.timestamp))
    return None


def _said_by_user(text: str, timestamp_ms: int) -> UserMessage:
    return UserMessage(content=(TextBlock(text=text),), timestamp=timestamp_ms)
