"""What is said to a running turn: delivered between its model calls, in the order of the queue.

A steer is delivered behind a model step and the tools of that step; a follow-up
when the turn would stop.  Each is durable before the model is called with it.
"""

from msgspec.structs import replace

from tenure.actors.turn_end import after, end_with, finish, finish_unsaved
from tenure.actors.turn_fates import kept_first, without
from tenure.actors.turn_room import next_call
from tenure.actors.turn_start import delivery_key, said
from tenure.actors.turn_state import (
    Delivering,
    End,
    Finished,
    Run,
    State,
    Stopped,
    StoppingDelivery,
)
from tenure.actors.turn_waiting import Armed, ItemDelivered, Queue
from tenure.messages.base import Refusal, Reply
from tenure.messages.queue import Delivery, PromptDelivered, PromptSuspended
from tenure.messages.session import Appended, AppendEntries
from tenure.runtime.step import Step, Taken


def after_step(run: Run, taken: Taken) -> Step[State]:
    """A model step and its tools are over: the next steer, then the next call."""
    due = _due(run.queue, ("next_step",))
    return next_call(run, taken) if due is None else _deliver(run, due, taken)


def before_end(run: Run, end: End, taken: Taken) -> Step[State]:
    """The turn would stop: what is still to be said to it keeps it going."""
    due = _due(run.queue, ("next_step",)) or _due(run.queue, ("turn_end",))
    return finish(run, end, ()) if due is None else _deliver(run, due, taken)


def begun(run: Run, taken: Taken) -> Step[State]:
    """The prompt is durable.  A redirect that came meanwhile takes the turn's place at once."""
    if redirect_is_due(run.queue):
        return end_with(run, Stopped("redirect"), (), ())
    return next_call(run, taken)


def redirect_is_due(queue: Queue) -> bool:
    return any(item.prompt.delivery == "redirect" for item in queue.armed[:1])


def on_delivered(state: Delivering | StoppingDelivery, reply: Reply, taken: Taken) -> Step[State]:
    """What was said is durable, or could not be written."""
    run, prompt = state.run, state.item.prompt
    if not isinstance(reply, Appended):
        why = reply.remedy if isinstance(reply, Refusal) else f"answered {type(reply).__name__}"
        held = PromptSuspended(item_id=prompt.item_id, text=prompt.text, reason=why)
        back = replace(run, queue=kept_first(run, prompt))
        if isinstance(state, StoppingDelivery):
            then = finish_unsaved(back, state.end, state.drainers, why)
        else:
            then = finish_unsaved(back, Finished("session_lost", error=why), (), why)
        return after(Step(then.state).emit(held), then)
    delivered = PromptDelivered(item_id=prompt.item_id, turn_id=run.turn_id, text=prompt.text)
    if isinstance(state, StoppingDelivery):
        then = end_with(run, state.end, (), state.drainers)
    else:
        then = next_call(run, taken)
    return after(Step(then.state).emit(delivered), then)


# --- pure helpers ------------------------------------------------------------------------


def _due(queue: Queue, deliveries: tuple[Delivery, ...]) -> Armed | None:
    return next((item for item in queue.armed if item.prompt.delivery in deliveries), None)


def _deliver(run: Run, item: Armed, taken: Taken) -> Step[State]:
    prompt = item.prompt
    rest = replace(run, queue=without(run.queue, prompt.item_id))
    append = AppendEntries(
        token=run.token,
        entries=(said(prompt.text, prompt.images, taken),),
        turn_id=run.turn_id,
        idempotency_key=delivery_key(prompt),
    )
    saved = ItemDelivered(turn_id=run.turn_id, item_id=prompt.item_id)
    return Step[State](Delivering(rest, item)).ask("session", append, re=saved)
