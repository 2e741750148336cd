"""How a tool changes a file: checked against the preview, durable, all or nothing."""

from contextlib import suppress

import msgspec

from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.staged import NotSynced, folder_of, stage_file
from tenure.runtime.doors.tools.text import shown
from tenure.runtime.doors.tools.tool import ToolRefused
from tenure.runtime.doors.tools.workspace import Place, Workspace

NEW_FILE_PERMISSIONS = 0o666
"""Before the umask."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """New bytes for a place."""

    place: Place
    found: FileStat | None
    """The file when it was read; None where there was none."""
    data: bytes
    mode: int = 0
    """Permission bits; 0 takes those of the file that is there."""


def check_preview(expects: str, found: str, place: Place) -> None:
    """Refuse a file that is not the one that the user saw.

    Args:
        expects: the digest in the preview; empty where nobody saw one.
        found: the digest of the file now.
    """
    if expects and found != expects:  # guard: APPROVE-4
        raise ToolRefused(
            f"{shown(place.path)} changed since the preview, nothing was written. "
            "Read it again and make a new call"
        )


def put_file(workspace: Workspace, unique: str, change: FileChange) -> str:
    """Put the new bytes in their place; a warning for the result, mostly empty.

    Missing folders are made, and taken away again where the file cannot be written.

    Raises:
        ToolRefused: the place or the file changed meanwhile, or it is read-only.
        OSError: the disk refused.  In both cases the file is as it was.
    """
    files, place = workspace.files, change.place
    _refuse_read_only(files, change)
    made = make_folders(workspace, place)
    permissions = change.mode or (change.found.mode if change.found else NEW_FILE_PERMISSIONS)
    try:
        staged = stage_file(
            files, folder_of(place.real), unique, change.data, permissions=permissions
        )
        try:
            workspace.confirm(place)
            _refuse_changed(workspace, change)
        except BaseException:
            staged.discard()
            raise
        staged.put(place.real)
    except NotSynced as refused:
        return (
            f". The disk did not confirm it ({refused.strerror}): "
            "a power loss could bring the old file back"
        )
    except BaseException:
        remove_folders(files, made)
        raise
    return ""


def make_folders(workspace: Workspace, place: Place) -> list[str]:
    """Make the folders above a place that are missing, durably; those made, topmost first.

    Raises:
        ToolRefused: something on the way is no folder, or leads elsewhere by now.
        OSError: the disk refused; nothing is left of it.
    """
    files = workspace.files
    missing: list[str] = []
    at = folder_of(place.real)
    while (found := _lstat(files, at)) is None:
        missing.append(at)
        at = folder_of(at)
    if found.kind != "folder":
        raise ToolRefused(f"{shown(place.path)}: a part of this path is a file, not a folder")
    if missing:
        workspace.confirm(Place(real=missing[-1], path=place.path))
    made: list[str] = []
    try:
        for folder in reversed(missing):
            with suppress(FileExistsError):
                files.make_folder(folder)
                made.append(folder)
            files.sync_folder(folder_of(folder))
    except BaseException:
        remove_folders(files, made)
        raise
    return made


def remove_folders(files: Files, made: list[str]) -> None:
    """Take away folders that were made for nothing, as far as they are empty."""
    for folder in reversed(made):
        with suppress(OSError):
            files.remove_folder(folder)


def _refuse_read_only(files: Files, change: FileChange) -> None:
    """A rename would replace a file that its owner made read-only."""
    if change.found is None:
        return
    try:
        files.open(change.place.real, "write").close()
    except PermissionError:
        writable = False
    else:
        writable = bool(change.found.mode & 0o222)
    if not writable:
        raise ToolRefused(f"{shown(change.place.path)} is read-only; nothing was changed")


def _refuse_changed(workspace: Workspace, change: FileChange) -> None:
    """The last look before the move: is there what was there when it was read?"""
    if workspace.stat(change.place) != change.found:
        raise ToolRefused(
            f"{shown(change.place.path)} changed while the tool ran, nothing was written. "
            "Read it again and make a new call"
        )


def _lstat(files: Files, path: str) -> FileStat | None:
    try:
        return files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
