"""Crashes of owners on purpose: a step that raises, at a moment that a test chose."""

import re
from collections import Counter
from typing import Any

from tenure.messages.base import Message
from tenure.messages.tokens import ProcessName
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, StepFunction, Taken
from tenure.runtime.testing.injected import InjectedCrash
from tenure.runtime.testing.loop import PROCESS


def role_of_class(owner: type[Owner]) -> str:
    """`index_writer` of `IndexWriterActor`: as it is called in its address."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", owner.__name__.removesuffix("Actor")).lower()


class Crashes:
    """The crashes that are planned in one world."""

    def __init__(self) -> None:
        self._due: Counter[tuple[ProcessName, str]] = Counter()
        self._steps: dict[type[Owner], StepFunction[Any]] = {}

    def plan(self, process: ProcessName, owner: str, nth: int = 1) -> None:
        """Crash the `nth` step from now of an owner of this process.

        Args:
            owner: the role, `turn` for the TurnActor of any seat.
        """
        if not self._steps:
            self._tap()
        self._due[process, owner] = nth

    def undo(self) -> None:
        """Give every owner its own step back."""
        for owner, step in self._steps.items():
            owner.step = staticmethod(step)  # type: ignore[assignment,method-assign]
        self._steps.clear()

    def _tap(self) -> None:
        for owner in Owner.__subclasses__():
            step = owner.step
            self._steps[owner] = step
            owner.step = staticmethod(self._tapped(owner, step))  # type: ignore[assignment,method-assign]

    def _tapped(self, owner: type[Owner], step: StepFunction[Any]) -> StepFunction[Any]:
        role = role_of_class(owner)

        def tapped(state: Any, message: Message, taken: Taken) -> Step[Any]:
            process = PROCESS.get()
            if process is not None and self._due:
                place = (process.name, role)
                left = self._due.get(place, 0)
                if left == 1:
                    del self._due[place]
                    raise InjectedCrash(f"{type(message).__name__} was to crash the {role} owner")
                if left > 1:
                    self._due[place] = left - 1
            return step(state, message, taken)

        return tapped
