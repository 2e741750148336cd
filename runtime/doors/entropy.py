"""Randomness: one leaf door."""

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


class SystemEntropy:
    """The kernel's randomness: nothing is repeated after a fork."""

    def fresh(self) -> str:
        return secrets.token_hex(8)

    def uuid(self) -> str:
        return str(uuid.uuid4())
