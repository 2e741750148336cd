"""A turn owner that loses a prompt, and the test that finds it.

The bug: a stop that comes before the turn's prompt is on disk answers "nothing was
written yet, so nothing was lost" and forgets the prompts that wait behind it.  The
user was told that they wait.

The test sends a prompt, a second one to wait behind it, and a stop, in every order
and under many seeds, and asks of every accepted prompt what became of it.

    python examples/broken/dropped_queue.py
"""

from msgspec.structs import replace

from tenure.actors.turn import TurnActor, turn_step
from tenure.actors.turn_state import Preparing, SavingPrompt, State
from tenure.messages.base import Message
from tenure.messages.session import StartTurn
from tenure.messages.tokens import turn_id
from tenure.messages.turn import StopTurn, TurnAccepted, TurnQueued, TurnStarted, TurnStopping
from tenure.runtime.step import Step, StepFunction, Taken
from tenure.testing import OrderFailed, Scripted, World, each_order, events_of, stepping


def broken_turn_step(state: State, message: Message, taken: Taken) -> Step[State]:
    step = turn_step(state, message, taken)
    if isinstance(message, StopTurn) and isinstance(state, Preparing | SavingPrompt):
        # The bug: the texts that waited are not given back.
        replies = [
            (asker, replace(reply, dropped=()) if isinstance(reply, TurnStopping) else reply)
            for asker, reply in step.replies
        ]
        step = replace(step, replies=tuple(replies))
    return step


# --- the test -----------------------------------------------------------------------------------

FIRST = StartTurn(text="first")
SECOND = StartTurn(text="second", when_busy="queue")
STOP = "a stop of the first turn"
SEEDS = range(40)


def every_accepted_prompt_has_a_fate(world: World, order: tuple[StartTurn | str, ...]) -> None:
    log = events_of(world)
    host = world.host(model=Scripted(["An answer."] * 2))
    seat = world.run(host.seat())
    stop = StopTurn(turn_id=turn_id(seat.token.session_id, 1))

    # All three are under way at once; the seed decides how far each one gets.
    sent = [(item, world.tell(host, stop if isinstance(item, str) else item)) for item in order]
    replies = [(item, world.run(task)) for item, task in sent]
    world.settle()

    started = {event.turn_id for event in log.of(TurnStarted)}
    returned = {
        text for _, reply in replies if isinstance(reply, TurnStopping) for text in reply.dropped
    }
    for item, reply in replies:
        if isinstance(item, StartTurn) and isinstance(reply, TurnAccepted | TurnQueued):
            fate = reply.turn_id in started or item.text in returned
            assert fate, f"{item.text!r} was accepted, and then neither started nor given back"


def look(step: StepFunction[State]) -> str:
    """What the test finds in an owner with this step; empty where it finds nothing."""
    with stepping(TurnActor, step):
        try:
            each_order(every_accepted_prompt_has_a_fate, FIRST, SECOND, STOP, seeds=SEEDS)
        except OrderFailed as failed:
            return str(failed)
    return ""


if __name__ == "__main__":
    print("the broken owner:", look(broken_turn_step), sep="\n")
    print("the owner as it is:", look(turn_step) or "nothing found", sep="\n")
