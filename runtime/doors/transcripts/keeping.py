"""The transcript door's handlers for everything but opening and appending."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.session import (
    Appended,
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    StorageFailed,
)
from tenure.messages.session_ops import (
    EntryNotFound,
    Redact,
    SessionDeleted,
    SessionForked,
    SessionRewound,
    SessionRewritten,
    SessionsCleared,
    Vacuum,
)
from tenure.messages.transcripts import (
    AlterTranscript,
    ChangeStored,
    Discard,
    DiscardAll,
    EntryFound,
    EntryMissing,
    FindEntry,
    ForkAt,
    RenameTo,
    Rewind,
    RewriteWith,
    StoredChanged,
    StoredNotChanged,
    TranscriptAltered,
    TranscriptNotAltered,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.altering import (
    NotAltered,
    NotRewritten,
    Rewritten,
    next_epoch,
    refusal_of_rewind,
    rewind_records,
    rewrite_file,
    write_rewind,
)
from tenure.runtime.doors.transcripts.cache import write_rows
from tenure.runtime.doors.transcripts.catalogue import Catalogue
from tenure.runtime.doors.transcripts.discarding import discard, discard_all
from tenure.runtime.doors.transcripts.door import Transcripts
from tenure.runtime.doors.transcripts.forking import fork_stored, planned_fork, write_fork
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.live import LiveTranscript
from tenure.runtime.doors.transcripts.opening import NotOpened
from tenure.runtime.doors.transcripts.storage import Changed, NotWritten, Uncertain, Written
from tenure.runtime.doors.transcripts.stored import rename_stored, rewrite_stored
from tenure.runtime.doors.transcripts.whole import run_whole
from tenure.runtime.doors.transcripts.writing import Attempt

CACHED_SESSIONS_MIN = 64
"""Fewer are listed quickly without a cache."""

NOT_OPEN = "the session is not open in this seat"

Done = Appended | SessionForked | SessionDeleted | SessionsCleared | SessionRewritten
StoredRefusal = NotOpened | NotAltered
T = TypeVar("T")


class Keeping:
    """Changes sessions: the open ones of its host in their seats, others under their claims."""

    def __init__(self, leaves: Leaves, transcripts: Transcripts) -> None:
        self._leaves = leaves
        self._transcripts = transcripts
        self._ground = transcripts.ground

    # --- a session that the seat has ---------------------------------------------------------

    async def find_entry(self, effect: FindEntry, context: Context) -> Outcome:
        """Is it an entry of the session?  `EntryFound` or `EntryMissing`."""
        live = self._transcripts.held(effect.token.session_id, context.seat)
        if live is None or live.tree.place_of(effect.entry_id) is None:
            session_id = effect.token.session_id
            refusal = EntryNotFound(session_id=session_id, entry_id=effect.entry_id)
            return EntryMissing(asker=effect.asker, refusal=refusal)
        return EntryFound(
            asker=effect.asker,
            token=effect.token,
            entry_id=effect.entry_id,
            label=effect.label,
        )

    async def alter(self, effect: AlterTranscript, context: Context) -> Outcome:
        """Move the leaf or replace the file: `TranscriptAltered` or `TranscriptNotAltered`."""
        live = self._transcripts.held(effect.token.session_id, context.seat)
        if live is None or live.writes:
            return TranscriptNotAltered(refusal=StorageFailed(path="", reason=NOT_OPEN))
        live.writes += 1
        try:
            match effect.change:
                case Rewind():
                    return await self._rewind(live, effect.change)
                case Redact() | Vacuum():
                    return await self._rewrite(live, effect.change)
        finally:
            live.writes -= 1

    async def _rewind(self, live: LiveTranscript, rewind: Rewind) -> Outcome:
        refusal = refusal_of_rewind(live, rewind.entry_id, rewind.position)
        if refusal is not None:
            return TranscriptNotAltered(refusal=refusal)
        fresh, now_ms = self._leaves.entropy.fresh, self._leaves.clock.now_ms()
        records = rewind_records(live, rewind.entry_id, rewind.position, fresh, now_ms)
        epoch_before = live.epoch
        live.epoch = next_epoch(live)

        def take(attempt: Attempt) -> Attempt:
            live.grip = attempt.grip
            if isinstance(attempt.result, Written):
                live.add(records, attempt.lines)
            else:
                live.epoch = epoch_before
            return attempt

        work = partial(write_rewind, self._ground, live, records)
        attempt = await run_whole(self._leaves.workers, work, take)
        if not isinstance(attempt.result, Written):
            return TranscriptNotAltered(refusal=_refusal(attempt, live.path))
        opened = live.opened(len(records) - 1)
        reply = SessionRewound(token=opened.token, leaf=records[0].parent_id)
        return TranscriptAltered(opened=opened, reply=reply)

    async def _rewrite(self, live: LiveTranscript, rewrite: Redact | Vacuum) -> Outcome:
        epoch = next_epoch(live)

        def take(done: Rewritten | NotRewritten) -> Rewritten | NotRewritten:
            live.grip = done.grip
            if isinstance(done, Rewritten):
                live.epoch = epoch
                live.load(done.found)
            return done

        work = partial(rewrite_file, self._ground, live, rewrite, epoch)
        done = await run_whole(self._leaves.workers, work, take)
        if isinstance(done, NotRewritten):
            return TranscriptNotAltered(refusal=done.refusal)
        return TranscriptAltered(opened=live.opened(0), reply=done.reply)

    # --- any session -------------------------------------------------------------------------

    async def change_stored(self, effect: ChangeStored, context: Context) -> Outcome:
        """Do it under the session's own claim: `StoredChanged` or `StoredNotChanged`."""
        change = effect.change
        work: Callable[[], Done | StoredRefusal] = partial(self._with_cache, self._work(change))
        if isinstance(change, Discard) and self._transcripts.forget_unwritten(
            context.seat, change.session_id
        ):
            work = partial(_never_written, change)
        reply = await run_whole(self._leaves.workers, work, _as_it_is)
        if isinstance(reply, StoredRefusal):
            return StoredNotChanged(asker=effect.asker, refusal=reply)
        if isinstance(reply, SessionDeleted | SessionsCleared):
            assert isinstance(change, Discard | DiscardAll)
            reply = msgspec.structs.replace(reply, current=change.current)
        return StoredChanged(asker=effect.asker, reply=reply)

    def _work(
        self, change: RenameTo | ForkAt | Discard | DiscardAll | RewriteWith
    ) -> Callable[[], Done | StoredRefusal]:
        """What a worker is to do."""
        ground = self._ground
        match change:
            case RenameTo(session_id=session_id, name=name):
                return partial(rename_stored, ground, session_id, name)
            case RewriteWith(session_id=session_id, rewrite=rewrite):
                return partial(rewrite_stored, ground, session_id, rewrite)
            case Discard(session_id=session_id):
                return partial(discard, ground, session_id)
            case DiscardAll():
                return partial(discard_all, ground)
            case ForkAt(session_id=session_id, entry_id=entry_id, position=at, name=name):
                live = self._transcripts.live(session_id)
                if live is None:
                    return partial(fork_stored, ground, session_id, entry_id, at, name)
                # Chosen here, on the event loop, where nobody changes the tree meanwhile.
                fork = planned_fork(session_id, live.path, live.tree, entry_id, at, name)
                if isinstance(fork, EntryNotFound):
                    return partial(_as_it_is, fork)
                return partial(write_fork, ground, fork)

    def _with_cache(self, work: Callable[[], Done | StoredRefusal]) -> Done | StoredRefusal:
        """In a worker: a command that may write also brings the cache up to date."""
        reply = work()
        if not isinstance(reply, StoredRefusal):
            with suppress(OSError):  # it is derived: who lists does without it
                refresh_cache(self._ground)
        return reply


def refresh_cache(ground: Ground) -> None:
    """Write down what is known of all sessions, where there are many.  Blocks.

    Raises:
        OSError: the old cache, or none, is in place.
    """
    files, layout = ground.leaves.files, ground.layout
    if len(layout.transcripts(files)) < CACHED_SESSIONS_MIN:
        return
    catalogue = Catalogue(ground.leaves, layout.root)
    catalogue.sessions()
    write_rows(files, ground.claims, layout.cache, catalogue.rows)


def _refusal(attempt: Attempt, path: str) -> NotAltered:
    match attempt.result:
        case NotWritten(reason=reason):
            return AppendFailed(reason=reason)
        case Uncertain(reason=reason):
            return AppendUnknown(reason=reason)
        case Changed() | Written():
            return ChangedOutside(path=path)


def _never_written(change: Discard) -> SessionDeleted:
    """A new session that was given up before it had a file: there is nothing to move."""
    return SessionDeleted(session_id=change.session_id, kept_at="")


def _as_it_is(value: T) -> T:
    return value
