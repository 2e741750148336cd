"""Expectations on replies, events and files that say, when they fail, what was there instead."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from tenure.messages.base import Event, Refusal, Reply
from tenure.messages.bus import Published
from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ToolResultMessage,
    UserMessage,
    calls_of,
    text_of,
)
from tenure.runtime.doors.transcripts import SessionFound, find_session, read_session
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.world import ROOT, World

R = TypeVar("R", bound=Reply)
E = TypeVar("E", bound=Event)

SHOWN_CHARS_MAX = 300


def expect_reply(reply: Reply, kind: type[R], **fields: object) -> R:
    """The reply, which must be of this class and have these fields."""
    __tracebackhide__ = True
    wrong = _wrong(reply, kind, fields)
    if wrong:
        remedy = f"\nit says: {reply.remedy}" if isinstance(reply, Refusal) else ""
        raise AssertionError(f"{wrong}{remedy}")
    assert isinstance(reply, kind)
    return reply


def expect_event(events: Iterable[Event], kind: type[E], **fields: object) -> E:
    """The first event of this class with these fields."""
    __tracebackhide__ = True
    seen = tuple(events)
    for event in seen:
        if isinstance(event, kind) and not _wrong(event, kind, fields):
            return event
    wanted = ", ".join([kind.__name__, *(f"{name}={value!r}" for name, value in fields.items())])
    shown = "\n".join(f"  {short(event)}" for event in seen) or "  none"
    raise AssertionError(f"no event {wanted}; the events were:\n{shown}")


def _wrong(message: msgspec.Struct, kind: type[Any], fields: dict[str, object]) -> str:
    if not isinstance(message, kind):
        return f"expected {kind.__name__}, got {short(message)}"
    for name, value in fields.items():
        got = getattr(message, name)
        if got != value:
            return f"expected {kind.__name__} with {name}={value!r}, got {name}={got!r}"
    return ""


def short(message: msgspec.Struct) -> str:
    """A message without what has its usual value."""
    fields = msgspec.structs.fields(message)
    values = {field.name: getattr(message, field.name) for field in fields}
    unusual = [
        f"{field.name}={values[field.name]!r}"
        for field in fields
        if field.required or values[field.name] != field.default
    ]
    text = f"{type(message).__name__}({', '.join(unusual)})"
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."


# --- events ---------------------------------------------------------------------------------


class EventLog(Watcher):
    """Every event of every host of a world, in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.published_by: list[tuple[str, Published]] = []
        """The run of the host (`a1`), and the event with its seat."""

    def published(self, host: str, published: Published) -> None:
        self.published_by.append((host, published))

    def of(self, kind: type[E], seat: str | None = None) -> list[E]:
        """The events of this class, of one seat or of all."""
        return [
            published.event
            for _, published in self.published_by
            if isinstance(published.event, kind) and seat in (None, published.seat)
        ]

    @property
    def events(self) -> list[Event]:
        return [published.event for _, published in self.published_by]


def events_of(world: World) -> EventLog:
    """A log of what is published in this world from now on."""
    log = EventLog()
    world.watchers.add(log)
    return log


# --- files ----------------------------------------------------------------------------------


def transcript_of(world: World, session_id: str, root: str = ROOT) -> list[str]:
    """The conversation as the disk holds it now, one short line a message.

    `user: hello`, `assistant: look first + call read(c1)`, `result c1: ...`.  It is read
    as another program would read it: no host is asked, and nothing is written.

    Raises:
        AssertionError: there is no such session on the disk.
    """
    disk = world.disk
    calls, disk.on_call = disk.on_call, None  # looking is no part of the run
    try:
        leaves = memory_leaves(disk)
        found = find_session(leaves, root, session_id)
        if not isinstance(found, SessionFound):
            raise AssertionError(f"there is no session {session_id!r} in {root}")
        return [_line(message) for message in read_session(leaves, found.path).messages]
    finally:
        disk.on_call = calls


def _line(message: ChatMessage) -> str:
    text = text_of(message)
    match message:
        case UserMessage():
            return f"user: {text}"
        case AssistantMessage():
            calls = [f"call {call.name}({call.id})" for call in calls_of(message)]
            return f"assistant: {' + '.join([*([text] if text else []), *calls])}"
        case ToolResultMessage():
            wrong = "error " if message.is_error else ""
            return f"{wrong}result {message.tool_call_id}: {text}"
