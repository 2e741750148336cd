"""What a seat shows of its session, in every state."""

from typing import assert_never

from tenure.actors.session_state import (
    Closed,
    Committing,
    Draining,
    Flushing,
    HandingOver,
    LettingGo,
    Live,
    Loading,
    Parked,
    Parking,
    Releasing,
    Reopening,
    Restoring,
    Rewinding,
    Session,
    State,
    Unwinding,
    Vacant,
    Waking,
    Yielding,
)
from tenure.messages.limits import GetSpending, ReadSpending, SpendingNotRead, SpendingRead
from tenure.messages.queue import QueuedText
from tenure.messages.session import (
    GetSession,
    NoSession,
    SeatState,
    SessionOpened,
    SessionView,
    StorageFailed,
)
from tenure.messages.tokens import QueueItemId
from tenure.runtime.step import AskId, Step, Taken


def view_of(state: State) -> SessionView | NoSession:
    """What the seat has now, in every state."""
    match state:
        case Live(session, Closed()):
            return _view(session, "closed_for_writing")
        case Live(session) | Parking(before=Live(session)):
            return _view(session, "live")
        case Unwinding(before=Live(session)) | Rewinding(before=Live(session)):
            return _view(session, "live")
        case Restoring(session):
            return _view(session, "swapping")
        case (
            Loading(before=Live(session))
            | Draining(before=Live(session))
            | Flushing(before=Live(session))
            | Committing(before=Live(session))
        ):
            return _view(session, "swapping")
        case HandingOver(before=Live(session)) | Yielding(before=Live(session)):
            return _view(session, "handing_over")
        case Releasing(session):
            return _view(session, "handing_over")
        case Parked(session) | LettingGo(session):
            return _view(session, "parked")
        case Vacant(reason):
            return NoSession(reason=reason)
        case Loading() | Committing() | Waking() | Reopening():
            return NoSession(reason="it is being opened")
        case _:
            assert_never(state)


def on_query(state: State, query: GetSession | GetSpending, taken: Taken) -> Step[State]:
    """What the seat has now, or what was used in it; nothing changes."""
    view = view_of(state)
    if isinstance(query, GetSession) or isinstance(view, NoSession):
        return Step(state).answer(taken.asker, view)
    read = ReadSpending(session_id=view.token.session_id, path=view.path, asker=taken.asker)
    return Step(state).do(read)


def on_spending(state: State, outcome: SpendingRead | SpendingNotRead) -> Step[State]:
    """Whoever asked is named in the outcome."""
    asker = None if outcome.asker is None else AskId(outcome.asker)
    match outcome:
        case SpendingRead(spending=spending):
            return Step(state).answer(asker, spending)
        case SpendingNotRead(path=path, reason=reason):
            return Step(state).answer(asker, StorageFailed(path=path, reason=reason))


def _view(session: Session, state: SeatState) -> SessionView:
    return SessionView(
        token=session.token,
        path=session.path,
        leaf=session.leaf,
        seq=session.seq,
        last_turn=session.last_turn,
        state=state,
        damage=session.damage,
        interrupted=session.interrupted,
    )


def opened_reply(session: Session, dropped: tuple[QueuedText, ...] = ()) -> SessionOpened:
    return SessionOpened(
        token=session.token,
        path=session.path,
        entries=session.entries,
        damage=session.damage,
        dropped=texts_of(dropped),
        interrupted=session.interrupted,
    )


def texts_of(queued: tuple[QueuedText, ...]) -> tuple[str, ...]:
    return tuple(each.text for each in queued)


def ids_of(queued: tuple[QueuedText, ...]) -> tuple[QueueItemId, ...]:
    return tuple(each.item_id for each in queued)
