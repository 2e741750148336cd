"""A swap: load the target, drain the turn, flush its appends, commit, attach, let the old one go.

Until the commit nothing of the old session changes, so a failure before it only
gives the seat back what it had (SESSION-4).
"""

from msgspec.structs import replace

from tenure.actors.session_reopening import attached, reopen
from tenure.actors.session_state import (
    ARRIVE,
    Arrive,
    ClearOld,
    Closed,
    Committing,
    DeleteOld,
    Draining,
    Flushing,
    Live,
    Loading,
    NotOpened,
    Outdated,
    Purpose,
    Quiet,
    Resume,
    Settling,
    State,
    Swap,
    TurnWasDrained,
    Vacant,
    Writing,
    session_of,
)
from tenure.actors.session_view import ids_of, opened_reply, texts_of
from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Reply
from tenure.messages.session import (
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    ContinueSession,
    OpenNewSession,
    OpenSession,
    SettleCalls,
    StorageFailed,
)
from tenure.messages.session_ops import (
    BadPattern,
    EntryNotFound,
    NothingToRewrite,
    SessionEmpty,
)
from tenure.messages.tokens import SessionId
from tenure.messages.transcripts import (
    Again,
    AlterTranscript,
    ById,
    Changed,
    ChangeStored,
    CloseTranscript,
    Discard,
    DiscardAll,
    Fresh,
    Newest,
    NoteSeat,
    Opened,
    OpenTranscript,
    Target,
    TranscriptAltered,
)
from tenure.messages.turn import AbandonDrain, DrainTurn, TurnDrained
from tenure.runtime.step import Step, Taken

NotAltered = (
    EntryNotFound
    | SessionEmpty
    | BadPattern
    | NothingToRewrite
    | StorageFailed
    | AppendFailed
    | AppendUnknown
    | ChangedOutside
)

SwapCommand = OpenSession | OpenNewSession | ContinueSession

OfTheTurn = AppendEntries | SettleCalls
"""What a turn needs answered before it can end: never held while it is drained."""


def swap(live: Live, message: SwapCommand, taken: Taken) -> Step[State]:
    """The first step of a swap: the target is loaded, and nothing else happens yet."""
    here = live.session
    session_id = here.token.session_id
    match message:
        case OpenNewSession():
            return load(live, _target(message), taken)
        case OpenSession() if message.session_id != session_id:
            return load(live, _target(message), taken)
        case OpenSession() | ContinueSession():
            if isinstance(live.appends, Closed | Outdated):
                return load(live, Again(session_id=session_id), taken)
            return Step[State](live).answer(taken.asker, opened_reply(here))


def fill(vacant: Vacant, message: SwapCommand, taken: Taken) -> Step[State]:
    """A seat without a session gets one: the same way, with nothing to drain."""
    return load(vacant, _target(message), taken)


def load(
    before: Live | Vacant,
    target: Target,
    taken: Taken,
    purpose: Purpose = ARRIVE,
) -> Step[State]:
    loading = Loading(before, Swap(target, taken.asker, purpose))
    return Step[State](loading).do(OpenTranscript(target=target))


def on_loaded(state: Loading, opened: Opened) -> Resume:
    """The target is locked and loaded.  What the turn wrote meanwhile is written first."""
    before = state.before
    if isinstance(before, Vacant):
        return Resume(_commit(Step(Committing(before, opened, state.swap, (), state.held))))
    of_the_turn = tuple(each for each in state.held if isinstance(each.message, OfTheTurn))
    others = tuple(each for each in state.held if not isinstance(each.message, OfTheTurn))
    draining = Draining(before, opened, state.swap, others)
    drain = Step[State](draining).ask("turn", DrainTurn(), re=TurnWasDrained())
    return Resume(drain, of_the_turn)


def on_not_loaded(state: Loading, refusal: NotOpened) -> Resume:
    """A failure before the commit: what was before goes on as if nothing had been asked."""
    return _as_before(state, Step(state.before).answer(state.swap.asker, refusal))


def on_drained(state: Draining, reply: Reply) -> Step[State]:
    """Nothing runs any more.  A turn owner that died is drained too: nothing of it runs."""
    queued = reply.queued if isinstance(reply, TurnDrained) else ()
    flushing = Flushing(state.before, state.opened, state.swap, queued, state.held)
    return commit_when_quiet(Step(flushing))


def commit_when_quiet(step: Step[Flushing]) -> Step[State]:
    """The old file gets its last entry before the pointer moves."""
    state = step.state
    if isinstance(state.before.appends, Writing | Settling):  # guard: SESSION-5
        return step.to(state)
    committing = Committing(state.before, state.opened, state.swap, state.queued, state.held)
    return _commit(step.to(committing))


