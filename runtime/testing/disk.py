"""One simulated disk, shared by the simulated processes of one machine.

It knows three levels of truth.  What a process wrote, every process sees at
once.  What was synced survives a power loss.  What was not is kept, lost or
torn, as a `Fate` says: data by `datasync` and `sync` of the file, names by
`sync_folder` of the folder.  A file whose data was synced and whose name was
not is gone.  A rename is atomic in both levels.

Every call first asks `on_call` (where a scheduler may let others run) and then
`before` (where a test may plan a fault), and is kept in `calls`.

Not simulated: permissions, hard links, and the reuse of inode numbers.  Not for
use by several threads at once.
"""

import errno
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.files import FileStat
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.faults import (
    DiskCall,
    Fail,
    Fate,
    Fault,
    KillAfter,
    KillBefore,
    KillDuring,
    ProcessKilled,
    WriteShort,
)
from tenure.runtime.testing.nodes import (
    FileNode,
    FolderNode,
    LinkNode,
    NameChange,
    NameEdit,
    Node,
    kind_of,
    size_of,
)
from tenure.runtime.testing.processes import ProcessTable
from tenure.runtime.testing.sockets import MemoryNet
from tenure.runtime.testing.web_net import MemoryWebNet

CALLS_KEPT_MAX = 100_000
LINKS_FOLLOWED_MAX = 40
NAME_BYTES_MAX = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a path leads: a name in a folder, and what bears it."""

    folder: FolderNode
    name: str
    node: Node | None
    path: str
    """The same place without links, `.` and `..`."""


class MemoryDisk:
    """A disk, its kernel's table of locks, and the processes that use it.

    Args:
        clock: gives the times of changes; it stands still unless it is moved,
            so that two changes may bear the same time, as on real file systems.
    """

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock if clock is not None else ManualClock()
        self.processes = ProcessTable()
        self.net = MemoryNet(self.processes)
        self.web = MemoryWebNet(self.clock, self.processes.kill)
        self.calls: deque[DiskCall] = deque(maxlen=CALLS_KEPT_MAX)
        """What was called, oldest first; only the last 100,000."""
        self.before: Callable[[DiskCall], Fault | None] | None = None
        self.on_call: Callable[[DiskCall], None] | None = None
        self.locks: dict[int, ProcessName] = {}
        """Who holds the lock of which inode."""
        self._numbers = 1
        self._changes: list[NameChange] = []
        self._root = FolderNode(number=1, mode=0o755, mtime_ns=self._now_ns())

    # --- for tests: the world outside of every simulated process ------------------------------

    def put(self, path: str, data: bytes) -> None:
        """Make or replace the content of a file, with the folders above it, durably."""
        self.put_folder(os.path.dirname(path))
        node = self.target(path).node
        if node is None:
            node = self.add_file(self.place(path), mode=0o644)
        if not isinstance(node, FileNode):
            raise _error(errno.EISDIR, path)
        node.truncate(0)
        node.append(data)
        node.mtime_ns = self._now_ns()
        node.sync()
        self.sync_names(self.target(path).folder)

    def put_folder(self, path: str) -> None:
        """Make a folder and those above it, durably."""
        at = ""
        for part in _parts(path):
            at = f"{at}/{part}"
            if self.target(at).node is None:
                self.add_folder(self.place(at))
            self.sync_names(self.place(at).folder)

    def put_link(self, path: str, leads_to: str) -> None:
        """Make a symbolic link, durably."""
        place = self.place(path)
        if place.node is not None:
            raise _error(errno.EEXIST, path)
        link = LinkNode(number=self._number(), mtime_ns=self._now_ns(), leads_to=leads_to)
        self.change_names(NameEdit(folder=place.folder, name=place.name, node=link))
        self.sync_names(place.folder)

    def content(self, path: str) -> bytes:
        """What a process would read from the file now."""
        return bytes(self.file(path).content)

    def paths(self) -> tuple[str, ...]:
        """Every file and link, sorted."""
        found: list[str] = []

        def visit(folder: FolderNode, at: str) -> None:
            for name, node in folder.names.items():
                if isinstance(node, FolderNode):
                    visit(node, f"{at}/{name}")
                else:
                    found.append(f"{at}/{name}")

        visit(self._root, "")
        return tuple(sorted(found))

    def crash(self, fate: Fate) -> None:
        """The power fails, and comes back: every process is dead, every lock is free.

        `fate` decides on every write and every name that was not synced.  A
        change of a name that is kept keeps the earlier changes that it rests on.
        """
        self.processes.kill_all()
        self.locks.clear()
        kept: list[NameChange] = []
        for change in reversed(self._changes):
            if fate.is_kept() or any(later.rests_on(change) for later in kept):
                kept.append(change)
        for change in reversed(kept):
            change.commit()
        self._changes.clear()
        self._lose_power(self._root, fate)

    def _lose_power(self, folder: FolderNode, fate: Fate) -> None:
        folder.names = dict(folder.durable)
        for _, node in sorted(folder.names.items()):
            match node:
                case FolderNode():
                    self._lose_power(node, fate)
                case FileNode():
                    node.links = 1
                    node.lose_power(fate)
                case LinkNode():
                    node.links = 1

    # --- for the doors: one call after another --------------------------------------------------

    def enter(self, call: DiskCall) -> Fault | None:
        """A process makes a call.

        Raises what the call shall raise instead of being carried out, and gives
        back a fault that its execution must heed (`leave` sees to `KillAfter`).
        """
        if self.on_call is not None:
            self.on_call(call)
        if self.processes.state(call.process) == "ended":
            raise ProcessKilled(call.process)
        self.calls.append(call)
        fault = self.before(call) if self.before is not None else None
        match fault:
            case Fail(errno=number):
                raise _error(number, call.path)
            case KillBefore():
                self.kill(call.process)
            case WriteShort() | KillDuring() if call.name != "append":
                raise ValueError(f"{type(fault).__name__} is for appends, not for {call.name}")
            case _:
                pass
        return fault

    def leave(self, call: DiskCall, fault: Fault | None) -> None:
        """The call is done."""
        if isinstance(fault, KillAfter | KillDuring):
            self.kill(call.process)

    def kill(self, process: ProcessName) -> None:
        """End a process in the middle of its call."""
        self.processes.kill(process)
        raise ProcessKilled(process)

    # --- names ----------------------------------------------------------------------------------

    def place(self, path: str) -> Place:
        """Where a path leads, a link as its last name not followed."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        plain = self._plain_place(path)
        if plain is not None:
            return plain
        folders, names = [self._root], [""]
        left = deque(_parts(path))
        links = 0
        while left:
            name = left.popleft()
            if name == "..":
                if len(folders) > 1:
                    folders.pop()
                    names.pop()
                continue
            # A character has four bytes at most: short names need no counting.
            if len(name) > NAME_BYTES_MAX // 4 and len(os.fsencode(name)) > NAME_BYTES_MAX:
                raise _error(errno.ENAMETOOLONG, path)
            node = folders[-1].names.get(name)
            if not left:
                where = "/".join([*names, name])
                return Place(folder=folders[-1], name=name, node=node, path=where)
            match node:
                case None:
                    raise _error(errno.ENOENT, path)
                case FileNode():
                    raise _error(errno.ENOTDIR, path)
                case FolderNode():
                    folders.append(node)
                    names.append(name)
                case LinkNode(leads_to=leads_to):
                    links += 1
                    if links > LINKS_FOLLOWED_MAX:
                        raise _error(errno.ELOOP, path)
                    left.extendleft(reversed(_parts(leads_to)))
                    if leads_to.startswith("/"):
                        folders, names = [self._root], [""]
        above = folders[-2] if len(folders) > 1 else self._root
        return Place(folder=above, name=names[-1], node=folders[-1], path="/".join(names) or "/")

    def _plain_place(self, path: str) -> Place | None:
        """Where a path leads that goes through folders only, as nearly all do; else None."""
        folder = self._root
        *above, name = path.split("/")[1:]
        for each in above:
            node = folder.names.get(each)
            if not isinstance(node, FolderNode):
                return None
            folder = node
        if name in ("", ".", "..") or len(name) > NAME_BYTES_MAX // 4:
            return None
        return Place(folder=folder, name=name, node=folder.names.get(name), path=path)

    def target(self, path: str) -> Place:
        """Where a path leads, every link followed."""
        place = self.place(path)
        for _ in range(LINKS_FOLLOWED_MAX):
            if not isinstance(place.node, LinkNode):
                return place
            folder = os.path.dirname(place.path)
            place = self.place(os.path.join(folder, place.node.leads_to))
        raise _error(errno.ELOOP, path)

    def existing(self, path: str) -> Node:
        node = self.target(path).node
        if node is None:
            raise _error(errno.ENOENT, path)
        return node

    def file(self, path: str) -> FileNode:
        node = self.existing(path)
        if not isinstance(node, FileNode):
            raise _error(errno.EISDIR, path)
        return node

    def folder(self, path: str) -> FolderNode:
        node = self.existing(path)
        if not isinstance(node, FolderNode):
            raise _error(errno.ENOTDIR, path)
        return node

    def add_file(self, place: Place, mode: int) -> FileNode:
        node = FileNode(number=self._number(), mode=mode, mtime_ns=self._now_ns())
        self.change_names(NameEdit(folder=place.folder, name=place.name, node=node))
        return node

    def add_folder(self, place: Place) -> None:
        node = FolderNode(number=self._number(), mode=0o755, mtime_ns=self._now_ns())
        self.change_names(NameEdit(folder=place.folder, name=place.name, node=node))

    def change_names(self, *edits: NameEdit) -> None:
        """Change names, together: seen by every process at once, durable when synced."""
        for edit in edits:
            edit.apply(edit.folder.names)
            edit.folder.mtime_ns = self._now_ns()
        self._changes.append(NameChange(edits=edits))

    def sync_names(self, folder: FolderNode) -> None:
        """Make the names of a folder durable, and what they rest on elsewhere."""
        synced: list[NameChange] = []
        left: list[NameChange] = []
        for change in reversed(self._changes):
            if change.touches(folder) or any(later.rests_on(change) for later in synced):
                synced.append(change)
            else:
                left.append(change)
        for change in reversed(synced):
            change.commit()
        self._changes = left[::-1]

    def touch(self, node: FileNode) -> None:
        node.mtime_ns = self._now_ns()

    def stat_of(self, node: Node) -> FileStat:
        return FileStat(
            kind=kind_of(node),
            size=size_of(node),
            mtime_ns=node.mtime_ns,
            device=1,
            inode=node.number,
            mode=node.mode,
            links=node.links,
        )

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _now_ns(self) -> int:
        return self.clock.now_ms() * 1_000_000


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
