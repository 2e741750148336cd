"""An owner with another step: to see what a test finds when the owner is broken."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenure.runtime.owner import Owner
from tenure.runtime.step import StepFunction


@contextmanager
def stepping(owner: type[Owner], step: StepFunction[Any]) -> Iterator[None]:
    """Inside the block every owner of this class decides with `step`.

    with stepping(TurnActor, my_turn_step), simulate(seed=1) as world:
        ...
    """
    own = owner.__dict__["step"]
    owner.step = staticmethod(step)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        owner.step = own  # type: ignore[method-assign]
