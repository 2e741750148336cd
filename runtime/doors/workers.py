"""Where blocking work runs: one leaf door."""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers(Protocol):
    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run blocking `work` away from the event loop and give back its result or exception.

        A cancelled caller does not cancel `work`: once begun it runs to its
        end, and only its result is dropped.
        """
        ...
