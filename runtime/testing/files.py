"""The file system of one simulated process: the `Files` port over a `MemoryDisk`."""

import errno
import os
from collections.abc import Callable
from typing import TypeVar

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.files import File, FileStat, Kind, OpenMode
from tenure.runtime.testing.disk import MemoryDisk, Place
from tenure.runtime.testing.faults import CallName, DiskCall, KillDuring, WriteShort
from tenure.runtime.testing.nodes import FileNode, FolderNode, LinkNode, NameEdit, Node, kind_of

T = TypeVar("T")

UMASK = 0o022


class MemoryFiles:
    """Calls as a Linux kernel answers them; see `MemoryDisk` for what is not simulated."""

    def __init__(self, disk: MemoryDisk, process: ProcessName) -> None:
        self._disk = disk
        self._process = process

    def open(self, path: str, mode: OpenMode, *, permissions: int = 0o666) -> File:
        def opened() -> File:
            if mode == "create":
                place = self._free(path)
                node = self._disk.add_file(place, mode=permissions & ~UMASK)
            else:
                node = self._disk.file(path)
            return _MemoryFile(self._disk, self._process, path, node, mode)

        return self._call("create" if mode == "create" else "open", path, opened)

    def stat(self, path: str) -> FileStat:
        return self._call("stat", path, lambda: self._disk.stat_of(self._disk.existing(path)))

    def lstat(self, path: str) -> FileStat:
        return self._call("lstat", path, lambda: self._disk.stat_of(self._taken(path).node))

    def list(self, path: str) -> tuple[tuple[str, Kind], ...]:
        def listed() -> tuple[tuple[str, Kind], ...]:
            names = self._disk.folder(path).names
            return tuple((name, kind_of(node)) for name, node in sorted(names.items()))

        return self._call("list", path, listed)

    def make_folder(self, path: str) -> None:
        self._call("make_folder", path, lambda: self._disk.add_folder(self._free(path)))

    def rename(self, source: str, target: str) -> None:
        self._call("rename", source, lambda: self._rename(source, target), target=target)

    def remove(self, path: str) -> None:
        def removed() -> None:
            found = self._taken(path)
            if isinstance(found.node, FolderNode):
                raise _error(errno.EISDIR, path)
            self._disk.change_names(NameEdit(folder=found.folder, name=found.name, node=None))
            found.node.links = 0

        self._call("remove", path, removed)

    def remove_folder(self, path: str) -> None:
        def removed() -> None:
            found = self._taken(path)
            if not isinstance(found.node, FolderNode):
                raise _error(errno.ENOTDIR, path)
            if found.node.names:
                raise _error(errno.ENOTEMPTY, path)
            self._disk.change_names(NameEdit(folder=found.folder, name=found.name, node=None))

        self._call("remove_folder", path, removed)

    def sync_folder(self, path: str) -> None:
        self._call("sync_folder", path, lambda: self._disk.sync_names(self._disk.folder(path)))

    def real_path(self, path: str) -> str:
        return self._call("real_path", path, lambda: self._real_path(path))

    def _rename(self, source: str, target: str) -> None:
        old, new = self._taken(source), self._disk.place(target)
        if old.node is new.node:
            return
        if isinstance(old.node, FolderNode):
            if f"{new.path}/".startswith(f"{old.path}/"):
                raise _error(errno.EINVAL, source)
            if new.node is not None and not isinstance(new.node, FolderNode):
                raise _error(errno.ENOTDIR, source)
            if isinstance(new.node, FolderNode) and new.node.names:
                raise _error(errno.ENOTEMPTY, source)
        elif isinstance(new.node, FolderNode):
            raise _error(errno.EISDIR, source)
        if new.node is not None and not isinstance(new.node, FolderNode):
            new.node.links = 0
        self._disk.change_names(
            NameEdit(folder=old.folder, name=old.name, node=None),
            NameEdit(folder=new.folder, name=new.name, node=old.node),
        )

    def _real_path(self, path: str) -> str:
        done, left, links = "", path.split("/")[::-1], 0
        while left:
            part = left.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            at = f"{done}/{part}"
            node = self._seen(at)
            if isinstance(node, LinkNode) and links < 40:
                links += 1
                left.extend(node.leads_to.split("/")[::-1])
                if node.leads_to.startswith("/"):
                    done = ""
            else:
                done = at
        return done or "/"

    def _seen(self, path: str) -> Node | None:
        try:
            return self._disk.place(path).node
        except OSError:
            return None

    def _free(self, path: str) -> Place:
        place = self._disk.place(path)
        if place.node is not None:
            raise _error(errno.EEXIST, path)
        return place

    def _taken(self, path: str) -> "_Taken":
        place = self._disk.place(path)
        if place.node is None:
            raise _error(errno.ENOENT, path)
        return _Taken(place, place.node)

    def _call(self, name: CallName, path: str, action: Callable[[], T], target: str = "") -> T:
        call = DiskCall(process=self._process, name=name, path=path, target=target)
        fault = self._disk.enter(call)
        result = action()
        self._disk.leave(call, fault)
        return result


class _Taken:
    """A place that something bears the name of."""

    def __init__(self, place: Place, node: Node) -> None:
        self.folder = place.folder
        self.name = place.name
        self.path = place.path
        self.node = node


class _MemoryFile:
    def __init__(
        self, disk: MemoryDisk, process: ProcessName, path: str, node: FileNode, mode: OpenMode
    ) -> None:
        self._disk = disk
        self._process = process
        self._path = path
        self._node: FileNode | None = node
        self._mode = mode

    def read_at(self, offset: int, size: int) -> bytes:
        def read(node: FileNode) -> bytes:
            if offset < 0:
                raise _error(errno.EINVAL, self._path)
            return bytes(node.content[offset : offset + size])

        return self._call("read_at", read, size)

    def append(self, data: bytes) -> int:
        call = self._made("append", len(data))
        fault = self._disk.enter(call)
        node = self._writable(errno.EBADF)
        written = len(data)
        if isinstance(fault, WriteShort | KillDuring):
            written = min(fault.bytes_written, written)
        if written:
            node.append(bytes(data[:written]))
            self._disk.touch(node)
        self._disk.leave(call, fault)
        return written

    def truncate(self, size: int) -> None:
        def truncated(_: FileNode) -> None:
            node = self._writable(errno.EINVAL)
            node.truncate(size)
            self._disk.touch(node)

        self._call("truncate", truncated, size)

    def datasync(self) -> None:
        self._sync("datasync")

    def sync(self) -> None:
        self._sync("sync")

    def stat(self) -> FileStat:
        return self._call("stat", self._disk.stat_of)

    def close(self) -> None:
        call = self._made("close", 0)
        fault = self._disk.enter(call)
        self._node = None
        self._disk.leave(call, fault)

    def _sync(self, name: CallName) -> None:
        try:
            self._call(name, FileNode.sync)
        except OSError:
            if self._node is not None:
                self._node.give_up()
            raise

    def _writable(self, refusal: int) -> FileNode:
        node = self._open()
        if self._mode == "read":
            raise _error(refusal, self._path)
        return node

    def _open(self) -> FileNode:
        if self._node is None:
            raise _error(errno.EBADF, self._path)
        return self._node

    def _made(self, name: CallName, size: int) -> DiskCall:
        return DiskCall(process=self._process, name=name, path=self._path, size=size)

    def _call(self, name: CallName, action: Callable[[FileNode], T], size: int = 0) -> T:
        call = self._made(name, size)
        fault = self._disk.enter(call)
        result = action(self._open())
        self._disk.leave(call, fault)
        return result


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
