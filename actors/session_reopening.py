"""A seat and the session that it had: waking, opening again, and letting go while idle."""

from tenure.actors.session_state import (
    Closed,
    CompactionWasLookedAt,
    LettingGo,
    Live,
    NotOpened,
    Outdated,
    Parked,
    Parking,
    Quiet,
    Reopening,
    Resume,
    Session,
    State,
    TurnWasLookedAt,
    Vacant,
    Waking,
    session_of,
)
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Reply
from tenure.messages.compaction import CompactionView, DropPasses, GetCompaction
from tenure.messages.queue import QueuedPrompt
from tenure.messages.session import SeatBusy, SeatParked, SessionChanged
from tenure.messages.tokens import QueueItemId, SessionId
from tenure.messages.transcripts import (
    Again,
    CloseTranscript,
    Opened,
    OpenTranscript,
    SeatRemembered,
    SeatVacant,
)
from tenure.messages.turn import AttachSession, GetTurn, TurnView
from tenure.runtime.step import Held, Step, Taken


def on_seat_read(state: Waking, message: SeatVacant | SeatRemembered) -> Resume:
    """An incarnation knows which session the seat had, if any."""
    match message:
        case SeatVacant(reason=reason):
            return Resume(Step(Vacant(reason)), state.held)
        case SeatRemembered(session_id=session_id):
            reopening = Reopening(session_id, 0, state.held)
            return Resume(Step[State](reopening).do(_open_again(session_id)))


def reopen(step: Step[Live], held: tuple[Held, ...]) -> Step[State]:
    """The seat's own session is opened again; what comes meanwhile waits."""
    session = step.state.session
    session_id = session.token.session_id
    reopening = Reopening(session_id, session.last_turn, held)
    return step.to(reopening).do(_open_again(session_id)).to(reopening)


def unpark(state: Parked, held: tuple[Held, ...]) -> Step[State]:
    """A command for a parked seat opens its session again."""
    token = state.session.token
    reopening = Reopening(token.session_id, state.session.last_turn, held)
    again = Again(session_id=token.session_id, epoch=token.epoch)
    return Step[State](reopening).do(OpenTranscript(target=again))


def on_reopened(state: Reopening, opened: Opened) -> Resume:
    session = session_of(opened, state.last_turn)
    live = Step[State](Live(session, Quiet()))
    return Resume(attached(live, session, opened.queue), state.held)


def on_not_reopened(state: Reopening, refusal: NotOpened) -> Resume:
    """The session is lost to this seat, and with it what was granted in it."""
    vacant = Step[State](Vacant(refusal.remedy))
    ended = EndSessionGrants(session_id=state.session_id)
    return Resume(vacant.tell("approval", ended), state.held)


def attached(
    step: Step[State],
    session: Session,
    waiting: tuple[QueuedPrompt, ...],
    returned: tuple[QueueItemId, ...] = (),
) -> Step[State]:
    """The seat has this session now: say so, and let the turn owner count from its last turn.

    Args:
        waiting: what the transcript says to wait.
        returned: what of it the swap gives back.
    """
    attach = AttachSession(
        token=session.token, last_turn=session.last_turn, queue=waiting, returned=returned
    )
    changed = SessionChanged(token=session.token, path=session.path)
    return step.emit(changed).tell("turn", attach).tell("compaction", DropPasses())


# --- parking -------------------------------------------------------------------------------


def park(live: Live, taken: Taken) -> Step[State]:
    """Is the seat idle?  Only the turn owner knows."""
    if not isinstance(live.appends, Quiet | Closed | Outdated):
        return Step[State](live).answer(taken.asker, SeatBusy())
    parking = Parking(before=live, asker=taken.asker)
    return Step[State](parking).ask("turn", GetTurn(), re=TurnWasLookedAt())


def on_idle_seen(state: Parking, reply: Reply) -> Resume:
    """First the turn answers, then the compaction; then the seat is idle."""
    match reply:
        case TurnView(turn_id=None, queued=(), held=()):
            step = Step[State](state)
            return Resume(step.ask("compaction", GetCompaction(), re=CompactionWasLookedAt()))
        case CompactionView(pass_id=None):
            session = state.before.session
            letting_go = LettingGo(session, state.asker, state.held)
            close = CloseTranscript(session_id=session.token.session_id)
            return Resume(Step[State](letting_go).do(close))
        case _:
            busy = Step[State](state.before).answer(state.asker, SeatBusy())
            return Resume(busy, state.held)


def on_let_go(state: LettingGo) -> Resume:
    parked = SeatParked(token=state.session.token)
    return Resume(Step[State](Parked(state.session)).answer(state.asker, parked), state.held)


def _open_again(session_id: SessionId) -> OpenTranscript:
    return OpenTranscript(target=Again(session_id=session_id))
