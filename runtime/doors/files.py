"""The file system: one leaf door, call by call, so that every call can fail or be cut.

All methods block and are called from a worker (`doors/workers.py`), never on the
event loop.  They raise `OSError` as the operating system does.  Paths are
absolute strings.
"""

import errno
import os
import stat
import sys
from typing import Literal, Protocol

import msgspec

OpenMode = Literal["read", "write", "create"]
"""read: must exist.  write: must exist, read and write.  create: must not exist, read and write."""

Kind = Literal["file", "folder", "link", "other"]


class FileStat(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one file from another, and an unchanged one from a changed one."""

    kind: Kind
    size: int
    """Bytes."""
    mtime_ns: int
    device: int
    inode: int
    mode: int
    """Permission bits."""
    links: int = 1


class File(Protocol):
    """An open file.  Offsets are explicit; there is no shared position."""

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`; fewer only at the end of the file."""
        ...

    def append(self, data: bytes) -> int:
        """Write at the end, once; the count written, which may be short."""
        ...

    def truncate(self, size: int) -> None: ...

    def datasync(self) -> None:
        """Make data and length durable (fdatasync; the full fsync where there is none)."""
        ...

    def sync(self) -> None:
        """Make data and metadata durable (fsync)."""
        ...

    def stat(self) -> FileStat: ...

    def close(self) -> None:
        """Close; harmless when closed."""
        ...


class Files(Protocol):
    """The file system."""

    def open(self, path: str, mode: OpenMode, *, permissions: int = 0o666) -> File:
        """Open a file; links are followed, but never to create.  IsADirectoryError on a folder."""
        ...

    def stat(self, path: str) -> FileStat:
        """Of what the path leads to, links followed."""
        ...

    def lstat(self, path: str) -> FileStat:
        """Of the path itself."""
        ...

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        """The names in a folder with their kinds (links not followed), sorted by name."""
        ...

    def make_folder(self, path: str) -> None:
        """One folder; its parent must exist.  FileExistsError if there is anything."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces a file at `target`.  Not durable before `sync_folder`."""
        ...

    def remove(self, path: str) -> None:
        """A file or a link."""
        ...

    def remove_folder(self, path: str) -> None:
        """An empty folder."""
        ...

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable (fsync of the folder)."""
        ...

    def real_path(self, path: str) -> str:
        """The path with every link followed; what does not exist stays as it is."""
        ...


class RealFiles:
    """The file system of this machine.

    Calls that a signal interrupts are made again (by the interpreter).
    """

    def open(self, path: str, mode: OpenMode, *, permissions: int = 0o666) -> File:
        descriptor = os.open(path, _FLAGS[mode], permissions)
        if mode == "read" and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return _RealFile(descriptor)

    def stat(self, path: str) -> FileStat:
        return _file_stat(os.stat(path))

    def lstat(self, path: str) -> FileStat:
        return _file_stat(os.lstat(path))

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        with os.scandir(path) as names:
            return tuple(sorted((name.name, _entry_kind(name)) for name in names))

    def make_folder(self, path: str) -> None:
        os.mkdir(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        os.rmdir(path)

    def sync_folder(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _sync(descriptor)
        except OSError as refused:
            # Some file systems have no such call for folders, and nothing to sync.
            if refused.errno != errno.EINVAL:
                raise
        finally:
            os.close(descriptor)

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)


class _RealFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_at(self, offset: int, size: int) -> bytes:
        first = os.pread(self._descriptor, size, offset)
        if len(first) == size or not first:
            return first
        parts = [first]  # one call gives 2 GiB at most, and may give less
        read = len(first)
        while read < size:
            part = os.pread(self._descriptor, size - read, offset + read)
            if not part:
                break
            parts.append(part)
            read += len(part)
        return b"".join(parts)

    def append(self, data: bytes) -> int:
        return os.write(self._descriptor, data)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def datasync(self) -> None:
        _datasync(self._opened())

    def sync(self) -> None:
        _sync(self._opened())

    def stat(self) -> FileStat:
        return _file_stat(os.fstat(self._descriptor))

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _opened(self) -> int:
        # Python refuses to sync a negative descriptor with another exception.
        if self._descriptor < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._descriptor


# A pipe must not keep the opener waiting, and a terminal must not become ours.
_COMMON = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_FLAGS: dict[OpenMode, int] = {
    "read": _COMMON | os.O_RDONLY,
    "write": _COMMON | os.O_RDWR | os.O_APPEND,
    "create": _COMMON | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL,
}


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        # There fsync leaves the data in the drive's own cache.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


_datasync = getattr(os, "fdatasync", _sync)


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(
        kind=_kind(found.st_mode),
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        device=found.st_dev,
        inode=found.st_ino,
        mode=stat.S_IMODE(found.st_mode),
        links=found.st_nlink,
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _entry_kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else "other"
