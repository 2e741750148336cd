"""The entries of one transcript in memory: a tree in file order, and its leaf."""

import msgspec

from tenure.messages.tokens import EntryId


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """The field of ours in a record, without its sum."""

    epoch: int
    seq: int
    turn: int = 0
    key: str = ""


class MessageHead(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the tree needs to know of a message."""

    role: str = ""
    timestamp: int | float = 0
    tool_call_id: str = ""


class Head(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the tree needs to know of an entry; the rest stays as the bytes of its line."""

    type: str
    id: str = ""
    parent_id: str | None = None
    timestamp: str = ""
    message: MessageHead | None = None
    tenure: Stamp | None = None


ROOT = -1
"""The place above every root."""


class Tree:
    """Entries by place: their index in file order among those that can be read."""

    __slots__ = ("_moved", "_places", "heads", "leaf_place", "lines")

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.lines: list[bytes] = []
        self.leaf_place = ROOT
        self._places: dict[str, int] = {}
        self._moved: dict[int, int] = {}

    @property
    def leaf(self) -> EntryId | None:
        """The entry that the next one hangs on."""
        return None if self.leaf_place == ROOT else EntryId(self.heads[self.leaf_place].id)

    def add(self, head: Head, line: bytes) -> None:
        """Add an entry behind the others; it becomes the leaf."""
        place = len(self.heads)
        parent = head.parent_id
        if parent is not None and parent not in self._places:
            self._moved[place] = place - 1
        self._places[head.id] = place
        self.heads.append(head)
        self.lines.append(line)
        self.leaf_place = place

    def load(self, heads: list[Head], lines: list[bytes], moved: dict[int, int]) -> None:
        """Take all entries of a file at once; ids must be unique.

        Args:
            moved: places of entries that hang elsewhere than they say, with the
                place they hang on.
        """
        self.heads, self.lines, self._moved = heads, lines, moved
        places = self._places = {head.id: place for place, head in enumerate(heads)}
        previous: str | None = None
        for place, head in enumerate(heads):
            parent = head.parent_id
            # Where the parent cannot be read, or stands behind its child, the
            # entry hangs on the readable one before it: damage hides only itself.
            sound = parent is None or parent == previous or places.get(parent, place) < place
            if not sound:  # guard: SESSION-7
                moved.setdefault(place, place - 1)
            previous = head.id
        self.leaf_place = len(heads) - 1

    def place_of(self, entry_id: str) -> int | None:
        return self._places.get(entry_id)

    def parent_place(self, place: int) -> int:
        """The place that an entry hangs on; `ROOT` for none."""
        moved = self._moved.get(place)
        if moved is not None:
            return moved
        parent = self.heads[place].parent_id
        return ROOT if parent is None else self._places[parent]

    def path(self, *, behind: int = ROOT, to: int | None = None) -> list[int]:
        """The places from a root to the leaf, in order.

        Args:
            behind: stop at this place and leave it out; the whole path where it
                is not on it.
            to: end at this place; None for the leaf.
        """
        path: list[int] = []
        place = self.leaf_place if to is None else to
        while place not in (ROOT, behind):
            path.append(place)
            place = self.parent_place(place)
        path.reverse()
        return path
