"""Kernel locks: one leaf door.  A lock dies with its holder and only with it.

Lock files are never unlinked, are close-on-exec, and are closed in a forked
child, so that a child that outlives its parent does not keep the parent's lock.
Neither age, nor a pid, nor a clock ever frees a lock: the kernel does, when the
last descriptor is closed, also after kill -9.
"""

import errno
import os
import threading
from collections.abc import Callable
from typing import Protocol


class HeldLock(Protocol):
    def in_place(self) -> bool:
        """Whether it is held, and its path still leads to the file that it locks.

        False after `release`, in a forked child, and where somebody removed or
        replaced the lock file: another could then hold the lock of this path.
        """
        ...

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


class KernelLocks:
    """Locks by `flock` (portalocker), one descriptor each.

    A descriptor of its own for every take makes two seats of one process
    contend as two processes do.

    Args:
        exclude: takes the exclusive lock of a descriptor without waiting;
            False where another holds it, `OSError` where it cannot be locked.
    """

    def __init__(self, exclude: Callable[[int], bool] | None = None) -> None:
        self._exclude = exclude if exclude is not None else exclude_by_flock

    def try_lock(self, path: str) -> HeldLock | None:
        while True:
            # The open descriptor is on the list of held ones before another
            # thread can fork, so no child inherits one that it does not close.
            with _forking:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                lock = _KernelLock(path, descriptor)
                _held.add(lock)
            try:
                if not self._exclude(descriptor):
                    lock.release()
                    return None
                replaced = not lock.in_place()
            except BaseException:
                lock.release()
                raise
            # The file was removed between our open and our lock: what we hold
            # excludes nobody who comes by the path.
            if replaced:  # guard: CLAIM-2
                lock.release()
                continue
            return lock


class _KernelLock:
    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def in_place(self) -> bool:
        if self._descriptor < 0:
            return False
        try:
            there = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        # Closing is the release.  An explicit unlock would, in a forked child,
        # free the lock of the parent, with whom it shares the open file.
        with _forking:
            descriptor, self._descriptor = self._descriptor, -1
            _held.discard(self)
            if descriptor >= 0:
                os.close(descriptor)


def exclude_by_flock(descriptor: int) -> bool:
    """Take the exclusive `flock` of an open file; False where another open file has it."""
    import portalocker  # costs 80 ms: only processes that write pay for it

    try:
        portalocker.lock(descriptor, portalocker.LOCK_EX | portalocker.LOCK_NB)
    except portalocker.AlreadyLocked:
        return False
    except portalocker.LockException as refused:
        cause = refused.__cause__
        if isinstance(cause, OSError):
            raise cause from None
        raise OSError(errno.ENOLCK, f"cannot lock: {refused}") from refused
    return True


def exclude_without_portalocker(descriptor: int) -> bool:
    """The same lock as `exclude_by_flock`, where the system has the call itself.

    For commands that are over sooner than portalocker is loaded.
    """
    try:
        import fcntl
    except ImportError:
        return exclude_by_flock(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_held: set[_KernelLock] = set()
"""Every descriptor of a lock file that this process has open."""

_forking = threading.RLock()
"""Held over each change of `_held`, and over a fork."""


def _close_in_child() -> None:
    """The locks are the parent's: the child closes its descriptors and holds nothing."""
    for lock in tuple(_held):
        lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forking.acquire,
        after_in_parent=_forking.release,
        after_in_child=_close_in_child,
    )
