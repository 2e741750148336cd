"""A seat for the transcripts kit: it opens and appends as a SessionActor would, step by step."""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    ChatMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from tenure.messages.entries import EntryBody, MessageEntry, Record
from tenure.messages.tokens import EntryId, SessionId, SessionToken
from tenure.messages.transcripts import (
    AppendRecords,
    CloseTranscript,
    NoteSeat,
    Opened,
    OpenTranscript,
    ReadSeat,
    RecordsAppended,
    SettleTranscript,
    Target,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.testing.conformance.checks import fail

NOW_MS = 1_700_000_000_000


class TranscriptDoor(Protocol):
    """The transcript door of one host."""

    async def open(self, effect: OpenTranscript, context: Context) -> Outcome: ...
    async def append(self, effect: AppendRecords, context: Context) -> Outcome: ...
    async def settle(self, effect: SettleTranscript, context: Context) -> Outcome: ...
    async def close(self, effect: CloseTranscript, context: Context) -> Outcome: ...
    async def read_seat(self, effect: ReadSeat, context: Context) -> Outcome: ...
    async def note_seat(self, effect: NoteSeat, context: Context) -> Outcome: ...
    async def release_seat(self, seat: str) -> None: ...
    def context(self, session_id: SessionId) -> tuple[ChatMessage, ...]: ...


class SeatOnTest:
    """A seat of a host, that keeps leaf and count as its SessionActor would."""

    def __init__(self, door: TranscriptDoor, name: str = "main") -> None:
        self.door = door
        self.context = Context(owner=f"{name}/session", seat=name, progress=lambda outcome: None)
        self.opened: Opened | None = None
        self.leaf: EntryId | None = None
        self.seq = 0

    async def open(self, target: Target) -> Opened:
        outcome = await self.door.open(OpenTranscript(target=target), self.context)
        if not isinstance(outcome, TranscriptOpened):
            fail(f"{shown(target)} was not opened: {shown(outcome)}")
        return self._take(outcome.opened)

    async def refused(self, target: Target) -> msgspec.Struct:
        outcome = await self.door.open(OpenTranscript(target=target), self.context)
        if not isinstance(outcome, TranscriptNotOpened):
            fail(f"{shown(target)} was opened: {shown(outcome)}")
        return outcome.refusal

    @property
    def token(self) -> SessionToken:
        assert self.opened is not None
        return self.opened.token

    async def try_append(self, *bodies: EntryBody, after: EntryId | None, key: str = "") -> Outcome:
        records = tuple(self._records(bodies, after, key))
        effect = AppendRecords(token=self.token, after=after, records=records)
        outcome = await self.door.append(effect, self.context)
        if isinstance(outcome, RecordsAppended):
            self.leaf, self.seq = records[-1].id, records[-1].seq
        return outcome

    async def append(self, *bodies: EntryBody, key: str = "") -> None:
        outcome = await self.try_append(*bodies, after=self.leaf, key=key)
        if not isinstance(outcome, RecordsAppended):
            fail(f"an append behind the leaf was not taken: {shown(outcome)}")

    async def close(self) -> Outcome:
        effect = CloseTranscript(session_id=self.token.session_id)
        return await self.door.close(effect, self.context)

    async def settle(self) -> Opened:
        outcome = await self.door.settle(SettleTranscript(token=self.token), self.context)
        if not isinstance(outcome, TranscriptSettled):
            fail(f"a live session was not settled: {shown(outcome)}")
        return self._take(outcome.opened)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        return self.door.context(self.token.session_id)

    @property
    def texts(self) -> list[str]:
        return [text_of(message) for message in self.messages]

    def _take(self, opened: Opened) -> Opened:
        self.opened, self.leaf, self.seq = opened, opened.leaf, opened.seq
        return opened

    def _records(
        self, bodies: tuple[EntryBody, ...], after: EntryId | None, key: str
    ) -> Iterator[Record]:
        parent = after
        for place, body in enumerate(bodies, 1):
            entry_id = EntryId(f"{self.token.epoch:04x}{self.seq + place:012x}")
            yield Record(
                id=entry_id,
                parent_id=parent,
                timestamp_ms=NOW_MS + self.seq + place,
                seq=self.seq + place,
                turn=1,
                key=key,
                body=body,
            )
            parent = entry_id


def user(text: str) -> MessageEntry:
    """What a user says."""
    return MessageEntry(message=UserMessage(content=text, timestamp=NOW_MS))


def calls(*ids: str) -> MessageEntry:
    """A message of the model with these tool calls."""
    calls = tuple(ToolCallBlock(id=call, name="read", arguments={}) for call in ids)
    content: tuple[AssistantBlock, ...] = (TextBlock(text="look"), *calls)
    return MessageEntry(message=AssistantMessage(content=content, stop_reason="toolUse"))


def result(call: str) -> MessageEntry:
    """The result of a call."""
    content = (TextBlock(text="found"),)
    message = ToolResultMessage(tool_call_id=call, tool_name="read", content=content)
    return MessageEntry(message=message)


def shown(value: object) -> str:
    """A value in a reason, cut."""
    return repr(value)[:300]
