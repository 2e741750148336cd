"""Randomness that a seed repeats."""

import random
import uuid


class SeededEntropy:
    """The same seed gives the same values in the same order."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def fresh(self) -> str:
        return f"{self._random.getrandbits(64):016x}"

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
