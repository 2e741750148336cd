"""The file of an open transcript: how it grows, and what is done when the disk says no.

These functions block: they run in a worker.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from tenure.runtime.doors.claims import FileMark, make_folders_durably, sync_name
from tenure.runtime.doors.files import File, Files

Sync = Literal["fsync", "flush"]
"""fsync: what is appended is durable when it is answered.  flush: the system has it."""

PERMISSIONS = 0o600
"""A conversation is private to its user."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """All bytes are in the file, and synced as configured."""


class NotWritten(msgspec.Struct, frozen=True, kw_only=True):
    """The file is as it was."""

    reason: str


class Uncertain(msgspec.Struct, frozen=True, kw_only=True):
    """A sync or a cut failed: what the disk holds is not known."""

    reason: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Another program changed the file; nothing was written."""


WriteResult = Written | NotWritten | Uncertain | Changed


class TranscriptFile:
    """An open file, and how it was left.  Not for use by two workers at once."""

    __slots__ = ("_file", "_files", "mark", "path")

    def __init__(self, files: Files, file: File, path: str, mark: FileMark) -> None:
        self._files = files
        self._file = file
        self.path = path
        self.mark = mark

    def is_as_left(self) -> bool:
        """Whether the path still leads to this file, with the length that it was left with."""
        try:
            return FileMark.of(self._files.stat(self.path)) == self.mark
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self) -> bytes:
        """The whole file as it was when it was opened.

        Raises:
            OSError: it cannot be read, or another program is cutting it.
        """
        data = self._file.read_at(0, self.mark.size)
        if len(data) != self.mark.size:
            raise OSError(0, "it became shorter while it was read")
        return data

    def append(self, lines: Sequence[bytes], sync: Sync) -> WriteResult:
        """Write whole lines in one call and sync them, or leave the file as it was."""
        try:
            if not self.is_as_left():  # guard: SESSION-3
                return Changed()
        except OSError as error:
            return NotWritten(reason=reason_of(error))
        data = lines[0] if len(lines) == 1 else b"".join(lines)
        try:
            written = self._file.append(data)
            problem = "" if written == len(data) else "the disk took only a part of it"
        except OSError as error:
            problem = reason_of(error)
        if problem:  # guard: SESSION-3
            return self._cut_back(problem)
        if sync == "fsync":
            try:
                self._file.datasync()
            except OSError as error:
                # A failed sync is never tried again: the next one may succeed
                # without having written what the first one lost.
                return Uncertain(reason=reason_of(error))
        self.mark = grown(self.mark, len(data))
        return Written()

    def _cut_back(self, problem: str) -> WriteResult:
        try:
            self._file.truncate(self.mark.size)
            self._file.datasync()
        except OSError as error:
            return Uncertain(reason=f"{problem}, and cutting it off failed: {reason_of(error)}")
        return NotWritten(reason=problem)

    def cut_tail(self, tail: bytes) -> None:
        """Keep a torn tail, byte for byte, in `<path>.torn`, durably; then cut it off.

        Raises:
            OSError: the tail is still in the file, or in both.
        """
        save_torn(self._files, f"{self.path}.torn", tail)
        self._file.truncate(self.mark.size - len(tail))
        self._file.sync()
        self.mark = grown(self.mark, -len(tail))

    def end_last_line(self) -> None:
        """Add the newline that a whole last record lacks.

        Raises:
            OSError: it may or may not be there.
        """
        write_all(self._file, b"\n")
        self._file.sync()
        self.mark = grown(self.mark, 1)

    def sync(self) -> None:
        """Make durable what another holder may have left in the system's memory."""
        self._file.sync()

    def close(self) -> None:
        close_quietly(self._file)


def open_file(files: Files, path: str) -> TranscriptFile:
    """Open an existing transcript for reading and writing."""
    file = files.open(path, "write")
    try:
        return TranscriptFile(files, file, path, FileMark.of(file.stat()))
    except BaseException:
        close_quietly(file)
        raise


def create_file(files: Files, path: str, data: bytes) -> TranscriptFile | NotWritten | Uncertain:
    """Make a transcript with its first lines, its folders and names durable, or leave none."""
    folder = folder_of(path)
    try:
        make_folders_durably(files, folder)
        # Who made the folder may have died before its name was durable.
        sync_name(files, folder)
        file = files.open(path, "create", permissions=PERMISSIONS)
    except OSError as error:
        return NotWritten(reason=reason_of(error))
    try:
        written = file.append(data)
        refusal = "" if written == len(data) else "the disk took only a part of it"
    except OSError as error:
        refusal = reason_of(error)
    try:
        if refusal:  # guard: SESSION-3
            close_quietly(file)
            files.remove(path)
            files.sync_folder(folder)
            return NotWritten(reason=refusal)
        file.sync()
        files.sync_folder(folder)
        return TranscriptFile(files, file, path, FileMark.of(file.stat()))
    except OSError as error:
        close_quietly(file)
        return Uncertain(reason=reason_of(error))


def replace_with_backup(files: Files, path: str, old: bytes, new: bytes, version: int) -> None:
    """Replace a transcript whole, with its old bytes kept beside it as `<path>.v<version>.bak`.

    At every moment the path leads to the old file or to the new one, and both
    are durable when this returns.  An existing backup is never replaced.
    """
    permissions = files.stat(path).mode
    replace_whole(files, free_name(files, f"{path}.v{version}.bak"), old, permissions)
    replace_whole(files, path, new, permissions)


def replace_whole(files: Files, path: str, data: bytes, permissions: int) -> None:
    """Under the session's claim: temporary file, sync, rename, sync of the folder.

    Raises:
        OSError: the path leads to the old file, or to the new one.
    """
    temporary = f"{path}.tmp"
    try:
        file = files.open(temporary, "create", permissions=permissions)
    except FileExistsError:
        files.remove(temporary)  # of a holder that died; the claim makes it ours
        file = files.open(temporary, "create", permissions=permissions)
    try:
        write_all(file, data)
        file.sync()
    finally:
        close_quietly(file)
    files.rename(temporary, path)
    files.sync_folder(folder_of(path))


def save_torn(files: Files, path: str, tail: bytes) -> None:
    """Append a torn tail to the file that keeps such tails, durably."""
    try:
        file = files.open(path, "create", permissions=PERMISSIONS)
    except FileExistsError:
        file = files.open(path, "write")
    try:
        write_all(file, tail)
        file.sync()
    finally:
        close_quietly(file)
    files.sync_folder(folder_of(path))


def read_all(files: Files, path: str) -> bytes:
    """The bytes of a file as far as it reached when it was opened."""
    file = files.open(path, "read")
    try:
        return file.read_at(0, file.stat().size)
    finally:
        close_quietly(file)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def close_quietly(file: File) -> None:
    """Close; an error comes too late to matter, for what counts was synced before."""
    with suppress(OSError):
        file.close()


def write_all(file: File, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += file.append(data[written:])


def grown(mark: FileMark, size: int) -> FileMark:
    return FileMark(device=mark.device, inode=mark.inode, size=mark.size + size)


def reason_of(error: OSError) -> str:
    """What went wrong, in the system's words."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def free_name(files: Files, path: str) -> str:
    """The path, or the first of `<path>-2`, `<path>-3`, ... where nothing is."""
    name, number = path, 1
    while True:
        try:
            files.lstat(name)
        except FileNotFoundError:
            return name
        number += 1
        name = f"{path}-{number}"
