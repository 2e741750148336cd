"""One open transcript in memory: what a seat holds between its open and its close."""

from collections.abc import Callable, Sequence

import msgspec

from tenure.messages.content import ToolResultMessage
from tenure.messages.entries import EntryBody, MessageEntry, Record
from tenure.messages.session import Damage
from tenure.messages.tokens import EntryId, SessionId, SessionToken
from tenure.messages.transcripts import Opened
from tenure.runtime.doors.claims import HeldClaim
from tenure.runtime.doors.transcripts.codec import iso_time
from tenure.runtime.doors.transcripts.conversation import Conversation, interrupted
from tenure.runtime.doors.transcripts.passes import missing_ends
from tenure.runtime.doors.transcripts.queues import interrupted_in, waiting_in
from tenure.runtime.doors.transcripts.scan import Keys, Scan, note_key
from tenure.runtime.doors.transcripts.spending import Counted
from tenure.runtime.doors.transcripts.storage import TranscriptFile
from tenure.runtime.doors.transcripts.tree import Head, MessageHead, Stamp, Tree


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A new session: nothing of it is on disk yet."""

    created_ms: int
    first_lines: tuple[bytes, ...]
    """Written together with the first append, before it."""
    claim: HeldClaim | None = None
    """Held where a first append was tried and refused by the disk."""


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """The claim is held; the file is open and whole."""

    claim: HeldClaim
    file: TranscriptFile


class Doubtful(msgspec.Struct, frozen=True, kw_only=True):
    """The disk could not confirm a write: nothing more is written until it is opened again."""

    claim: HeldClaim | None
    file: TranscriptFile | None
    reason: str


Grip = Planned | Claimed | Doubtful
"""How a transcript is held."""


class LiveTranscript:
    """A session in a seat's hands.  Changed on the event loop alone, after the disk."""

    __slots__ = (
        "conversation",
        "damage",
        "epoch",
        "grip",
        "keys",
        "last_turn",
        "path",
        "seat",
        "seq",
        "session_id",
        "spent",
        "tree",
        "writes",
    )

    def __init__(self, seat: str, session_id: SessionId, epoch: int, path: str, grip: Grip) -> None:
        self.seat = seat
        self.session_id = session_id
        self.epoch = epoch
        self.path = path
        self.grip = grip
        self.tree = Tree()
        self.conversation = Conversation(self.tree)
        self.seq = 0
        self.last_turn = 0
        self.keys: Keys = {}
        self.damage = Damage()
        self.spent = Counted(self.tree)
        self.writes = 0
        """Writes under way: one at most."""

    def load(self, found: Scan) -> None:
        """Take what was read from the file."""
        self.tree = found.tree
        self.conversation = Conversation(found.tree)
        self.spent = Counted(found.tree)
        self.seq = found.seq_max
        self.last_turn = found.last_turn
        self.keys = found.keys
        self.damage = found.damage

    def add(self, records: Sequence[Record], lines: Sequence[bytes]) -> None:
        """Take records that are on disk now, with their lines."""
        for record, line in zip(records, lines, strict=True):
            self.tree.add(_head(record, self.epoch), line[:-1])
            self.seq = max(self.seq, record.seq)
            self.last_turn = max(self.last_turn, record.turn)
            if record.key:
                note_key(self.keys, record.key, (record.id,), record.seq)

    def settling(self, fresh: Callable[[], str], now_ms: int) -> list[Record]:
        """A record for each tool call of the leaf's path that has no result.

        Args:
            fresh: gives a new entry id.
        """
        records: list[Record] = []
        parent = self.tree.leaf
        for place, call in self.conversation.open_calls():
            stamp = self.tree.heads[place].tenure
            record = Record(
                id=EntryId(fresh()),
                parent_id=parent,
                timestamp_ms=now_ms,
                seq=self.seq + len(records) + 1,
                turn=stamp.turn if stamp else 0,
                key="",
                body=MessageEntry(message=interrupted(call, now_ms)),
            )
            records.append(record)
            parent = record.id
        return records

    def ending_passes(
        self, fresh: Callable[[], str], now_ms: int, behind: Sequence[Record] = ()
    ) -> list[Record]:
        """A record for each compaction whose audit has no end.

        Args:
            behind: records that are written together with these, before them.
        """
        return self.records(missing_ends(self.tree), fresh, now_ms, behind)

    def records(
        self,
        bodies: Sequence[EntryBody],
        fresh: Callable[[], str],
        now_ms: int,
        behind: Sequence[Record] = (),
    ) -> list[Record]:
        """Entries of no turn with their places, behind the leaf and the records `behind`."""
        records: list[Record] = []
        parent = behind[-1].id if behind else self.tree.leaf
        for body in bodies:
            record = Record(
                id=EntryId(fresh()),
                parent_id=parent,
                timestamp_ms=now_ms,
                seq=self.seq + len(behind) + len(records) + 1,
                turn=0,
                key="",
                body=body,
            )
            records.append(record)
            parent = record.id
        return records

    def opened(self, settled: int) -> Opened:
        """What the step needs to know of it."""
        return Opened(
            token=SessionToken(session_id=self.session_id, epoch=self.epoch),
            path=self.path,
            leaf=self.tree.leaf,
            seq=self.seq,
            entries=len(self.tree.heads),
            last_turn=self.last_turn,
            keys=tuple(
                (key, tuple(EntryId(entry_id) for entry_id in ids), seq)
                for key, (ids, seq) in self.keys.items()
            ),
            damage=self.damage,
            settled=settled,
            queue=waiting_in(self.tree),
            interrupted=interrupted_in(self.tree, self.session_id),
        )


def _head(record: Record, epoch: int) -> Head:
    return Head(
        type=_tag(record.body),
        id=record.id,
        parent_id=record.parent_id,
        timestamp=iso_time(record.timestamp_ms),
        message=_message_head(record.body),
        tenure=Stamp(epoch=epoch, seq=record.seq, turn=record.turn, key=record.key),
    )


def _message_head(body: EntryBody) -> MessageHead | None:
    if not isinstance(body, MessageEntry):
        return None
    message = body.message
    return MessageHead(
        role=_tag(message),
        timestamp=message.timestamp,
        tool_call_id=message.tool_call_id if isinstance(message, ToolResultMessage) else "",
    )


def _tag(value: msgspec.Struct) -> str:
    return str(value.__struct_config__.tag)
