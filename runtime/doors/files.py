"""The file system: one leaf door, call by call, so that every call can fail or be cut.

All methods block and are called from a worker (`doors/workers.py`), never on the
event loop.  They raise `OSError` as the operating system does.  Paths are
absolute strings.
"""

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

    def open(self, path: str, mode: OpenMode, *, permissions: int = 0o666) -> File: ...

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
