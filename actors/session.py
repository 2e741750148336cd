"""SessionActor: which session a seat has, and the one hand that appends to it.

    Waking -> Vacant | Reopening          an incarnation begins
    Vacant | Live -> Loading -> Draining -> Flushing -> Committing -> Live    a swap
    Live -> Parking -> LettingGo -> Parked -> Reopening -> Live               a park
    Live -> Reopening -> Live             the file was changed by another program
    Live -> Unwinding -> Rewinding -> Restoring -> Live     a compaction is taken back
    Live | Parked -> HandingOver -> Yielding -> Releasing -> Vacant           a handover

ARCHITECTURE.md, section SessionActor.
"""

from typing import assert_never

from msgspec.structs import replace

from tenure.actors.session_appends import DiskOutcome, on_disk, take_append, take_settle
from tenure.actors.session_arriving import on_not_opened, on_opened
from tenure.actors.session_commands import SessionCommand
from tenure.actors.session_compaction import (
    go_back,
    on_rewound,
)
from tenure.actors.session_handover import (
    ask_again,
    hand_over,
    hand_over_parked,
    on_released,
    on_tools_seen,
    on_yielded,
    release_when_quiet,
)
from tenure.actors.session_ops import (
    OpsCommand,
    answered,
    labelled,
    operate,
    operate_without_session,
    token_in,
)
from tenure.actors.session_reopening import (
    on_idle_seen,
    on_let_go,
    on_seat_read,
    park,
    reopen,
    unpark,
)
from tenure.actors.session_state import (
    Committing,
    CompactionWasLookedAt,
    Draining,
    Flushing,
    HandingOver,
    LettingGo,
    Live,
    Loading,
    Outdated,
    Parked,
    Parking,
    Releasing,
    Reopening,
    Restoring,
    Resume,
    Rewinding,
    State,
    ToolsWereLookedAt,
    TurnWasDrained,
    TurnWasLookedAt,
    Unwinding,
    Vacant,
    Waking,
    Yielding,
    hold,
    widened,
)
from tenure.actors.session_swap import (
    commit_when_quiet,
    fill,
    on_altered,
    on_committed,
    on_drained,
    on_not_altered,
    on_not_committed,
    swap,
)
from tenure.actors.session_turns import cancel_turn, on_wish
from tenure.actors.session_view import on_query, on_spending
from tenure.actors.session_wishes import on_seat_wish
from tenure.messages.base import Message
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.checkpoints import UndoChange
from tenure.messages.compaction import (
    Compact,
    CompactionFound,
    CompactionMissing,
    SettlePasses,
    Uncompact,
)
from tenure.messages.handover import HandOverSession, SeatForgotten
from tenure.messages.limits import GetSpending, SpendingNotRead, SpendingRead
from tenure.messages.queue import (
    AdmitPrompt,
    CancelPrompt,
    EditPrompt,
    FollowUpTurn,
    MovePrompt,
    RedirectTurn,
    ReleaseQueue,
    ResumeTurn,
    SteerTurn,
)
from tenure.messages.session import (
    AppendEntries,
    CancelTurn,
    ContinueSession,
    GetSession,
    NoSession,
    OpenNewSession,
    OpenSession,
    ParkSeat,
    SeatParked,
    SettleCalls,
    Stale,
    StartTurn,
)
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    ForkSession,
    RenameSession,
    RewindSession,
    RewriteSession,
    SetLabel,
)
from tenure.messages.transcripts import (
    EntryFound,
    EntryMissing,
    ReadSeat,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    SeatNoted,
    SeatNotNoted,
    SeatRemembered,
    SeatVacant,
    StoredChanged,
    StoredNotChanged,
    TranscriptAltered,
    TranscriptChanged,
    TranscriptClosed,
    TranscriptNotAltered,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import Held, Step, Taken


def session_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message.  Commands first, then what the doors and the turn say."""
    match message:
        case GetSession() | GetSpending():
            return on_query(state, message, taken)
        case SpendingRead() | SpendingNotRead():
            return on_spending(state, message)
        case OpenSession() | OpenNewSession() | ContinueSession() | AppendEntries():
            return on_command(state, message, taken)
        case StartTurn() | CancelTurn() | SettleCalls() | ParkSeat() | HandOverSession():
            return on_command(state, message, taken)
        case SteerTurn() | FollowUpTurn() | RedirectTurn() | ResumeTurn() | AdmitPrompt():
            return on_command(state, message, taken)
        case EditPrompt() | MovePrompt() | CancelPrompt() | ReleaseQueue():
            return on_command(state, message, taken)
        case Compact() | Uncompact() | SettlePasses() | ClearSessions() | RewriteSession():
            return on_command(state, message, taken)
        case UndoChange():
            return on_command(state, message, taken)
        case RenameSession() | SetLabel() | ForkSession() | RewindSession() | DeleteSession():
            return on_command(state, message, taken)
        case OwnerStarted():
            return Step[State](Waking()).do(ReadSeat())
        case (
            RecordsAppended()
            | RecordsRefused()
            | RecordsUncertain()
            | TranscriptChanged()
            | TranscriptSettled()
        ):
            return on_write_outcome(state, message, taken)
        case TranscriptOpened(opened=opened):
            return resumed(on_opened(state, opened))
        case TranscriptNotOpened(refusal=refusal):
            return resumed(on_not_opened(state, refusal))
        case EntryFound():
            return on_command(state, *labelled(message, taken))
        case StoredChanged() | StoredNotChanged() | EntryMissing():
            return answered(state, message)
        case _:
            return on_end_of_wait(state, message, taken)


def on_end_of_wait(state: State, message: Message, taken: Taken) -> Step[State]:
    """What one state alone waits for; in any other it comes too late."""
    match state, message:
        case Waking(), SeatVacant() | SeatRemembered():
            return resumed(on_seat_read(state, message))
        case Draining(), Answered(re=TurnWasDrained()):
            return on_drained(state, message.reply)
        case HandingOver(), Answered(re=TurnWasDrained()):
            return on_yielded(state, message.reply)
        case HandingOver(), Answered(re=ToolsWereLookedAt()):
            return on_tools_seen(state, message.reply)
        case Unwinding(), Answered() | CompactionFound() | CompactionMissing():
            return resumed(go_back(state, message, taken))
        case Committing(), SeatNoted():
            return resumed(on_committed(state))
        case Committing(), SeatNotNoted(reason=reason):
            return resumed(on_not_committed(state, reason))
        case Committing(), TranscriptAltered():
            return resumed(on_altered(state, message))
        case Committing(), TranscriptNotAltered(refusal=refusal):
            return resumed(on_not_altered(state, refusal))
        case Parking(), Answered(re=TurnWasLookedAt() | CompactionWasLookedAt()):
            return resumed(on_idle_seen(state, message.reply))
        case Releasing(), SeatForgotten():
            # The transcript is let go of behind it, whatever became of the record.
            return Step(state)
        case LettingGo(session) | Releasing(session), TranscriptClosed(session_id=session_id):
            if session_id != session.token.session_id:
                return Step(state)
            return resumed(on_let_go(state) if isinstance(state, LettingGo) else on_released(state))
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- commands --------------------------------------------------------------------------


def on_command(state: State, message: SessionCommand, taken: Taken) -> Step[State]:
    """A command meets a state: now, later, or no."""
    match state:
        case Live():
            return on_live_command(state, message, taken)
        case Vacant(reason=reason):
            if isinstance(message, OpenSession | OpenNewSession | ContinueSession):
                return fill(state, message, taken)
            if isinstance(message, OpsCommand):
                return operate_without_session(state, message, taken)
            return Step[State](state).answer(taken.asker, NoSession(reason=reason))
        case Draining() | Flushing() | HandingOver() | Yielding():
            return on_command_while_draining(state, message, taken)
        case Releasing():
            if isinstance(message, HandOverSession):
                return ask_again(state, message, taken)
            return Step(hold(state, message, taken))
        case Waking() | Loading() | Committing() | Reopening() | Parking() | LettingGo():
            return Step(hold(state, message, taken))
        case Unwinding() | Rewinding() | Restoring():
            return Step(hold(state, message, taken))
        case Parked(session=session):
            if isinstance(message, HandOverSession):
                return hand_over_parked(state, message, taken)
            if isinstance(message, ParkSeat):
                return Step[State](state).answer(taken.asker, SeatParked(token=session.token))
            return unpark(state, (Held(message, taken),))
        case _:
            assert_never(state)


def on_command_while_draining(
    state: Draining | Flushing | HandingOver | Yielding, message: SessionCommand, taken: Taken
) -> Step[State]:
    """The turn that is being stopped writes its last entries now; all else waits."""
    if isinstance(message, HandOverSession) and isinstance(state, HandingOver | Yielding):
        return ask_again(state, message, taken)
    if isinstance(message, AppendEntries):
        return _keep(state, _append(state.before, message, taken))
    if isinstance(message, SettleCalls | SettlePasses):
        return _keep(state, take_settle(state.before, message, taken))
    return Step(hold(state, message, taken))


def on_live_command(live: Live, message: SessionCommand, taken: Taken) -> Step[State]:
    match message:
        case AppendEntries():
            return widened(_append(live, message, taken))
        case SettleCalls() | SettlePasses():
            return widened(take_settle(live, message, taken))
        case Compact() | Uncompact() | UndoChange():
            if message.token not in (None, live.session.token):  # guard: COMPACT-2
                return _stale(live, taken)
            return on_seat_wish(live, message, taken)
        case AdmitPrompt(token=token):
            if token != live.session.token:  # guard: TURN-5
                return _stale(live, taken)
            return on_wish(live, message, taken)
        case StartTurn() | SteerTurn() | FollowUpTurn() | RedirectTurn() | ResumeTurn():
            if message.token is not None and message.token != live.session.token:  # guard: TURN-6
                return _stale(live, taken)
            return on_wish(live, message, taken)
        case EditPrompt() | MovePrompt() | CancelPrompt() | ReleaseQueue():
            if message.token not in (None, live.session.token):  # guard: SESSION-2
                return _stale(live, taken)
            return on_wish(live, message, taken)
        case CancelTurn():
            if message.token not in (None, live.session.token):  # guard: SESSION-2
                return _stale(live, taken)
            return cancel_turn(live, taken)
        case ParkSeat():
            return park(live, taken)
        case HandOverSession():
            return hand_over(live, message, taken)
        case OpenSession() | OpenNewSession() | ContinueSession():
            return swap(live, message, taken)
        case _:
            return on_operation(live, message, taken)


def on_operation(live: Live, message: OpsCommand, taken: Taken) -> Step[State]:
    """Names, branches, copies and ends of sessions."""
    if token_in(message) not in (None, live.session.token):  # guard: SESSION-2
        return _stale(live, taken)
    return operate(live, message, taken)


# --- what the doors say ------------------------------------------------------------------


def on_write_outcome(state: State, outcome: DiskOutcome, taken: Taken) -> Step[State]:
    """How a write went: in the session that the seat has, or has until a swap commits."""
    match state:
        case Live():
            step = on_disk(state, outcome, taken)
            if isinstance(step.state.appends, Outdated):
                return reopen(step, ())
            return widened(step)
        case Loading(before=Live() as before) | Committing(before=Live() as before):
            return _keep(state, on_disk(before, outcome, taken))
        case Draining(before=before) | HandingOver(before=before):
            return _keep(state, on_disk(before, outcome, taken))
        case Yielding(before=before):
            step = on_disk(before, outcome, taken)
            return release_when_quiet(step.to(replace(state, before=step.state)))
        case Flushing(before=before):
            step = on_disk(before, outcome, taken)
            return commit_when_quiet(step.to(replace(state, before=step.state)))
        case Rewinding():
            return resumed(on_rewound(state, outcome))
        case _:
            return Step(state)


# --- pure helpers ------------------------------------------------------------------------


def resumed(resume: Resume) -> Step[State]:
    """Take up what waited, in the order in which it came (SESSION-1)."""
    step = resume.step
    for each in resume.held:
        step = step.then(session_step, each.message, each.taken)
    return step


def _append(live: Live, message: AppendEntries, taken: Taken) -> Step[Live]:
    if message.token != live.session.token:  # guard: SESSION-2
        return Step(live).answer(taken.asker, Stale(current=live.session.token))
    return take_append(live, message, taken)


def _stale(live: Live, taken: Taken) -> Step[State]:
    return Step[State](live).answer(taken.asker, Stale(current=live.session.token))


def _keep(
    state: Loading | Draining | Flushing | Committing | HandingOver | Yielding, step: Step[Live]
) -> Step[State]:
    """The session went on under a swap or a handover, which keeps its place."""
    return step.to(replace(state, before=step.state))


class SessionActor(Owner):
    step = staticmethod(session_step)
    first = Waking
