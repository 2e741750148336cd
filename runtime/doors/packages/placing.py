"""The moves of a transaction, and how each is undone or completed after a crash.

    journal -> backup -> rename -> record -> close

A crash before the second rename leaves the old copy under the name that the journal
gives, a crash after it the new one in place.  Everything here runs under the claim.

These functions block: they run in a worker.
"""

import errno

from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.copies import (
    Copy,
    Missing,
    Sealed,
    Unreadable,
    is_whole,
    look_at,
    owns_its_name,
)
from tenure.runtime.doors.packages.disk import is_there, move_folder
from tenure.runtime.doors.packages.journal import (
    Placing,
    Removed,
    Removing,
    close_journal,
    write_journal,
)
from tenure.runtime.doors.packages.layout import Layout

IN_USE = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY})
"""Errors of a rename that may pass: somebody has the folder open."""


class NotPlaced(OSError):
    """The new copy could not be put in place; the old one is there as before."""


def place(files: Files, layout: Layout, incoming: Sealed, job: str) -> str:
    """Put a whole copy in its target's place.  Gives the backup's folder; empty without one.

    The journal is left open: what comes next is recorded before it is closed.

    Raises:
        NotPlaced: the old copy is there as before, and the journal is closed.
        OSError: the journal says what a sweep has to do.
    """
    name = incoming.seal.name
    target = layout.target(name)
    there = look_at(files, target)
    if isinstance(there, Unreadable):
        set_aside(files, layout, there, name, job)
        there = Missing(target)
    backup = "" if isinstance(there, Missing) else layout.backup(name, job)
    for folder in (layout.home, layout.kept):
        make_folders_durably(files, folder)
    journal = Placing(
        job=job,
        name=name,
        incoming=incoming.folder,
        incoming_job=incoming.seal.job,
        backup=backup,
    )
    write_journal(files, layout, journal)
    try:
        if backup:
            move_folder(files, target, backup)
        move_folder(files, incoming.folder, target)
    except OSError as refused:
        undo(files, layout, journal)
        raise NotPlaced(refused.errno, refused.strerror or str(refused)) from refused
    return backup


def undo(files: Files, layout: Layout, journal: Placing | Removing) -> str:
    """Give the target back what it had, and close the journal.  Says what was done."""
    target = look_at(files, layout.target(journal.name))
    said = ""
    if isinstance(journal, Placing) and _is_placed(target, journal):
        # The second rename was done and only its sync failed: the new one stays.
        close_journal(files, layout)
        return f"{journal.name}: the new version is in place"
    if not owns_its_name(target):  # guard: INSTALL-3 keeps
        said = restore(files, layout, journal, target)
    close_journal(files, layout)
    return said or f"{journal.name}: nothing was moved"


def restore(files: Files, layout: Layout, journal: Placing | Removing, target: Copy) -> str:
    """The backup goes back to a target that is missing or cannot be read."""
    backup = look_at(files, journal.backup) if journal.backup else Missing("")
    if owns_its_name(backup):  # guard: INSTALL-4
        clear(files, layout, target, journal.name, journal.job)
        move_folder(files, journal.backup, layout.target(journal.name))
        return f"{journal.name}: the version before was restored"
    if isinstance(journal, Placing):
        incoming = look_at(files, journal.incoming)
        if is_whole(files, incoming):
            clear(files, layout, target, journal.name, journal.job)
            move_folder(files, journal.incoming, layout.target(journal.name))
            return f"{journal.name}: the new version was put in place"
    return ""


def clear(files: Files, layout: Layout, target: Copy, name: str, job: str) -> None:
    """Make the place of a target free, and delete nothing that holds anything."""
    if isinstance(target, Unreadable):
        set_aside(files, layout, target, name, job)


def set_aside(files: Files, layout: Layout, what: Unreadable, name: str, job: str) -> None:
    """Keep what nobody understands, out of the way."""
    if what.empty == "empty":
        files.remove_folder(what.folder)
        return
    number, place_ = 0, f"{layout.aside}/{name}@{job}"
    while is_there(files, place_):
        number += 1
        place_ = f"{layout.aside}/{name}@{job}-{number}"
    move_folder(files, what.folder, place_)


def remove(files: Files, layout: Layout, name: str, job: str, kept: tuple[str, ...]) -> Removed:
    """Take a package out of its place.  The journal is left open, and says what to delete.

    Raises:
        NotPlaced: it is there as before.
    """
    backup = layout.backup(name, job)
    make_folders_durably(files, layout.kept)
    journal = Removing(job=job, name=name, backup=backup)
    write_journal(files, layout, journal)
    try:
        move_folder(files, layout.target(name), backup)
        removed = Removed(job=job, name=name, copies=(backup, *kept))
        write_journal(files, layout, removed)
    except OSError as refused:
        undo(files, layout, journal)
        raise NotPlaced(refused.errno, refused.strerror or str(refused)) from refused
    return removed


def _is_placed(target: Copy, journal: Placing) -> bool:
    return isinstance(target, Sealed) and target.seal.job == journal.incoming_job
