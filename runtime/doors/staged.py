"""One whole file written beside its place, to be put there in one move or not at all.

    staged = stage_file(...)      # a temporary file in the same folder, its bytes durable
    ...                           # last looks: is the target still the one that was read?
    staged.put(path)              # rename and folder sync: durable when this returns

These functions block: they run in a worker.
"""

from contextlib import suppress

from tenure.runtime.doors.files import Files

TEMPORARY_PREFIX = ".tenure-stage-"
"""How the name of every temporary file begins, also of one that a dead process left."""


class NotSynced(OSError):
    """The file is in its place, but the disk did not confirm that its name is durable."""


class StagedFile:
    """Bytes that are durable under a temporary name."""

    def __init__(self, files: Files, temporary: str) -> None:
        self._files = files
        self._temporary = temporary

    def put(self, path: str) -> None:
        """Move it to `path`, in the same folder, in place of a file that is there.

        Raises:
            NotSynced: it was moved, and a power loss could still undo it.
            OSError: it was not moved, and the temporary file is gone.
        """
        try:
            self._files.rename(self._temporary, path)
        except BaseException:
            self.discard()
            raise
        try:
            self._files.sync_folder(folder_of(path))
        except OSError as refused:
            raise NotSynced(*refused.args) from refused

    def discard(self) -> None:
        """Remove the temporary file, as far as it can be removed."""
        with suppress(OSError):
            self._files.remove(self._temporary)


def stage_file(
    files: Files, folder: str, unique: str, data: bytes, *, permissions: int
) -> StagedFile:
    """Write `data` into a new temporary file of `folder` and make it durable.

    Args:
        unique: makes the temporary name one that nobody else has.
        permissions: of the file, as far as the process's umask lets them pass.

    Raises:
        OSError: nothing is left of it.
    """
    temporary = f"{folder.rstrip('/')}/{TEMPORARY_PREFIX}{unique}"
    file = files.open(temporary, "create", permissions=permissions)
    staged = StagedFile(files, temporary)
    try:
        try:
            written = 0
            while written < len(data):
                written += file.append(data[written:])
            file.sync()
        finally:
            file.close()
    except BaseException:
        staged.discard()
        raise
    return staged


def folder_of(path: str) -> str:
    """The folder that an absolute path lies in."""
    return path.rpartition("/")[0] or "/"
