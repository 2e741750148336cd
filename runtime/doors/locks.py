"""Kernel locks: one leaf door.  A lock dies with its holder and only with it.

Lock files are never unlinked, are close-on-exec, and are closed in a forked
child, so that a child that outlives its parent does not keep the parent's lock.
"""

from typing import Protocol


class HeldLock(Protocol):
    def release(self) -> None:
        """Let go; harmless when released."""
        ...


class Locks(Protocol):
    def try_lock(self, path: str) -> HeldLock | None:
        """Take the exclusive lock of this file, made where it is missing (its folder exists).

        None where another holds it: another process, or this one through
        another call.  Raises `OSError` where the file system cannot lock:
        writing then fails closed.
        """
        ...
