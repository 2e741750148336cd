"""Randomness: one leaf door."""

import os
import secrets
import uuid
from typing import Protocol


class Entropy(Protocol):
    def fresh(self) -> str:
        """16 lower-case hexadecimal digits that nobody has seen before."""
        ...

    def uuid(self) -> str:
        """A random uuid in its usual form."""
        ...


FRESH_DIGITS = 16
FRESH_AHEAD = 256
"""How many are drawn at once: every step takes one, and a system call costs more than it."""


class SystemEntropy:
    """The kernel's randomness: nothing is repeated after a fork."""

    def __init__(self) -> None:
        self._ahead: list[str] = []
        self._process = os.getpid()

    def fresh(self) -> str:
        if self._process != os.getpid():
            # A forked child must not give out what its parent gives out, too.
            self._process = os.getpid()
            self._ahead = []
        try:
            return self._ahead.pop()
        except IndexError:
            self._ahead += _drawn()
            return self._ahead.pop()

    def uuid(self) -> str:
        return str(uuid.uuid4())


def _drawn() -> list[str]:
    digits = secrets.token_hex(FRESH_AHEAD * FRESH_DIGITS // 2)
    return [digits[at : at + FRESH_DIGITS] for at in range(0, len(digits), FRESH_DIGITS)]
