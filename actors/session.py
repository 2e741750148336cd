"""SessionActor: which session a seat has, and the one hand that appends to it.

    Waking -> Vacant | Reopening          an incarnation begins
    Vacant | Live -> Loading -> Draining -> Flushing -> Committing -> Live    a swap
    Live -> Parking -> LettingGo -> Parked -> Reopening -> Live               a park
    Live -> Reopening -> Live             the file was changed by another program

ARCHITECTURE.md, section SessionActor.
"""

from typing import assert_never

from msgspec.structs import replace

from tenure.actors.session_appends import DiskOutcome, on_disk, take_append, take_settle
from tenure.actors.session_state import (
    Closed,
    Committing,
    Draining,
    Flushing,
    LettingGo,
    Live,
    Loading,
    Parked,
    Parking,
    Quiet,
    Reopening,
    Session,
    State,
    Swap,
    TurnWasDrained,
    TurnWasLookedAt,
    Vacant,
    Waking,
)
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Command, Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.session import (
    Again,
    AppendEntries,
    AppendUnknown,
    ById,
    CancelTurn,
    CloseTranscript,
    ContinueSession,
    Fresh,
    GetSession,
    Newest,
    NoSession,
    NoteSeat,
    Opened,
    OpenNewSession,
    OpenSession,
    OpenTranscript,
    ParkSeat,
    ReadSeat,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    SeatBusy,
    SeatNoted,
    SeatNotNoted,
    SeatParked,
    SeatRemembered,
    SeatState,
    SeatVacant,
    SessionChanged,
    SessionOpened,
    SessionView,
    SettleCalls,
    Stale,
    StartTurn,
    StorageFailed,
    Target,
    TranscriptChanged,
    TranscriptClosed,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.messages.tokens import turn_id
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    RunTurn,
    StopActiveTurn,
    TurnDrained,
    TurnView,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import Held, Step, Taken

SwapCommand = OpenSession | OpenNewSession | ContinueSession
SessionCommand = (
    SwapCommand | AppendEntries | StartTurn | CancelTurn | SettleCalls | ParkSeat | GetSession
)


def session_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message.  Commands first, then what the doors and the turn say."""
    match message:
        case GetSession():
            return on_get(state, taken)
        case OpenSession() | OpenNewSession() | ContinueSession() | AppendEntries():
            return on_command(state, message, taken)
        case StartTurn() | CancelTurn() | SettleCalls() | ParkSeat():
            return on_command(state, message, taken)
        case OwnerStarted():
            return Step[State](Waking()).do(ReadSeat())
        case SeatVacant() | SeatRemembered():
            return on_seat_read(state, message)
        case TranscriptOpened(opened=opened):
            return on_opened(state, opened, taken)
        case TranscriptNotOpened():
            return on_not_opened(state, message)
        case (
            RecordsAppended()
            | RecordsRefused()
            | RecordsUncertain()
            | TranscriptChanged()
            | TranscriptSettled()
        ):
            return on_write_outcome(state, message, taken)
        case Answered(re=TurnWasDrained(), reply=reply):
            return on_drained(state, reply)
        case Answered(re=TurnWasLookedAt(), reply=reply):
            return on_turn_seen(state, reply)
        case SeatNoted():
            return on_committed(state)
        case SeatNotNoted(reason=reason):
            return on_not_committed(state, reason)
        case TranscriptClosed():
            return on_closed(state)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


# --- commands --------------------------------------------------------------------------


def on_command(state: State, message: SessionCommand, taken: Taken) -> Step[State]:
    """A command meets a state: now, later, or no."""
    match state:
        case Live():
            return on_live_command(state, message, taken)
        case Vacant():
            return on_vacant_command(state, message, taken)
        case Draining() | Flushing():
            # The turn that is being drained writes its last entries now.
            if isinstance(message, AppendEntries):
                return _keep(state, _append(state.before, message, taken))
            return Step(_hold(state, message, taken))
        case Waking() | Loading() | Committing() | Reopening() | Parking() | LettingGo():
            return Step(_hold(state, message, taken))
        case Parked(session=session):
            if isinstance(message, ParkSeat):
                return Step[State](state).answer(taken.asker, SeatParked(token=session.token))
            reopening = Reopening(session.token.session_id, (Held(message, taken),))
            return _reopen(reopening)
        case _:
            assert_never(state)


def on_live_command(live: Live, message: SessionCommand, taken: Taken) -> Step[State]:
    match message:
        case AppendEntries():
            return _widen(_append(live, message, taken))
        case SettleCalls():
            return _widen(take_settle(live, taken))
        case StartTurn():
            return on_start_turn(live, message, taken)
        case CancelTurn(token=token):
            if token is not None and token != live.session.token:  # guard: SESSION-2
                return _stale(live, taken)
            return Step[State](live).forward("turn", StopActiveTurn(cause="user"), taken.asker)
        case ParkSeat():
            if not isinstance(live.appends, Quiet):
                return Step[State](live).answer(taken.asker, SeatBusy())
            parking = Parking(before=live, asker=taken.asker)
            return Step[State](parking).ask("turn", GetTurn(), re=TurnWasLookedAt())
        case OpenSession() | OpenNewSession() | ContinueSession():
            return on_swap(live, message, taken)
        case GetSession():
            return on_get(live, taken)


def on_vacant_command(state: Vacant, message: SessionCommand, taken: Taken) -> Step[State]:
    match message:
        case OpenSession() | OpenNewSession() | ContinueSession():
            return _load(state, _target(message), taken)
        case _:
            return Step[State](state).answer(taken.asker, NoSession(reason=state.reason))


def on_start_turn(live: Live, message: StartTurn, taken: Taken) -> Step[State]:
    """Check the token, mint the turn's id, and hand the start on."""
    session = live.session
    if message.token is not None and message.token != session.token:  # guard: TURN-6
        return _stale(live, taken)
    if isinstance(live.appends, Closed):
        return Step[State](live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    number = session.last_turn + 1
    run = RunTurn(
        turn_id=turn_id(session.token.session_id, number),
        token=session.token,
        text=message.text,
        images=message.images,
        model=message.model,
        when_busy=message.when_busy,
    )
    counted = replace(live, session=replace(session, last_turn=number))
    return Step[State](counted).forward("turn", run, taken.asker)


def on_swap(live: Live, message: SwapCommand, taken: Taken) -> Step[State]:
    """The first step of a swap: the target is loaded, and nothing else happens yet."""
    here = live.session
    whole = not isinstance(live.appends, Closed)
    match message:
        case ContinueSession() if whole:
            return Step[State](live).answer(taken.asker, _opened_reply(here))
        case OpenSession(session_id=session_id) if session_id == here.token.session_id and whole:
            return Step[State](live).answer(taken.asker, _opened_reply(here))
        case ContinueSession():
            return _load(live, Again(session_id=here.token.session_id), taken)
        case OpenSession(session_id=session_id) if session_id == here.token.session_id:
            return _load(live, Again(session_id=session_id), taken)
        case OpenSession() | OpenNewSession():
            return _load(live, _target(message), taken)


def on_get(state: State, taken: Taken) -> Step[State]:
    """What the seat has, at once, in every state."""
    match state:
        case Live(session, Closed()):
            view: Reply = _view(session, "closed_for_writing")
        case Live(session) | Parking(before=Live(session)):
            view = _view(session, "live")
        case (
            Loading(before=Live(session))
            | Draining(before=Live(session))
            | Flushing(before=Live(session))
            | Committing(before=Live(session))
        ):
            view = _view(session, "swapping")
        case Parked(session) | LettingGo(session):
            view = _view(session, "parked")
        case Vacant(reason):
            view = NoSession(reason=reason)
        case Loading() | Committing() | Waking() | Reopening():
            view = NoSession(reason="it is being opened")
        case _:
            assert_never(state)
    return Step(state).answer(taken.asker, view)


# --- what the doors and the turn say ---------------------------------------------------------


def on_seat_read(state: State, message: SeatVacant | SeatRemembered) -> Step[State]:
    if not isinstance(state, Waking):
        return Step(state)
    match message:
        case SeatVacant(reason=reason):
            return _replay(Step[State](Vacant(reason)), state.held)
        case SeatRemembered(session_id=session_id):
            return _reopen(Reopening(session_id, state.held))


def on_opened(state: State, opened: Opened, taken: Taken) -> Step[State]:
    """The target is locked and loaded."""
    match state:
        case Loading(before=Vacant() as before, swap=swap, held=held):
            return _commit(before, opened, swap, (), held)
        case Loading(before=Live() as before, swap=swap, held=held):
            # Appends that came while the target loaded are written first, in order.
            appends = tuple(each for each in held if isinstance(each.message, AppendEntries))
            others = tuple(each for each in held if not isinstance(each.message, AppendEntries))
            draining = Draining(before, opened, swap, others)
            drain = Step[State](draining).ask("turn", DrainTurn(), re=TurnWasDrained())
            return _replay(drain, appends)
        case Reopening(held=held):
            session = _session(opened)
            step = Step[State](Live(session, Quiet()))
            return _replay(_attached(step, session), held)
        case _:
            # Nobody waits for it: let it go, so that its claim is not kept for nothing.
            return Step[State](state).do(CloseTranscript(session_id=opened.token.session_id))


def on_not_opened(state: State, message: TranscriptNotOpened) -> Step[State]:
    """A failure before the commit: what was before goes on as if nothing had been asked."""
    match state:
        case Loading(before=before, swap=swap, held=held):  # guard: SESSION-4
            return _replay(Step[State](before).answer(swap.asker, message.refusal), held)
        case Reopening(held=held):
            return _replay(Step[State](Vacant(message.refusal.remedy)), held)
        case _:
            return Step(state)


def on_drained(state: State, reply: Reply) -> Step[State]:
    """Nothing runs any more.  A turn owner that died is drained too: nothing of it runs."""
    if not isinstance(state, Draining):
        return Step(state)
    queued = reply.queued if isinstance(reply, TurnDrained) else ()
    flushing = Flushing(state.before, state.opened, state.swap, queued, state.held)
    return _commit_when_quiet(flushing)


def on_turn_seen(state: State, reply: Reply) -> Step[State]:
    if not isinstance(state, Parking):
        return Step(state)
    idle = isinstance(reply, TurnView) and reply.turn_id is None and not reply.queued
    if not idle:
        return _replay(Step[State](state.before).answer(state.asker, SeatBusy()), state.held)
    session = state.before.session
    letting_go = LettingGo(session, state.asker, state.held)
    return Step[State](letting_go).do(CloseTranscript(session_id=session.token.session_id))


def on_write_outcome(state: State, outcome: DiskOutcome, taken: Taken) -> Step[State]:
    match state:
        case Live():
            written = on_disk(state, outcome, taken)
            if isinstance(outcome, TranscriptChanged):
                return _reopen(Reopening(state.session.token.session_id), written)
            return _widen(written)
        case Loading(before=Live() as before) | Committing(before=Live() as before):
            return _keep(state, on_disk(before, outcome, taken))
        case Draining():
            return _keep(state, on_disk(state.before, outcome, taken))
        case Flushing():
            step = on_disk(state.before, outcome, taken)
            done = _commit_when_quiet(replace(state, before=step.state))
            return _with_sendings(step, done)
        case _:
            return Step(state)


def on_committed(state: State) -> Step[State]:
    """The swap happened: pointer, token and session-local state change in this one step."""
    if not isinstance(state, Committing):
        return Step(state)
    session = _session(state.opened)
    step = Step[State](Live(session, Quiet()))
    step = _attached(step, session)
    step = step.answer(state.swap.asker, _opened_reply(session, state.queued))
    if isinstance(state.before, Live):
        old = state.before.session.token.session_id
        step = step.tell("approval", EndSessionGrants(session_id=old))
        if old != session.token.session_id:
            step = step.do(CloseTranscript(session_id=old))
    return _replay(step, state.held)


def on_not_committed(state: State, reason: str) -> Step[State]:
    if not isinstance(state, Committing):
        return Step(state)
    new = state.opened.token.session_id
    step = Step[State](state.before)
    step = step.answer(state.swap.asker, StorageFailed(path=state.opened.path, reason=reason))
    if isinstance(state.before, Live):
        step = step.tell("turn", AbandonDrain())
        if state.before.session.token.session_id != new:
            step = step.do(CloseTranscript(session_id=new))
    else:
        step = step.do(CloseTranscript(session_id=new))
    return _replay(step, state.held)


def on_closed(state: State) -> Step[State]:
    match state:
        case LettingGo(session, asker, held):
            step = Step[State](Parked(session)).answer(asker, SeatParked(token=session.token))
            return _replay(step, held)
        case _:
            return Step(state)


# --- pure helpers ------------------------------------------------------------------------

Holding = Waking | Loading | Draining | Flushing | Committing | Reopening | Parking | LettingGo


def _append(live: Live, message: AppendEntries, taken: Taken) -> Step[Live]:
    if message.token != live.session.token:  # guard: SESSION-2
        return Step(live).answer(taken.asker, Stale(current=live.session.token))
    return take_append(live, message, taken)


def _stale(live: Live, taken: Taken) -> Step[State]:
    return Step[State](live).answer(taken.asker, Stale(current=live.session.token))


def _load(before: Live | Vacant, target: Target, taken: Taken) -> Step[State]:
    loading = Loading(before, Swap(target, taken.asker))
    return Step[State](loading).do(OpenTranscript(target=target))


def _target(message: SwapCommand) -> Target:
    match message:
        case OpenSession(session_id=session_id):
            return ById(session_id=session_id)
        case OpenNewSession(name=name):
            return Fresh(name=name)
        case ContinueSession():
            return Newest()


def _commit(
    before: Live | Vacant,
    opened: Opened,
    swap: Swap,
    queued: tuple[str, ...],
    held: tuple[Held, ...],
) -> Step[State]:
    committing = Committing(before, opened, swap, queued, held)
    return Step[State](committing).do(NoteSeat(session_id=opened.token.session_id))


def _commit_when_quiet(state: Flushing) -> Step[State]:
    """The old file gets its last entry before the pointer moves."""
    if isinstance(state.before.appends, Quiet | Closed):  # guard: SESSION-5
        return _commit(state.before, state.opened, state.swap, state.queued, state.held)
    return Step(state)


def _reopen(state: Reopening, after: Step[Live] | None = None) -> Step[State]:
    step = Step[State](state) if after is None else _with_sendings(after, Step(state))
    return step.do(OpenTranscript(target=Again(session_id=state.session_id)))


def _hold(state: Holding, message: Command, taken: Taken) -> State:
    return replace(state, held=(*state.held, Held(message, taken)))


def _replay(step: Step[State], held: tuple[Held, ...]) -> Step[State]:
    for each in held:
        step = step.then(session_step, each.message, each.taken)
    return step


def _keep(state: Loading | Draining | Flushing | Committing, step: Step[Live]) -> Step[State]:
    """The old session went on under a swap: the swap keeps its place."""
    return step.to(replace(state, before=step.state))


def _attached(step: Step[State], session: Session) -> Step[State]:
    """The seat has this session now: say so, and let the turn owner count from its last turn."""
    attach = AttachSession(session_id=session.token.session_id, last_turn=session.last_turn)
    changed = SessionChanged(token=session.token, path=session.path)
    return step.emit(changed).tell("turn", attach)


def _widen(step: Step[Live]) -> Step[State]:
    return step.to(step.state)


def _with_sendings(first: Step[Live], then: Step[State]) -> Step[State]:
    return Step(
        then.state,
        first.replies + then.replies,
        first.events + then.events,
        first.mail + then.mail,
        first.effects + then.effects,
    )


def _session(opened: Opened) -> Session:
    return Session(
        token=opened.token,
        path=opened.path,
        leaf=opened.leaf,
        seq=opened.seq,
        entries=opened.entries,
        last_turn=opened.last_turn,
        keys=opened.keys,
        damage=opened.damage,
    )


def _opened_reply(session: Session, dropped: tuple[str, ...] = ()) -> SessionOpened:
    return SessionOpened(
        token=session.token,
        path=session.path,
        entries=session.entries,
        damage=session.damage,
        dropped=dropped,
    )


def _view(session: Session, state: SeatState) -> SessionView:
    return SessionView(
        token=session.token,
        path=session.path,
        leaf=session.leaf,
        seq=session.seq,
        last_turn=session.last_turn,
        state=state,
        damage=session.damage,
    )


class SessionActor(Owner):
    step = staticmethod(session_step)
    first = Waking
