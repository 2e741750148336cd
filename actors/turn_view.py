"""What a turn shows of itself, in every state."""

from tenure.actors.turn_holdings import queue_of
from tenure.actors.turn_state import (
    Acting,
    Resting,
    Running,
    State,
    StoppingTools,
)
from tenure.messages.content import Usage
from tenure.messages.tokens import CallId
from tenure.messages.turn import TurnView
from tenure.runtime.step import Step, Taken


def on_get(state: State, taken: Taken) -> Step[State]:
    queue = queue_of(state)
    adding = tuple(each.item.prompt.text for each in queue.adding)
    view = TurnView(
        state=type(state).__name__,
        turn_id=None if isinstance(state, Resting) else state.run.turn_id,
        queued=tuple(item.prompt.text for item in queue.armed) + adding,
        held=tuple(item.prompt.text for item in queue.kept),
        usage=Usage() if isinstance(state, Resting) else state.run.usage,
        calls=_running(state),
    )
    return Step[State](state).answer(taken.asker, view)


def _running(state: State) -> tuple[CallId, ...]:
    if not isinstance(state, Acting | StoppingTools):
        return ()
    return tuple(call.call_id for call in state.calls if isinstance(call.status, Running))
