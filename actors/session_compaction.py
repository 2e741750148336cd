"""What a compaction wants of its session: a checked token, and a way back.

    Live -> Unwinding -> Rewinding -> Restoring -> Live      a compaction is taken back

Taking one back moves the leaf other than by an append, so the epoch moves: the
session is opened again behind the record that says where its leaf is now.
"""

from tenure.actors.session_reopening import attached, reopen
from tenure.actors.session_state import (
    Closed,
    CompactionWasLookedAt,
    Live,
    NotOpened,
    Outdated,
    Quiet,
    Restoring,
    Resume,
    Rewinding,
    State,
    TurnWasLookedAt,
    Unwinding,
    Vacant,
    session_of,
)
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Reply
from tenure.messages.bus import Answered
from tenure.messages.compaction import (
    Compact,
    CompactionFound,
    CompactionMissing,
    CompactionReverted,
    CompactionView,
    FindCompaction,
    GetCompaction,
    NothingToUncompact,
    RunCompaction,
    Uncompacted,
    WouldDrop,
)
from tenure.messages.entries import CustomEntry, Record
from tenure.messages.session import (
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    SeatBusy,
)
from tenure.messages.tokens import EntryId
from tenure.messages.transcripts import (
    Again,
    AppendRecords,
    Opened,
    OpenTranscript,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    TranscriptChanged,
    TranscriptSettled,
)
from tenure.messages.turn import GetTurn, TurnView
from tenure.runtime.step import Step, Taken

REWIND = "tenure/rewind"

RewindOutcome = (
    RecordsAppended | RecordsRefused | RecordsUncertain | TranscriptChanged | TranscriptSettled
)


def run_compaction(live: Live, message: Compact, taken: Taken) -> Step[State]:
    """A wish whose token is current goes to the CompactionActor."""
    run = RunCompaction(
        token=live.session.token,
        trigger="manual",
        instructions=message.instructions,
        when_busy=message.when_busy,
    )
    return Step[State](live).forward("compaction", run, taken.asker)


# --- taking one back ---------------------------------------------------------------------------


def unwind(live: Live, taken: Taken) -> Step[State]:
    """Is the seat idle?  Its turn and its compaction know."""
    if isinstance(live.appends, Closed):
        return Step[State](live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    if not isinstance(live.appends, Quiet):
        return Step[State](live).answer(taken.asker, SeatBusy())
    unwinding = Step[State](Unwinding(live, taken.asker))
    return unwinding.ask("turn", GetTurn(), re=TurnWasLookedAt())


def go_back(
    state: Unwinding, message: Answered | CompactionFound | CompactionMissing, taken: Taken
) -> Resume:
    """What was asked is answered: by turn and compaction, then by the transcript."""
    match message:
        case Answered(re=TurnWasLookedAt() | CompactionWasLookedAt(), reply=reply):
            return _on_idle_seen(state, reply)
        case CompactionFound():
            return _on_found(state, message, taken)
        case CompactionMissing():
            none = Step[State](state.before).answer(state.asker, NothingToUncompact())
            return Resume(none, state.held)
        case _:
            return Resume(Step(state))


def _on_idle_seen(state: Unwinding, reply: Reply) -> Resume:
    """First the turn answers, then the compaction; then the transcript is asked."""
    match reply:
        case TurnView(turn_id=None, queued=()):
            step = Step[State](state)
            return Resume(step.ask("compaction", GetCompaction(), re=CompactionWasLookedAt()))
        case CompactionView(pass_id=None):
            find = FindCompaction(session_id=state.before.session.token.session_id)
            return Resume(Step[State](state).do(find))
        case _:
            busy = Step[State](state.before).answer(state.asker, SeatBusy())
            return Resume(busy, state.held)


def _on_found(state: Unwinding, found: CompactionFound, taken: Taken) -> Resume:
    """While nothing follows it, the leaf goes back to where it was before."""
    if found.messages_after:
        drops = WouldDrop(count=found.messages_after, fork_from=found.parent_id)
        return Resume(Step[State](state.before).answer(state.asker, drops), state.held)
    session = state.before.session
    record = Record(
        id=EntryId(taken.fresh),
        parent_id=found.parent_id,
        timestamp_ms=taken.now_ms,
        seq=session.seq + 1,
        turn=0,
        key="",
        body=CustomEntry(custom_type=REWIND, data={"undoes": found.entry_id}),
    )
    append = AppendRecords(token=session.token, after=session.leaf, records=(record,))
    rewinding = Rewinding(state.before, found.entry_id, state.asker, state.held)
    return Resume(Step[State](rewinding).do(append))


def on_rewound(state: Rewinding, outcome: RewindOutcome) -> Resume:
    """The record is durable: open the session again, at its new leaf and a new epoch."""
    live = state.before
    match outcome:
        case RecordsAppended():
            return Resume(_open_again(state))
        case RecordsRefused(reason=reason):
            step = Step[State](live).answer(state.asker, AppendFailed(reason=reason))
            return Resume(step, state.held)
        case RecordsUncertain(reason=reason):
            closed = Step[State](Live(live.session, Closed(reason)))
            return Resume(closed.answer(state.asker, AppendUnknown(reason=reason)), state.held)
        case TranscriptChanged(path=path):
            outdated = Step(Live(live.session, Outdated(path)))
            told = outdated.answer(state.asker, ChangedOutside(path=path))
            return Resume(reopen(told, state.held))
        case TranscriptSettled():
            return Resume(Step(state))


def on_restored(state: Restoring, opened: Opened) -> Resume:
    session = session_of(opened, state.session.last_turn)
    step = attached(Step(Live(session, Quiet())), session, opened.queue)
    step = step.emit(CompactionReverted(token=session.token, entry_id=state.entry_id))
    done = Uncompacted(token=session.token, entry_id=state.entry_id)
    return Resume(step.answer(state.asker, done), state.held)


def on_not_restored(state: Restoring, refusal: NotOpened) -> Resume:
    """The compaction is taken back, and the session is lost to this seat."""
    vacant = Step[State](Vacant(refusal.remedy)).answer(state.asker, refusal)
    ended = EndSessionGrants(session_id=state.session.token.session_id)
    return Resume(vacant.tell("approval", ended), state.held)


def _open_again(state: Rewinding) -> Step[State]:
    session = state.before.session
    again = OpenTranscript(target=Again(session_id=session.token.session_id))
    return Step[State](Restoring(session, state.entry_id, state.asker, state.held)).do(again)
