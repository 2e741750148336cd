"""Kernel locks of one simulated process: the `Locks` port over a `MemoryDisk`."""

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.locks import HeldLock
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall
from tenure.runtime.testing.nodes import FileNode


class MemoryLocks:
    """A lock belongs to a file, not to its name, and ends with its process.

    A killed process holds nothing, a stopped one keeps what it holds.  Forked
    children are not simulated: they would hold nothing.
    """

    def __init__(self, disk: MemoryDisk, process: ProcessName) -> None:
        self._disk = disk
        self._process = process

    def try_lock(self, path: str) -> HeldLock | None:
        disk = self._disk
        call = DiskCall(process=self._process, name="lock", path=path)
        fault = disk.enter(call)
        place = disk.target(path)
        node = disk.add_file(place, mode=0o644) if place.node is None else disk.file(path)
        holder = disk.locks.get(node.number)
        held: HeldLock | None = None
        if holder is None or disk.processes.state(holder) == "ended":
            disk.locks[node.number] = self._process
            held = _MemoryLock(disk, self._process, path, node)
        disk.leave(call, fault)
        return held


class _MemoryLock:
    def __init__(self, disk: MemoryDisk, process: ProcessName, path: str, node: FileNode) -> None:
        self._disk = disk
        self._process = process
        self._path = path
        self._node: FileNode | None = node

    def in_place(self) -> bool:
        call = DiskCall(process=self._process, name="stat", path=self._path)
        fault = self._disk.enter(call)
        try:
            there = self._disk.target(self._path).node
        except (FileNotFoundError, NotADirectoryError):
            there = None
        self._disk.leave(call, fault)
        return self._node is not None and there is self._node

    def release(self) -> None:
        if self._node is None:
            return
        call = DiskCall(process=self._process, name="unlock", path=self._path)
        fault = self._disk.enter(call)
        del self._disk.locks[self._node.number]
        self._node = None
        self._disk.leave(call, fault)