def on_committed(state: Committing) -> Resume:
    """The swap happened: pointer, token and session-local state change in this one step."""
    before = state.before
    new_id = state.opened.token.session_id
    if isinstance(before, Vacant):
        session = session_of(state.opened, 0)
        return Resume(_arrived(state, Live(session, Quiet())), state.held)
    old_id = before.session.token.session_id
    counted = before.session.last_turn if old_id == new_id else 0
    step = _arrived(state, Live(session_of(state.opened, counted), Quiet()))
    step = step.tell("approval", EndSessionGrants(session_id=old_id))
    if old_id != new_id:
        returned = ids_of(state.queued)
        step = step.do(CloseTranscript(session_id=old_id, returned=returned))
    return Resume(_then(step, state, old_id), state.held)


def on_not_committed(state: Committing, reason: str) -> Resume:
    """The last moment at which a swap can fail: the target is let go of, the queue armed again."""
    failed = StorageFailed(path=state.opened.path, reason=reason)
    step = Step(state.before).answer(state.swap.asker, failed)
    new_id = state.opened.token.session_id
    if isinstance(state.before, Live):
        step = step.tell("turn", AbandonDrain())
    if isinstance(state.before, Vacant) or state.before.session.token.session_id != new_id:
        step = step.do(CloseTranscript(session_id=new_id))
    return _as_before(state, step)


# --- the same session, changed other than by an append -----------------------------------------


def on_altered(state: Committing, outcome: TranscriptAltered) -> Resume:
    """The leaf or the file is another: the token moves, as by a swap."""
    before = state.before
    counted = before.session.last_turn if isinstance(before, Live) else 0
    session = session_of(outcome.opened, counted)
    waiting, returned = outcome.opened.queue, ids_of(state.queued)
    step = attached(Step[State](Live(session, Quiet())), session, waiting, returned)
    step = step.tell("approval", EndSessionGrants(session_id=session.token.session_id))
    reply = replace(outcome.reply, dropped=texts_of(state.queued))
    return Resume(step.answer(state.swap.asker, reply), state.held)


def on_not_altered(state: Committing, refusal: NotAltered) -> Resume:
    """The session is as it was, and its queue armed again; or nobody knows what the disk holds."""
    before = state.before
    if isinstance(before, Live) and isinstance(refusal, AppendUnknown):
        before = Live(before.session, Closed(refusal.reason))
    elif isinstance(before, Live) and isinstance(refusal, ChangedOutside):
        before = Live(before.session, Outdated(refusal.path))
    step = Step(before).answer(state.swap.asker, refusal)
    return _as_before(state, step.tell("turn", AbandonDrain()))


# --- pure helpers ------------------------------------------------------------------------


def _target(message: SwapCommand) -> Target:
    match message:
        case OpenSession(session_id=session_id):
            return ById(session_id=session_id)
        case OpenNewSession(name=name):
            return Fresh(name=name)
        case ContinueSession():
            return Newest()


def _commit(step: Step[Committing]) -> Step[State]:
    committing = step.state
    state: State = committing
    if isinstance(committing.swap.target, Changed):
        change = committing.swap.target.change
        return step.to(state).do(AlterTranscript(token=committing.opened.token, change=change))
    return step.to(state).do(NoteSeat(session_id=committing.opened.token.session_id))


def _arrived(state: Committing, live: Live) -> Step[State]:
    session = live.session
    waiting, returned = state.opened.queue, ids_of(state.queued)
    step = attached(Step(live), session, waiting, returned)
    if not isinstance(state.swap.purpose, Arrive):
        return step  # answered when the old session is gone
    return step.answer(state.swap.asker, opened_reply(session, state.queued))


def _then(step: Step[State], state: Committing, old_id: SessionId) -> Step[State]:
    """What the swap was for, behind the end of the old session."""
    asker, token = state.swap.asker, state.opened.token
    match state.swap.purpose:
        case DeleteOld():
            discard = Discard(session_id=old_id, current=token)
            return step.do(ChangeStored(asker=asker, change=discard))
        case ClearOld():
            return step.do(ChangeStored(asker=asker, change=DiscardAll(current=token)))
        case Arrive():
            return step


def _as_before(state: Loading | Committing, step: Step[Live | Vacant]) -> Resume:
    """The seat has what it had; a file that was changed meanwhile is opened again only now."""
    before = step.state
    if isinstance(before, Live) and isinstance(before.appends, Outdated):
        return Resume(reopen(step.to(before), state.held))
    return Resume(step.to(before), state.held)
