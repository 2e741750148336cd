"""Appends of one session: compare the token, batch, write, receipt.

One append is in flight; later ones wait and form the next batch.  Ids and
parents are given when a batch is formed, never when a command is taken, so a
failed batch leaves no gap in the chain (SESSION-6).
"""

from msgspec.structs import replace

from tenure.actors.session_state import (
    Closed,
    Live,
    Outdated,
    Parcel,
    Placed,
    Quiet,
    Session,
    Settle,
    Settling,
    Writing,
)
from tenure.messages.compaction import PassesSettled, SettlePasses
from tenure.messages.entries import MessageEntry, Record
from tenure.messages.queue import QueuedPrompt
from tenure.messages.session import (
    Appended,
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    CallsSettled,
    ChangedOutside,
    EntriesAppended,
    SettleCalls,
)
from tenure.messages.tokens import EntryId, turn_number
from tenure.messages.transcripts import (
    AppendRecords,
    Owed,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    SettleTranscript,
    TranscriptChanged,
    TranscriptSettled,
)
from tenure.runtime.step import Step, Taken

KEYS_KEPT_MAX = 256
"""Idempotency keys that one session remembers; the transcript keeps them all."""

DiskOutcome = (
    RecordsAppended | RecordsRefused | RecordsUncertain | TranscriptChanged | TranscriptSettled
)


