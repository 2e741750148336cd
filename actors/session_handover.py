"""A handover: another process asks for the seat's session, and gets it in order.

    Live -> HandingOver -> Yielding -> Releasing -> Vacant
    Parked -> Releasing -> Vacant

The turn is stopped and drained, its last entries are written, and only then are
file and claim let go of.  Who asks is answered when the claim is free, or told at
once that a tool of the turn still runs; the handover then goes on by itself.
"""

from msgspec.structs import replace

from tenure.actors.session_state import (
    HandingOver,
    Live,
    Parked,
    Releasing,
    Resume,
    Session,
    Settling,
    State,
    ToolsWereLookedAt,
    TurnWasDrained,
    Vacant,
    Writing,
    Yielding,
)
from tenure.actors.session_view import ids_of, texts_of
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Reply
from tenure.messages.compaction import DropPasses
from tenure.messages.handover import (
    DetachSession,
    ForgetSeat,
    HandedOver,
    HandoverPending,
    HandOverSession,
    SessionHandedOver,
)
from tenure.messages.session import Stale
from tenure.messages.transcripts import CloseTranscript
from tenure.messages.turn import DrainTurn, GetTurn, TurnDrained, TurnView
from tenure.runtime.step import Step, Taken

GIVEN = "its session was handed over to another process"


def hand_over(live: Live, message: HandOverSession, taken: Taken) -> Step[State]:
    """Stop the turn.  How it is with its tools is asked behind that, in the same lane."""
    session_id = live.session.token.session_id
    if message.session_id != session_id:
        return Step[State](live).answer(taken.asker, Stale(current=live.session.token))
    handing = Step[State](HandingOver(live, (taken.asker,)))
    handing = handing.ask("turn", DrainTurn(cause="handover"), re=TurnWasDrained())
    return handing.ask("turn", GetTurn(), re=ToolsWereLookedAt())


def hand_over_parked(parked: Parked, message: HandOverSession, taken: Taken) -> Step[State]:
    """Nothing is held any more: the seat only has to forget it."""
    session = parked.session
    if message.session_id != session.token.session_id:
        return Step[State](parked).answer(taken.asker, Stale(current=session.token))
    return _release(Step(Releasing(session, (taken.asker,), (), ())))


def ask_again(
    state: HandingOver | Yielding | Releasing, message: HandOverSession, taken: Taken
) -> Step[State]:
    """A handover is under way: another asker waits for its end."""
    here = state.session if isinstance(state, Releasing) else state.before.session
    if message.session_id != here.token.session_id:
        return Step[State](state).answer(taken.asker, Stale(current=here.token))
    more = replace(state, askers=(*state.askers, taken.asker))
    if isinstance(more, HandingOver):
        return Step[State](more).ask("turn", GetTurn(), re=ToolsWereLookedAt())
    return Step(more)


def on_tools_seen(state: HandingOver, reply: Reply) -> Step[State]:
    """Who asked is not kept waiting for a tool that may never end."""
    if not isinstance(reply, TurnView) or not reply.calls:
        return Step(state)
    session_id = state.before.session.token.session_id
    step = Step[State](replace(state, askers=()))
    for asker in state.askers:
        step = step.answer(asker, HandoverPending(session_id=session_id, calls=reply.calls))
    return step


def on_yielded(state: HandingOver, reply: Reply) -> Step[State]:
    """Nothing runs any more.  A turn owner that died is drained too: nothing of it runs."""
    queued = reply.queued if isinstance(reply, TurnDrained) else ()
    return release_when_quiet(Step(Yielding(state.before, state.askers, queued, state.held)))


def release_when_quiet(step: Step[Yielding]) -> Step[State]:
    """The file gets its last entry before anybody else may write it."""
    state = step.state
    if isinstance(state.before.appends, Writing | Settling):  # guard: SESSION-5
        return step.to(state)
    session = state.before.session
    return _release(step.to(Releasing(session, state.askers, state.queued, state.held)))


def on_released(state: Releasing) -> Resume:
    """The claim is free: say so, and let the seat be empty."""
    token = state.session.token
    dropped = texts_of(state.queued)
    step = Step[State](Vacant(GIVEN))
    for asker in state.askers:
        step = step.answer(asker, HandedOver(token=token, dropped=dropped))
    step = step.emit(SessionHandedOver(token=token, dropped=dropped))
    step = step.tell("approval", EndSessionGrants(session_id=token.session_id))
    step = step.tell("compaction", DropPasses())
    return Resume(step.tell("turn", DetachSession()), state.held)


# --- pure helpers ------------------------------------------------------------------------


def _release(step: Step[Releasing]) -> Step[State]:
    """Forgotten first: a restart in between must not open the session again."""
    session: Session = step.state.session
    state: State = step.state
    session_id, returned = session.token.session_id, ids_of(step.state.queued)
    close = CloseTranscript(session_id=session_id, returned=returned)
    return step.to(state).do(ForgetSeat(), close)
