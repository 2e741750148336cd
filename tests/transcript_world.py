"""A simulated machine with a transcript door on it, and a seat that appends as an owner would."""

from collections.abc import Coroutine
from typing import Any

from tenure.messages.base import Outcome
from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tenure.messages.entries import EntryBody, MessageEntry, Record
from tenure.messages.tokens import SessionId, SessionToken
from tenure.messages.transcripts import (
    Again,
    AppendRecords,
    ById,
    CloseTranscript,
    Fresh,
    Newest,
    NoteSeat,
    Opened,
    OpenTranscript,
    ReadSeat,
    SettleTranscript,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import Transcripts
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves

ROOT = "/work"
SESSIONS = f"{ROOT}/.tenure/sessions"
Target = ById | Newest | Fresh | Again


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end without an event loop: simulated workers need none."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value


def user(text: str) -> MessageEntry:
    return MessageEntry(message=UserMessage(content=text, timestamp=1_700_000_000_000))


def answer(text: str, *calls: str) -> MessageEntry:
    """An assistant message with tool calls of these ids."""
    blocks = [ToolCallBlock(id=call, name="read", arguments={"path": call}) for call in calls]
    message = AssistantMessage(content=(TextBlock(text=text), *blocks), timestamp=1)
    return MessageEntry(message=message)


def result(call: str, text: str = "done") -> MessageEntry:
    return MessageEntry(
        message=ToolResultMessage(
            tool_call_id=call, tool_name="read", content=(TextBlock(text=text),)
        )
    )


class Seat:
    """One seat of a host: remembers what it was told, as its SessionActor would."""

    def __init__(self, door: Transcripts, leaves: Leaves, name: str) -> None:
        self.door = door
        self.leaves = leaves
        self.context = Context(owner=f"{name}/session", seat=name, progress=lambda outcome: None)
        self.opened: Opened | None = None
        self.leaf: str | None = None
        self.seq = 0

    @property
    def token(self) -> SessionToken:
        assert self.opened is not None
        return self.opened.token

    @property
    def id(self) -> SessionId:
        return self.token.session_id

    def try_open(self, target: Target) -> Outcome:
        outcome = run(self.door.open(OpenTranscript(target=target), self.context))
        if isinstance(outcome, TranscriptOpened):
            self._take(outcome.opened)
        return outcome

    def open(self, target: Target) -> Opened:
        outcome = self.try_open(target)
        assert isinstance(outcome, TranscriptOpened), outcome
        return outcome.opened

    def refused(self, target: Target) -> Any:
        """The refusal that this target gets."""
        outcome = self.try_open(target)
        assert isinstance(outcome, TranscriptNotOpened), outcome
        return outcome.refusal

    def records(self, *bodies: EntryBody, turn: int = 0, key: str = "") -> tuple[Record, ...]:
        records: list[Record] = []
        parent = self.leaf
        for place, body in enumerate(bodies, start=1):
            record = Record(
                id=self.leaves.entropy.fresh(),
                parent_id=parent,
                timestamp_ms=self.leaves.clock.now_ms(),
                seq=self.seq + place,
                turn=turn,
                key=key,
                body=body,
            )
            records.append(record)
            parent = record.id
        return tuple(records)

    def append(self, *bodies: EntryBody, turn: int = 0, key: str = "") -> Outcome:
        return self.append_records(self.records(*bodies, turn=turn, key=key), after=self.leaf)

    def append_records(self, records: tuple[Record, ...], after: str | None) -> Outcome:
        effect = AppendRecords(token=self.token, after=after, records=records)
        outcome = run(self.door.append(effect, self.context))
        if type(outcome).__name__ == "RecordsAppended" and records:
            self.leaf, self.seq = records[-1].id, records[-1].seq
        return outcome

    def settle(self) -> Outcome:
        outcome = run(self.door.settle(SettleTranscript(token=self.token), self.context))
        if isinstance(outcome, TranscriptSettled):
            self._take(outcome.opened)
        return outcome

    def close(self) -> Outcome:
        return run(self.door.close(CloseTranscript(session_id=self.id), self.context))

    def note(self) -> Outcome:
        return run(self.door.note_seat(NoteSeat(session_id=self.id), self.context))

    def remembered(self) -> Outcome:
        return run(self.door.read_seat(ReadSeat(), self.context))

    def release(self) -> None:
        run(self.door.release_seat(self.context.seat))

    def texts(self) -> list[str]:
        """What a model is shown, in short."""
        return [short(message) for message in self.door.context(self.id)]

    def _take(self, opened: Opened) -> None:
        self.opened = opened
        self.leaf, self.seq = opened.leaf, opened.seq


def short(message: Any) -> str:
    if isinstance(message.content, str):
        return f"{role(message)}: {message.content}"
    parts = [
        f"call {block.id}" if isinstance(block, ToolCallBlock) else getattr(block, "text", "image")
        for block in message.content
    ]
    return f"{role(message)}: {' + '.join(parts)}"


def role(message: Any) -> str:
    return str(message.__struct_config__.tag)


class Machine:
    """One disk, and hosts that are processes of it."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.put_folder(ROOT)

    def seat(self, host: str = "host", name: str = "main", **options: Any) -> Seat:
        """A seat in a new host, which is a new process."""
        leaves = memory_leaves(self.disk)
        door = Transcripts(leaves, ROOT, Claims(leaves, host), host, **options)
        return Seat(door, leaves, name)

    def put_session(self, session_id: str, *lines: bytes, end: bytes = b"\n") -> str:
        """A transcript that another program wrote."""
        path = f"{SESSIONS}/2026-01-01T00-00-00-000Z_{session_id}.jsonl"
        self.disk.put(path, b"\n".join(lines) + end)
        return path

    def content(self, path: str) -> bytes:
        return self.disk.content(path)

    def lines(self, path: str) -> list[bytes]:
        return self.disk.content(path).split(b"\n")[:-1]

    def files(self) -> list[str]:
        """What lies on the disk, without the claims."""
        return [path for path in self.disk.paths() if "/claims/" not in path]

    def kill(self, seat: Seat) -> None:
        """The host's process dies as by kill -9: its locks are free."""
        self.disk.processes.kill(seat.leaves.processes.me())


def beside(seat: Seat, name: str) -> Seat:
    """Another seat of the same host."""
    return Seat(seat.door, seat.leaves, name)
