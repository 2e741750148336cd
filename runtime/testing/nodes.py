"""The files, folders and links of a simulated disk, each as it is and as a power loss leaves it."""

from dataclasses import dataclass, field
from typing import Literal

from tenure.runtime.testing.faults import Fate


@dataclass(slots=True, kw_only=True)
class Written:
    """Bytes that were written and not synced."""

    offset: int
    data: bytes


@dataclass(slots=True, kw_only=True)
class Truncated:
    """A length that was set and not synced."""

    size: int


Unsynced = Written | Truncated


@dataclass(slots=True, kw_only=True, eq=False)
class FileNode:
    """A file: its content as every process sees it, and its content on the platter.

    The platter's content is `durable` with some of `unsynced` applied, in order.
    """

    number: int
    mode: int
    mtime_ns: int
    links: int = 1
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Unsynced] = field(default_factory=list)
    given_up: list[Unsynced] = field(default_factory=list)
    """Writes whose sync failed: the cache forgot that they are dirty, so no later sync
    writes them; a power loss may keep or lose them."""

    def append(self, data: bytes) -> None:
        self.unsynced.append(Written(offset=len(self.content), data=data))
        self.content += data

    def truncate(self, size: int) -> None:
        change = Truncated(size=size)
        self.unsynced.append(change)
        _apply(self.content, change)

    def sync(self) -> None:
        for change in self.unsynced:
            if isinstance(change, Truncated):
                self.given_up = _within(self.given_up, change.size)
            _apply(self.durable, change)
        self.unsynced.clear()

    def give_up(self) -> None:
        """A sync failed."""
        self.given_up += self.unsynced
        self.unsynced.clear()

    def lose_power(self, fate: Fate) -> None:
        for change in [*self.given_up, *self.unsynced]:
            match change:
                case Truncated():
                    if fate.is_kept():
                        _apply(self.durable, change)
                case Written(offset=offset, data=data):
                    kept = fate.bytes_kept(len(data))
                    if kept:
                        _apply(self.durable, Written(offset=offset, data=data[:kept]))
        self.unsynced.clear()
        self.given_up.clear()
        self.content = bytearray(self.durable)


@dataclass(slots=True, kw_only=True, eq=False)
class FolderNode:
    """A folder: its names as every process sees them, and those on the platter."""

    number: int
    mode: int
    mtime_ns: int
    links: int = 2
    names: dict[str, "Node"] = field(default_factory=dict)
    durable: dict[str, "Node"] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class LinkNode:
    """A symbolic link."""

    number: int
    mtime_ns: int
    leads_to: str
    mode: int = 0o777
    links: int = 1


Node = FileNode | FolderNode | LinkNode


@dataclass(slots=True, kw_only=True, eq=False)
class NameEdit:
    """A name that was given to a node, or taken away."""

    folder: FolderNode
    name: str
    node: Node | None

    def apply(self, names: dict[str, Node]) -> None:
        if self.node is None:
            names.pop(self.name, None)
        else:
            names[self.name] = self.node


@dataclass(slots=True, kw_only=True, eq=False)
class NameChange:
    """One call that changed names, whole or not at all on the platter: a rename has two edits."""

    edits: tuple[NameEdit, ...]

    def commit(self) -> None:
        for edit in self.edits:
            edit.apply(edit.folder.durable)

    def touches(self, folder: FolderNode) -> bool:
        return any(edit.folder is folder for edit in self.edits)

    def rests_on(self, earlier: "NameChange") -> bool:
        """Whether this one, kept, means that `earlier` is kept too: they share a name."""
        return any(
            mine.folder is theirs.folder and mine.name == theirs.name
            for mine in self.edits
            for theirs in earlier.edits
        )


def kind_of(node: Node) -> Literal["file", "folder", "link"]:
    """What a node is, as a folder lists it."""
    match node:
        case FileNode():
            return "file"
        case FolderNode():
            return "folder"
        case LinkNode():
            return "link"


def size_of(node: Node) -> int:
    """The size of a node in bytes, as `stat` gives it."""
    match node:
        case FileNode(content=content):
            return len(content)
        case FolderNode():
            return 4096
        case LinkNode(leads_to=leads_to):
            return len(leads_to.encode())


def _apply(content: bytearray, change: Unsynced) -> None:
    match change:
        case Truncated(size=size):
            if size < len(content):
                del content[size:]
            else:
                content.extend(bytes(size - len(content)))
        case Written(offset=offset, data=data):
            # What came before may be lost: there is a hole then, which reads as zeros.
            if offset > len(content):
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data


def _within(changes: list[Unsynced], size: int) -> list[Unsynced]:
    """What is left of changes in a file that was then cut to `size`."""
    left: list[Unsynced] = []
    for change in changes:
        match change:
            case Written(offset=offset, data=data) if offset < size:
                left.append(Written(offset=offset, data=data[: size - offset]))
            case Truncated(size=length) if length < size:
                left.append(change)
            case _:
                pass
    return left
