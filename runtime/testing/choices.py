"""Who decides what comes next: a seed, or the choices of an earlier run."""

import random
from collections.abc import Sequence
from typing import Protocol


class Chooser(Protocol):
    """Every choice of a run goes through one of these, and is kept in `made`."""

    made: list[int]

    def pick(self, count: int) -> int:
        """A number from 0 to `count - 1`; 0 is the usual order."""
        ...

    def one_in(self, count: int) -> bool:
        """True now and then; False is the usual."""
        ...


class SeededChooser:
    """Chooses by a seed, the same on every machine."""

    def __init__(self, seed: int | str) -> None:
        self.made: list[int] = []
        self._random = random.Random(f"order/{seed}")
        self._draw = self._random.random

    def pick(self, count: int) -> int:
        choice = int(self._draw() * count)
        self.made.append(choice)
        return choice

    def one_in(self, count: int) -> bool:
        if self._draw() * count < 1.0:
            self.made.append(1)
            return True
        self.made.append(0)
        return False


class ReplayedChooser:
    """Chooses as before; where the list ends, or does not fit any more, the usual order."""

    def __init__(self, made: Sequence[int]) -> None:
        self.made: list[int] = []
        self._given = list(made)

    def pick(self, count: int) -> int:
        return self._take(count)

    def one_in(self, count: int) -> bool:
        return self._take(2) == 1

    def _take(self, count: int) -> int:
        place = len(self.made)
        choice = self._given[place] if place < len(self._given) else 0
        if choice >= count:
            choice = 0
        self.made.append(choice)
        return choice
