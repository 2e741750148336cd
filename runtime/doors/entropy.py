"""Randomness: one leaf door."""

from typing import Protocol


class Entropy(Protocol):
    def fresh(self) -> str:
        """16 lower-case hexadecimal digits that nobody has seen before."""
        ...

    def uuid(self) -> str:
        """A random uuid in its usual form."""
        ...
