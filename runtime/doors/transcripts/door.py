"""The transcript door: the handlers of what a SessionActor wants of its session's file."""

from contextlib import suppress
from functools import partial

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.compaction import CompactionFound, CompactionMissing, FindCompaction
from tenure.messages.content import ChatMessage
from tenure.messages.entries import Record, SessionInfoEntry
from tenure.messages.handover import ForgetSeat, SeatForgotten
from tenure.messages.session import SessionInUse, StorageFailed
from tenure.messages.session_ops import Redact, Vacuum
from tenure.messages.tokens import EntryId, SessionId
from tenure.messages.transcripts import (
    Again,
    AppendRecords,
    ById,
    Changed,
    CloseTranscript,
    Fresh,
    Newest,
    NoteSeat,
    OpenTranscript,
    Owed,
    ReadSeat,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    Rewind,
    SeatNoted,
    SeatNotNoted,
    SeatRemembered,
    SeatVacant,
    SettleTranscript,
    TranscriptChanged,
    TranscriptClosed,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.altering import refusal_of_rewind, refusal_of_rewrite
from tenure.runtime.doors.transcripts.codec import encode_record
from tenure.runtime.doors.transcripts.conversation import History
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.doors.transcripts.live import LiveTranscript, Planned
from tenure.runtime.doors.transcripts.newest import open_newest
from tenure.runtime.doors.transcripts.opening import NotOpened, Opening, open_session
from tenure.runtime.doors.transcripts.passes import last_compaction
from tenure.runtime.doors.transcripts.queues import returning
from tenure.runtime.doors.transcripts.seats import forget_host, forget_seat, read_seat, write_seat
from tenure.runtime.doors.transcripts.storage import (
    Changed as ChangedFile,
)
from tenure.runtime.doors.transcripts.storage import (
    NotWritten,
    Sync,
    Uncertain,
    WriteResult,
    Written,
    reason_of,
)
from tenure.runtime.doors.transcripts.whole import run_whole
from tenure.runtime.doors.transcripts.writing import (
    Attempt,
    Dropped,
    Farewell,
    Parked,
    let_go,
    write_records,
)


class Transcripts:
    """Holds the open transcripts of one host.

    A session is live in one seat of one process: opening takes its claim, and
    only `close` and `release_seat` let go of it.

    Args:
        root: the workspace root, an absolute path; nothing is made in it before
            the first append.
        host_id: names the host in its seat records.
        sync: "fsync" answers an append when it is durable, "flush" when the
            system has it.
    """

    def __init__(
        self, leaves: Leaves, root: str, claims: Claims, host_id: str, sync: Sync = "fsync"
    ) -> None:
        self._leaves = leaves
        self._ground = Ground(
            leaves=leaves, layout=Layout(root), claims=claims, host_id=host_id, sync=sync
        )
        self._live: dict[SessionId, LiveTranscript] = {}
        self._unwritten: dict[str, LiveTranscript] = {}
        """By seat: a new session that was closed before it had a file."""
        self._noted: dict[str, SessionId] = {}
        """By seat: a note that waits until its session has a file."""

    # --- handlers --------------------------------------------------------------------------

    async def read_seat(self, effect: ReadSeat, context: Context) -> Outcome:
        """Which session the seat had: `SeatRemembered` or `SeatVacant`."""
        noted = self._noted.get(context.seat)
        if noted is not None:
            return SeatRemembered(session_id=noted)
        try:
            session_id = await self._leaves.workers.run(read_seat, self._ground, context.seat)
        except OSError as error:
            return SeatVacant(reason=f"its seat record cannot be read: {reason_of(error)}")
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return SeatVacant(reason="its seat record is damaged")
        return SeatVacant() if session_id is None else SeatRemembered(session_id=session_id)

    async def note_seat(self, effect: NoteSeat, context: Context) -> Outcome:
        """Remember the seat's session: on disk, once the session has a file itself."""
        live = self._live.get(effect.session_id)
        if live is not None and isinstance(live.grip, Planned):
            self._noted[context.seat] = effect.session_id
            return SeatNoted()
        try:
            await self._leaves.workers.run(
                write_seat, self._ground, context.seat, effect.session_id
            )
        except OSError as error:
            return SeatNotNoted(reason=f"the seat record was not written: {reason_of(error)}")
        self._noted.pop(context.seat, None)
        return SeatNoted()

    async def forget_seat(self, effect: ForgetSeat, context: Context) -> Outcome:
        """The seat has no session: a restart must find none."""
        self._noted.pop(context.seat, None)
        self._unwritten.pop(context.seat, None)
        try:
            await self._leaves.workers.run(forget_seat, self._ground, context.seat)
        except OSError as error:
            return SeatForgotten(reason=f"the seat record is still there: {reason_of(error)}")
        return SeatForgotten()

    async def open(self, effect: OpenTranscript, context: Context) -> Outcome:
        """Open the target for this seat: `TranscriptOpened` or `TranscriptNotOpened`."""
        seat = context.seat
        match effect.target:
            case Fresh(name=name):
                return self._planned(seat, name)
            case ById(session_id=session_id):
                return await self._open_id(seat, session_id, 0)
            case Again(session_id=session_id, epoch=epoch):
                return await self._open_again(seat, session_id, epoch)
            case Changed(session_id=session_id, change=change):
                return self._changeable(seat, session_id, change)
            case Newest():
                find = partial(open_newest, self._ground, seat)
                return await run_whole(
                    self._leaves.workers,
                    find,
                    lambda found: self._planned(seat, "") if found is None else self._taken(found),
                )

    async def append(self, effect: AppendRecords, context: Context) -> Outcome:
        """Write and sync one batch behind the leaf, or nothing."""
        return await self._append(effect, context.seat)

    async def settle(self, effect: SettleTranscript, context: Context) -> Outcome:
        """Write what is owed: results of tool calls, or the ends of compactions."""
        return await self._settle(effect.token.session_id, effect.owed, context.seat)

    async def find_compaction(self, effect: FindCompaction, context: Context) -> Outcome:
        """The last compaction of the leaf's path: `CompactionFound` or `CompactionMissing`."""
        live = self.held(effect.session_id, context.seat)
        found = None if live is None else last_compaction(live.tree)
        if found is None:
            return CompactionMissing(session_id=effect.session_id)
        return CompactionFound(
            session_id=effect.session_id,
            entry_id=found.entry_id,
            parent_id=found.parent_id,
            messages_after=found.messages_after,
        )

    async def close(self, effect: CloseTranscript, context: Context) -> Outcome:
        """Let go of a session; its claim record says how the file was left."""
        live = self.held(effect.session_id, context.seat)
        if live is None:
            return TranscriptClosed(session_id=effect.session_id)
        fresh, now_ms = self._leaves.entropy.fresh, self._leaves.clock.now_ms()
        ends = live.ending_passes(fresh, now_ms)
        ends += live.records(returning(effect.returned), fresh, now_ms, ends)
        if ends and not live.writes:
            # Where it cannot be written now, an end is when the session is opened
            # again, and what was given back is shown as held then.
            await self._write(live, tuple(ends))
        reason = await self._let_go(live, Parked())
        return TranscriptClosed(session_id=effect.session_id, reason=reason)

    # --- for the host ------------------------------------------------------------------------

    async def release_seat(self, seat: str) -> None:
        """Let go of every session of a seat that ended, or whose owner is restarted."""
        for live in [live for live in self._live.values() if live.seat == seat]:
            await self._let_go(live, Dropped())

    async def forget_host(self) -> None:
        """The host has ended: nobody reads its seat records any more.

        What cannot be removed stays; it harms nothing but the eye.
        """
        with suppress(OSError):
            await self._leaves.workers.run(forget_host, self._ground)

    def context(self, session_id: SessionId) -> tuple[ChatMessage, ...]:
        """The messages of the leaf's path as a model is shown them; no I/O.

        Raises:
            LookupError: the session is not open in this host.
        """
        return self._live[session_id].conversation.messages()

    def history(self, session_id: SessionId) -> History:
        """The same with the entry of each message, for a compaction; no I/O.

        Raises:
            LookupError: the session is not open in this host.
        """
        return self._live[session_id].conversation.history()

    @property
    def ground(self) -> Ground:
        """What all transcripts of this root stand on."""
        return self._ground

    def live(self, session_id: SessionId) -> LiveTranscript | None:
        """The session as some seat of this host has it open; None where none has."""
        return self._live.get(session_id)

    def held(self, session_id: SessionId, seat: str) -> LiveTranscript | None:
        """The session as this seat has it open."""
        live = self._live.get(session_id)
        return live if live is not None and live.seat == seat else None

    def forget_unwritten(self, seat: str, session_id: SessionId) -> bool:
        """Whether the session was a new one of this seat that never got a file; it is gone."""
        unwritten = self._unwritten.get(seat)
        if unwritten is None or unwritten.session_id != session_id:
            return False
        del self._unwritten[seat]
        return True

    # --- how -----------------------------------------------------------------------------------

    async def _open_id(self, seat: str, session_id: SessionId, kept: int) -> Outcome:
        live = self._live.get(session_id)
        if live is not None:  # guard: SESSION-5
            holder = self._ground.claims.me()
            refusal = SessionInUse(session_id=session_id, holder=holder, seat=live.seat)
            return TranscriptNotOpened(refusal=refusal)
        opened = await self._leaves.workers.run(open_session, self._ground, seat, session_id, kept)
        return self._taken(opened)

    async def _open_again(self, seat: str, session_id: SessionId, epoch: int) -> Outcome:
        live = self.held(session_id, seat)
        if live is not None:
            await self._let_go(live, Dropped())
        unwritten = self._unwritten.get(seat)
        if unwritten is not None and unwritten.session_id == session_id:
            if unwritten.epoch != epoch:
                unwritten.epoch += 1
            return self._taken(Opening(self._unwritten.pop(seat), 0))
        return await self._open_id(seat, session_id, epoch)

    def _taken(self, opened: Opening | NotOpened) -> Outcome:
        if not isinstance(opened, Opening):
            return TranscriptNotOpened(refusal=opened)
        live = opened.live
        self._live[live.session_id] = live
        self._ground.seats[live.session_id] = live.seat
        return TranscriptOpened(opened=live.opened(opened.settled))

    def _planned(self, seat: str, name: str) -> Outcome:
        """A new session: nothing is on disk before its first append."""
        session_id = SessionId(self._leaves.entropy.uuid())
        now_ms = self._leaves.clock.now_ms()
        path = self._ground.layout.new_session(session_id, now_ms)
        named = self._naming(name, now_ms) if name else ()
        lines = tuple(encode_record(record, 1) for record in named)
        grip = Planned(created_ms=now_ms, first_lines=lines)
        live = LiveTranscript(seat, session_id, 1, path, grip)
        live.add(named, lines)
        return self._taken(Opening(live, 0))

    def _naming(self, name: str, now_ms: int) -> tuple[Record, ...]:
        record = Record(
            id=EntryId(self._leaves.entropy.fresh()),
            parent_id=None,
            timestamp_ms=now_ms,
            seq=1,
            turn=0,
            key="",
            body=SessionInfoEntry(name=name),
        )
        return (record,)

    async def _append(self, effect: AppendRecords, seat: str) -> Outcome:
        session_id = effect.token.session_id
        live = self.held(session_id, seat)
        if live is None:
            return RecordsRefused(session_id=session_id, reason="it is not open in this seat")
        if effect.after != live.tree.leaf or live.writes:  # guard: SESSION-6
            reason = f"the last durable entry is {live.tree.leaf}, not {effect.after}"
            return RecordsRefused(session_id=session_id, reason=reason)
        if not effect.records:
            return RecordsAppended(session_id=session_id)
        result = await self._write(live, effect.records)
        if live.seat in self._noted:
            await self._note_late(live)
        return _failure(live, result) or RecordsAppended(session_id=session_id)

    async def _settle(self, session_id: SessionId, owed: Owed, seat: str) -> Outcome:
        live = self.held(session_id, seat)
        if live is None or live.writes:
            return RecordsRefused(session_id=session_id, reason="it is not open in this seat")
        owing = live.settling if owed == "calls" else live.ending_passes
        records = owing(self._leaves.entropy.fresh, self._leaves.clock.now_ms())
        if not records:
            return TranscriptSettled(opened=live.opened(0))
        result = await self._write(live, tuple(records))
        return _failure(live, result) or TranscriptSettled(opened=live.opened(len(records)))

    async def _write(self, live: LiveTranscript, records: tuple[Record, ...]) -> WriteResult:
        """Write, and only then take the records into memory."""
        live.writes += 1
        work = partial(write_records, self._ground, live, records)
        return await run_whole(self._leaves.workers, work, partial(_take_written, live, records))

    async def _note_late(self, live: LiveTranscript) -> None:
        """The session may have a file now: so gets its seat a record."""
        if self._noted[live.seat] != live.session_id or isinstance(live.grip, Planned):
            return
        try:
            await self._leaves.workers.run(write_seat, self._ground, live.seat, live.session_id)
        except OSError:
            # The note stays in memory, where it lives as long as the host that
            # alone reads it.
            return
        del self._noted[live.seat]

    async def _let_go(self, live: LiveTranscript, farewell: Farewell) -> str:
        self._live.pop(live.session_id, None)
        work = partial(let_go, self._ground, live.session_id, live.grip, farewell)
        if isinstance(live.grip, Planned):
            self._unwritten[live.seat] = live
            live.grip = msgspec.structs.replace(live.grip, claim=None)
        return await run_whole(self._leaves.workers, work, str)

    def _changeable(
        self, seat: str, session_id: SessionId, change: Rewind | Redact | Vacuum
    ) -> Outcome:
        """Whether the seat's session can be changed so; nothing is changed yet."""
        live = self.held(session_id, seat)
        if live is None:
            unopened = StorageFailed(path="", reason="the session is not open in this seat")
            return TranscriptNotOpened(refusal=unopened)
        refusal = (
            refusal_of_rewind(live, change.entry_id, change.position)
            if isinstance(change, Rewind)
            else refusal_of_rewrite(live, change)
        )
        if refusal is not None:
            return TranscriptNotOpened(refusal=refusal)
        return TranscriptOpened(opened=live.opened(0))


def _take_written(
    live: LiveTranscript, records: tuple[Record, ...], attempt: Attempt
) -> WriteResult:
    live.writes -= 1
    live.grip = attempt.grip
    if isinstance(attempt.result, Written):
        live.add(records, attempt.lines)
    return attempt.result


def _failure(live: LiveTranscript, result: WriteResult) -> Outcome | None:
    match result:
        case Written():
            return None
        case NotWritten(reason=reason):
            return RecordsRefused(session_id=live.session_id, reason=reason)
        case Uncertain(reason=reason):
            return RecordsUncertain(session_id=live.session_id, reason=reason)
        case ChangedFile():
            return TranscriptChanged(session_id=live.session_id, path=live.path)
