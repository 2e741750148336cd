"""What a seat's session hands on, once its token was compared: starts and cancels of turns."""

from msgspec.structs import replace

from tenure.actors.session_state import Closed, Live, State
from tenure.messages.session import AppendUnknown, StartTurn
from tenure.messages.tokens import turn_id
from tenure.messages.turn import RunTurn, StopActiveTurn
from tenure.runtime.step import Step, Taken


def start_turn(live: Live, message: StartTurn, taken: Taken) -> Step[State]:
    """Mint the turn's id, and hand the start on."""
    session = live.session
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
        overrides=message.overrides,
    )
    counted = replace(live, session=replace(session, last_turn=number))
    return Step[State](counted).forward("turn", run, taken.asker)


def cancel_turn(live: Live, taken: Taken) -> Step[State]:
    """In the lane of the starts: it meets the turn that runs when it is taken."""
    return Step[State](live).forward("turn", StopActiveTurn(cause="user"), taken.asker)
