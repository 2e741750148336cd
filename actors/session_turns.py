"""What a seat's session hands on, once its token was compared: turns, and what waits for one."""

from msgspec.structs import replace

from tenure.actors.session_state import Closed, Live, State
from tenure.messages.limits import Overrides
from tenure.messages.queue import (
    QUEUE_ITEMS_MAX,
    AdmitPrompt,
    ArmQueue,
    Cancel,
    CancelPrompt,
    ChangeQueue,
    ContinueTurn,
    Edit,
    EditPrompt,
    FollowUpTurn,
    Move,
    MovePrompt,
    NothingToResume,
    RedirectTurn,
    ReleaseQueue,
    ResumeTurn,
    RunPrompt,
    SteerTurn,
)
from tenure.messages.session import AppendUnknown, StartTurn
from tenure.messages.tokens import SessionToken, TurnId, turn_id
from tenure.messages.turn import RunTurn, StopActiveTurn, WhenBusy
from tenure.runtime.step import Step, Taken

Start = StartTurn | SteerTurn | FollowUpTurn | RedirectTurn
QueueChange = EditPrompt | MovePrompt | CancelPrompt
TurnWish = Start | QueueChange | ReleaseQueue | ResumeTurn | AdmitPrompt


def on_wish(live: Live, message: TurnWish, taken: Taken) -> Step[State]:
    """A wish for the session that its sender meant."""
    if isinstance(live.appends, Closed):
        return Step[State](live).answer(taken.asker, AppendUnknown(reason=live.appends.reason))
    token = live.session.token
    match message:
        case AdmitPrompt(item_id=item_id, turn_id=turn):
            queued = RunPrompt(item_id=item_id, turn_id=turn, token=token)
            return Step[State](live).forward("turn", queued, taken.asker)
        case ReleaseQueue():
            arm = ArmQueue(token=token, last_turn=live.session.last_turn)
            return _with_turns(live, QUEUE_ITEMS_MAX).forward("turn", arm, taken.asker)
        case ResumeTurn(model=model):
            return _resume(live, model, taken)
        case EditPrompt() | MovePrompt() | CancelPrompt():
            change = ChangeQueue(token=token, change=_change(message))
            return Step[State](live).forward("turn", change, taken.asker)
        case _:
            return _start(live, message, taken)


def cancel_turn(live: Live, taken: Taken) -> Step[State]:
    """In the lane of the starts: it meets the turn that runs when it is taken."""
    return Step[State](live).forward("turn", StopActiveTurn(cause="user"), taken.asker)


# --- pure helpers ------------------------------------------------------------------------


def _start(live: Live, message: Start, taken: Taken) -> Step[State]:
    """Mint the turn's id, and hand the start on."""
    run = RunTurn(
        turn_id=_next_turn(live),
        token=live.session.token,
        text=message.text,
        images=message.images,
        model=message.model if isinstance(message, StartTurn | RedirectTurn) else "",
        when_busy=_when_busy(message),
        overrides=message.overrides if isinstance(message, StartTurn) else Overrides(),
    )
    return _with_turns(live, 1).forward("turn", run, taken.asker)


def _when_busy(message: Start) -> WhenBusy:
    match message:
        case StartTurn(when_busy=when_busy):
            return when_busy
        case SteerTurn():
            return "steer"
        case FollowUpTurn():
            return "follow_up"
        case RedirectTurn():
            return "redirect"


def _resume(live: Live, model: str, taken: Taken) -> Step[State]:
    session = live.session
    if session.interrupted is None:
        return Step[State](live).answer(taken.asker, NothingToResume())
    go_on = ContinueTurn(
        turn_id=_next_turn(live),
        token=session.token,
        model=model,
        resumes=session.interrupted,
    )
    return _with_turns(live, 1).forward("turn", go_on, taken.asker)


def _change(message: QueueChange) -> Edit | Move | Cancel:
    match message:
        case EditPrompt(item_id=item_id, text=text):
            return Edit(item_id=item_id, text=text)
        case MovePrompt(item_id=item_id, position=position):
            return Move(item_id=item_id, position=position)
        case CancelPrompt(item_id=item_id):
            return Cancel(item_id=item_id)


def _next_turn(live: Live) -> TurnId:
    token: SessionToken = live.session.token
    return turn_id(token.session_id, live.session.last_turn + 1)


def _with_turns(live: Live, count: int) -> Step[State]:
    """So many numbers are given out: none of them comes again."""
    session = live.session
    return Step(replace(live, session=replace(session, last_turn=session.last_turn + count)))
