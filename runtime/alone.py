"""One owner without an event loop: for a command that asks one thing and ends.

The step and the handlers are those of a host.  The handlers stand on blocking leaves
(`doors/blocking.py`), so each is over when it is first resumed, and its outcome is the
owner's next message.  What other processes do meanwhile is the doors' matter: claims.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tenure.messages.base import Command, Effect, Event, Message, Outcome, Reply
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.step import AskId, StepFunction, Taken

Handler = Callable[[Any, Context], Awaitable[Outcome]]

ASKER = AskId(1)


class Unanswered(RuntimeError):
    """The owner has nothing more to do, and answered nobody: a fault of the owner."""


class Alone:
    """An owner of this process alone.

    Args:
        address: of the owner: `handoff`.
        first: its first state.
        handlers: who carries out its effects.
        tell: is called with every event when the owner says it.
    """

    def __init__(
        self,
        leaves: Leaves,
        address: str,
        step: StepFunction[Any],
        first: Any,
        handlers: dict[type[Effect], Handler],
        tell: Callable[[Event], None],
    ) -> None:
        self._leaves = leaves
        self._step = step
        self._state = first
        self._handlers = handlers
        self._tell = tell
        self._mail: deque[tuple[AskId | None, Message]] = deque()
        self._context = Context(owner=address, seat="", progress=self._progress)

    def ask(self, command: Command) -> Reply:
        """Ask, and carry out all that follows until nothing is left to do.

        Raises:
            Unanswered: nobody answered.
        """
        answer: Reply | None = None
        self._mail.append((ASKER, command))
        while self._mail:
            asker, message = self._mail.popleft()
            entropy, clock = self._leaves.entropy, self._leaves.clock
            taken = Taken(asker, clock.now_ms(), entropy.fresh())
            step = self._step(self._state, message, taken)
            self._state = step.state
            answer = next((reply for who, reply in step.replies if who == ASKER), answer)
            for event in step.events:
                self._tell(event)
            for effect in step.effects:
                self._mail.append((None, self._outcome(effect)))
        if answer is None:
            raise Unanswered(f"{type(command).__name__} was not answered")
        return answer

    def _progress(self, outcome: Outcome) -> None:
        self._mail.append((None, outcome))

    def _outcome(self, effect: Effect) -> Outcome:
        handler = self._handlers.get(type(effect))
        if handler is None:
            return effect.failed(f"nothing here carries out {type(effect).__name__}")
        try:
            return _finished(handler(effect, self._context))
        except Exception as error:
            return effect.failed(f"{type(error).__name__}: {error}")


def _finished(work: Awaitable[Outcome]) -> Outcome:
    """What work gives that waits for nobody."""
    going = work.__await__()
    try:
        next(going)
    except StopIteration as done:
        outcome = done.value
        assert isinstance(outcome, Outcome)
        return outcome
    raise RuntimeError("a handler waited for an event loop, and there is none")
