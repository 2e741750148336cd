"""Conformance of the locks port: `tenure.runtime.doors.locks.Locks`."""

import errno
from collections.abc import Callable
from dataclasses import dataclass

from tenure.runtime.doors.files import Files
from tenure.runtime.doors.locks import Locks
from tenure.runtime.testing.conformance.checks import Kit, holds, refuses, same, there


@dataclass(frozen=True, slots=True, kw_only=True)
class LocksUnderTest:
    """Locks, the file system that they lock files of, and an empty folder on it."""

    locks: Locks
    files: Files
    root: str
    link: Callable[[str, str], None]
    """Makes a symbolic link: its path, and where it leads to."""

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"


LOCKS: Kit[LocksUnderTest] = Kit("locks")
_check = LOCKS.check


@_check
def a_lock_excludes_a_second_take_in_the_same_process_until_released(at: LocksUnderTest) -> None:
    """Two seats of one process exclude each other as two processes do."""
    locks, path = at.locks, at.path("a.lock")
    first = there("the first take", locks.try_lock(path))
    holds(first.in_place(), "a lock that was just taken is not in place")
    same("a second take while it is held", locks.try_lock(path), None)
    other = there("a take of another file", locks.try_lock(at.path("b.lock")))
    first.release()
    first.release()
    holds(not first.in_place(), "a released lock is still in place")
    again = there("a take after the release", locks.try_lock(path))
    first.release()
    holds(again.in_place(), "releasing twice took the next holder's lock away")
    same("a take while the next one holds it", locks.try_lock(path), None)
    again.release()
    other.release()
    same("bytes in the lock file", at.files.stat(path).size, 0)


@_check
def a_lock_whose_file_was_removed_or_replaced_is_not_in_place(at: LocksUnderTest) -> None:
    """Another could hold the lock of this path: the holder must be able to see that."""
    path = at.path("a.lock")
    first = there("the first take", at.locks.try_lock(path))
    at.files.remove(path)
    holds(not first.in_place(), "a lock whose file was removed is still in place")
    second = there("a take of the removed path", at.locks.try_lock(path))
    holds(not first.in_place(), "a lock whose file was replaced is still in place")
    first.release()
    holds(second.in_place(), "releasing the old lock took the new one away")
    same("a third take while the second holds it", at.locks.try_lock(path), None)
    second.release()


@_check
def releasing_a_lock_leaves_its_file_where_it_is(at: LocksUnderTest) -> None:
    """An unlinked lock file would let two hold the lock of one path."""
    path = at.path("a.lock")
    there("the take", at.locks.try_lock(path)).release()
    same("the names after the release", at.files.list(at.root), (("a.lock", "file"),))


@_check
def a_lock_is_of_the_file_and_not_of_the_path(at: LocksUnderTest) -> None:
    """Through a link it is the same lock."""
    at.link(at.path("alias.lock"), "a.lock")
    held = there("a take through a link", at.locks.try_lock(at.path("alias.lock")))
    same("a take by the other path", at.locks.try_lock(at.path("a.lock")), None)
    held.release()


@_check
def a_lock_needs_its_folder(at: LocksUnderTest) -> None:
    """Where it cannot be locked, writing must fail: nobody may be told that he holds it."""
    path = at.path("none/a.lock")
    refuses("a take in a missing folder", lambda: at.locks.try_lock(path), errno.ENOENT)
