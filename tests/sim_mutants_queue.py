"""Ways to break the queue on purpose; see `sim_mutants`."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from msgspec.structs import replace
from sim_mutants import Mutant, mutated

from tenure.actors import turn_queue
from tenure.actors.turn import TurnActor
from tenure.messages.queue import ArmQueue
from tenure.messages.turn import AttachSession

WORKLOAD = "queue"


@contextmanager
def a_redirect_takes_its_place_before_those_that_came_earlier() -> Iterator[None]:
    def place_for(deliveries, new):
        return 0 if new == "redirect" else len(deliveries)

    with patch.object(turn_queue, "place_for", place_for):
        yield


@mutated(TurnActor)
def what_waits_when_a_session_is_opened_starts_by_itself(own, state, message, taken):
    step = own(state, message, taken)
    if isinstance(message, AttachSession) and message.queue and type(step.state).__name__ == "Idle":
        arm = ArmQueue(token=message.token, last_turn=message.last_turn + 1_000)
        armed = own(step.state, arm, replace(taken, asker=None))
        return (
            step.to(armed.state)
            .emit(*(each for each in armed.events if type(each).__name__ != "PromptReleased"))
            ._with_mail(*armed.mail)
        )
    return step


MUTANTS: dict[str, tuple[str, Mutant, int]] = {
    "a_redirect_takes_its_place_before_those_that_came_earlier": (
        "TURN-5",
        a_redirect_takes_its_place_before_those_that_came_earlier,
        30,
    ),
    "what_waits_when_a_session_is_opened_starts_by_itself": (
        "TURN-10",
        what_waits_when_a_session_is_opened_starts_by_itself,
        30,
    ),
}