def take_append(live: Live, message: AppendEntries, taken: Taken) -> Step[Live]:
    """Accept an append whose token is current."""
    session = live.session
    if isinstance(live.appends, Closed):  # guard: SESSION-3
        return Step(live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    if isinstance(live.appends, Outdated):
        return Step(live).answer(taken.asker, ChangedOutside(path=live.appends.path))
    known = _known(session, message.idempotency_key)
    if known is not None:
        return Step(live).answer(taken.asker, known)
    if not message.entries:
        return Step(live).answer(
            taken.asker, Appended(token=session.token, entry_ids=(), seq=session.seq)
        )
    parcel = Parcel(
        askers=(taken.asker,),
        entries=message.entries,
        turn_id=message.turn_id,
        key=message.idempotency_key,
        taken_ms=taken.now_ms,
    )
    return _enqueue(live, parcel, taken)


def take_settle(live: Live, message: SettleCalls | SettlePasses, taken: Taken) -> Step[Live]:
    """Accept a wish to write what is owed, behind the appends that were taken before it."""
    if isinstance(live.appends, Closed):
        return Step(live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    if isinstance(live.appends, Outdated):
        return Step(live).answer(taken.asker, ChangedOutside(path=live.appends.path))
    owed: Owed = "calls" if isinstance(message, SettleCalls) else "passes"
    return _enqueue(live, Settle(taken.asker, owed), taken)


def on_disk(live: Live, outcome: DiskOutcome, taken: Taken) -> Step[Live]:
    """How the write in flight went; what waited goes next.

    After `TranscriptChanged` the session is outdated; when it is opened again is
    for the caller to decide.
    """
    match live.appends:
        case Writing(batch, waiting):
            return _on_written(live, batch, waiting, outcome, taken)
        case Settling(asker, owed, waiting):
            return _on_settled(live, Settle(asker, owed), waiting, outcome, taken)
        case Quiet() | Closed() | Outdated():
            return Step(live)


def _on_written(
    live: Live,
    batch: tuple[Placed, ...],
    waiting: tuple[Parcel | Settle, ...],
    outcome: DiskOutcome,
    taken: Taken,
) -> Step[Live]:
    session = live.session
    match outcome:
        case RecordsAppended():
            after = _extended(session, batch)
            return _receipts(_next(after, waiting, taken), after, batch)
        case RecordsRefused(reason=reason):
            step = _next(session, waiting, taken)
            return _answer_all(step, batch, AppendFailed(reason=reason))
        case TranscriptChanged(path=path):
            step = Step(Live(session, Outdated(path)))
            return _refuse_all(step, (*batch, *waiting), ChangedOutside(path=path))
        case RecordsUncertain(reason=reason):
            step = Step(Live(session, Closed(reason=reason)))
            return _refuse_all(step, (*batch, *waiting), AppendUnknown(reason=reason))
        case TranscriptSettled():
            return Step(live)


def _on_settled(
    live: Live,
    settle: Settle,
    waiting: tuple[Parcel | Settle, ...],
    outcome: DiskOutcome,
    taken: Taken,
) -> Step[Live]:
    session, asker = live.session, settle.asker
    match outcome:
        case TranscriptSettled(opened=opened):
            after = replace(session, leaf=opened.leaf, seq=opened.seq, entries=opened.entries)
            reply = _settled(after, settle.owed, opened.settled, opened.queue)
            return _next(after, waiting, taken).answer(asker, reply)
        case RecordsRefused(reason=reason):
            return _next(session, waiting, taken).answer(asker, AppendFailed(reason=reason))
        case TranscriptChanged(path=path):
            step = Step(Live(session, Outdated(path)))
            return _refuse_all(step, (settle, *waiting), ChangedOutside(path=path))
        case RecordsUncertain(reason=reason):
            step = Step(Live(session, Closed(reason=reason)))
            return _refuse_all(step, (settle, *waiting), AppendUnknown(reason=reason))
        case RecordsAppended():
            return Step(live)


# --- pure helpers ------------------------------------------------------------------------


def _settled(
    session: Session, owed: Owed, count: int, queue: tuple[QueuedPrompt, ...]
) -> CallsSettled | PassesSettled:
    if owed == "passes":
        return PassesSettled(token=session.token, settled=count)
    return CallsSettled(
        token=session.token, settled=count, last_turn=session.last_turn, queue=queue
    )


def _enqueue(live: Live, item: Parcel | Settle, taken: Taken) -> Step[Live]:
    match live.appends:
        case Quiet():
            return _next(live.session, (item,), taken)
        case Writing(batch, waiting):
            return Step(Live(live.session, Writing(batch, _joined(waiting, item))))
        case Settling(asker, owed, waiting):
            return Step(Live(live.session, Settling(asker, owed, _joined(waiting, item))))
        case Closed() | Outdated():
            return Step(live)


def _joined(
    waiting: tuple[Parcel | Settle, ...], item: Parcel | Settle
) -> tuple[Parcel | Settle, ...]:
    """Behind the others; a repeat of a waiting key waits for the first one's receipt."""
    if isinstance(item, Parcel) and item.key:
        for place, other in enumerate(waiting):
            if isinstance(other, Parcel) and other.key == item.key:
                both = replace(other, askers=other.askers + item.askers)
                return (*waiting[:place], both, *waiting[place + 1 :])
    return (*waiting, item)


def _next(session: Session, waiting: tuple[Parcel | Settle, ...], taken: Taken) -> Step[Live]:
    """Form the next batch of what waits, or be quiet."""
    waiting, repeats = _without_known(session, waiting)
    step = _next_unknown(session, waiting, taken)
    for parcel, reply in repeats:
        for asker in parcel.askers:
            step = step.answer(asker, reply)
    return step


def _next_unknown(
    session: Session, waiting: tuple[Parcel | Settle, ...], taken: Taken
) -> Step[Live]:
    if not waiting:
        return Step(Live(session, Quiet()))
    first = waiting[0]
    if isinstance(first, Settle):
        settling = Settling(asker=first.asker, owed=first.owed, waiting=waiting[1:])
        settle = SettleTranscript(token=session.token, owed=first.owed)
        return Step(Live(session, settling)).do(settle)
    parcels: list[Parcel] = []
    for item in waiting:
        if not isinstance(item, Parcel):
            break
        parcels.append(item)
    batch, records = _place(session, parcels, taken)
    writing = Writing(batch=batch, waiting=waiting[len(parcels) :])
    append = AppendRecords(token=session.token, after=session.leaf, records=records)
    return Step(Live(session, writing)).do(append)


def _place(
    session: Session, parcels: list[Parcel], taken: Taken
) -> tuple[tuple[Placed, ...], tuple[Record, ...]]:
    """Give ids and parents: each entry is the child of the one before it."""
    batch: list[Placed] = []
    records: list[Record] = []
    parent = session.leaf
    seq = session.seq
    for parcel in parcels:
        ids: list[EntryId] = []
        for body in parcel.entries:
            entry_id = EntryId(taken.id(len(records)))
            seq += 1
            records.append(
                Record(
                    id=entry_id,
                    parent_id=parent,
                    timestamp_ms=parcel.taken_ms,
                    seq=seq,
                    turn=turn_number(parcel.turn_id) if parcel.turn_id else 0,
                    key=parcel.key,
                    body=body,
                )
            )
            ids.append(entry_id)
            parent = entry_id
        batch.append(Placed(parcel=parcel, entry_ids=tuple(ids), seq=seq))
    return tuple(batch), tuple(records)


def _extended(session: Session, batch: tuple[Placed, ...]) -> Session:
    keys = session.keys
    added = 0
    for placed in batch:
        added += len(placed.entry_ids)
        if placed.parcel.key:
            keys = (*keys, (placed.parcel.key, placed.entry_ids, placed.seq))[-KEYS_KEPT_MAX:]
    last = batch[-1]
    return replace(
        session,
        leaf=last.entry_ids[-1],
        seq=last.seq,
        entries=session.entries + added,
        keys=keys,
        interrupted=None if any(_goes_on(placed) for placed in batch) else session.interrupted,
    )


def _goes_on(placed: Placed) -> bool:
    """Whether it says something: then the last turn is not the interrupted one any more."""
    return any(isinstance(entry, MessageEntry) for entry in placed.parcel.entries)


def _receipts(step: Step[Live], session: Session, batch: tuple[Placed, ...]) -> Step[Live]:
    for placed in batch:
        receipt = Appended(token=session.token, entry_ids=placed.entry_ids, seq=placed.seq)
        for asker in placed.parcel.askers:
            step = step.answer(asker, receipt)
        step = step.emit(
            EntriesAppended(
                token=session.token,
                entry_ids=placed.entry_ids,
                seq=placed.seq,
                turn_id=placed.parcel.turn_id,
            )
        )
    return step


def _answer_all(step: Step[Live], batch: tuple[Placed, ...], reply: AppendFailed) -> Step[Live]:
    for placed in batch:
        for asker in placed.parcel.askers:
            step = step.answer(asker, reply)
    return step


def _refuse_all(
    step: Step[Live],
    items: tuple[Placed | Parcel | Settle, ...],
    reply: AppendUnknown | ChangedOutside,
) -> Step[Live]:
    for item in items:
        match item:
            case Placed(parcel=parcel) | (Parcel() as parcel):
                for asker in parcel.askers:
                    step = step.answer(asker, reply)
            case Settle(asker=asker):
                step = step.answer(asker, reply)
    return step


def _without_known(
    session: Session, waiting: tuple[Parcel | Settle, ...]
) -> tuple[tuple[Parcel | Settle, ...], list[tuple[Parcel, Appended]]]:
    """A repeat that waited behind its own first append is answered, not written again."""
    rest: list[Parcel | Settle] = []
    repeats: list[tuple[Parcel, Appended]] = []
    for item in waiting:
        known = _known(session, item.key) if isinstance(item, Parcel) else None
        if known is not None and isinstance(item, Parcel):
            repeats.append((item, known))
        else:
            rest.append(item)
    return tuple(rest), repeats


def _known(session: Session, key: str) -> Appended | None:
    """The first answer to this idempotency key."""
    if not key:
        return None
    for known, entry_ids, seq in reversed(session.keys):
        if known == key:
            return Appended(token=session.token, entry_ids=entry_ids, seq=seq)
    return None
