"""Looking at sessions: lists and contents.  Reads never write, and never take a lock.

A live writer's unfinished last line is nobody's damage: it is left out.
"""

from typing import Literal

import msgspec

from tenure.messages.content import ChatMessage, text_of
from tenure.messages.limits import Spending
from tenure.messages.session import Damage
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.branches import name_of
from tenure.runtime.doors.transcripts.cache import Rows, SessionSummary, read_rows
from tenure.runtime.doors.transcripts.codec import parse_time
from tenure.runtime.doors.transcripts.conversation import Conversation, message_at
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.doors.transcripts.scan import Scan, scan
from tenure.runtime.doors.transcripts.spending import Counted
from tenure.runtime.doors.transcripts.storage import read_all, reason_of
from tenure.runtime.doors.transcripts.titles import without_preamble
from tenure.runtime.doors.transcripts.tree import ROOT

FIRST_TEXT_CHARACTERS_MAX = 200


EntryState = Literal["intact", "unverified", "out_of_epoch", "altered", "unreadable"]


class EntryView(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a transcript."""

    line: int
    """From 1; the header is line 1."""
    state: EntryState
    id: str
    parent_id: str | None
    """What it hangs on, which is the readable entry before it where its own parent is lost."""
    type: str
    """Empty where the line is unreadable."""
    timestamp: str
    text: str
    """The line as it stands in the file; bytes that are no text are replaced."""


class SessionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole content of a transcript at one moment."""

    summary: SessionSummary
    entries: tuple[EntryView, ...]
    leaf: str | None
    damage: Damage
    messages: tuple[ChatMessage, ...]
    """What a model would be shown."""
    spending: Spending


class Catalogue:
    """The sessions of one root, remembered for as long as their files do not change.

    What a cache file holds is used, and no more believed than memory: a row counts
    only for a file with the same identity, size and times.  Nothing is written here.

    Args:
        root: the workspace root, an absolute path.
    """

    def __init__(self, leaves: Leaves, root: str) -> None:
        self._files = leaves.files
        self.layout = Layout(root)
        self._known: Rows | None = None

    def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, newest first; unreadable files too, with their problem.  Blocks.

        Raises:
            OSError: the folder of sessions is there and cannot be read.
        """
        before = self._known
        if before is None:
            before = read_rows(self._files, self.layout.cache)
        known: Rows = {}
        for path in self.layout.transcripts(self._files):
            try:
                found = self._files.stat(path)
            except OSError:
                continue  # removed meanwhile
            row = before.get(path)
            if row is None or row[0] != found:
                row = (found, summary_of(self._files, path, found))
            known[path] = row
        self._known = known
        summaries = [summary for _, summary in known.values()]
        summaries.sort(key=lambda summary: (-summary.updated_ms, summary.path))
        return tuple(summaries)

    @property
    def rows(self) -> Rows:
        """What is known since the last list."""
        return dict(self._known or {})

    def search(self, text: str) -> tuple[SessionSummary, ...]:
        """The sessions whose name, first text or id holds the text, whatever its case."""
        wanted = text.casefold()
        return tuple(
            summary
            for summary in self.sessions()
            if wanted in f"{summary.name}\n{summary.first_text}\n{summary.id}".casefold()
        )


def list_sessions(leaves: Leaves, root: str) -> tuple[SessionSummary, ...]:
    """All sessions of a root, newest first.  Blocks.

    Raises:
        OSError: the folder of sessions is there and cannot be read.
    """
    return Catalogue(leaves, root).sessions()


def read_session(leaves: Leaves, path: str) -> SessionSnapshot:
    """Everything in one transcript.  Blocks.

    Raises:
        Unreadable: it is no transcript that we can read.
        OSError: the file cannot be read.
    """
    changed_ms = leaves.files.stat(path).mtime_ns // 1_000_000
    data = read_all(leaves.files, path)
    found = scan(data)
    return SessionSnapshot(
        summary=_summary(path, found, len(data), changed_ms),
        entries=_views(found),
        leaf=found.tree.leaf,
        damage=found.damage,
        messages=Conversation(found.tree).messages(),
        spending=Counted(found.tree).spending(SessionId(found.header.id)),
    )


def summary_of(files: Files, path: str, status: FileStat) -> SessionSummary:
    """One row of a list; never raises: what cannot be read has its problem."""
    changed_ms, size = status.mtime_ns // 1_000_000, status.size
    try:
        if status.kind != "file":
            raise Unreadable(
                "it is a folder" if status.kind == "folder" else "it is no regular file"
            )
        return _summary(path, scan(read_all(files, path)), size, changed_ms)
    except Unreadable as error:
        problem = str(error)
    except OSError as error:
        problem = reason_of(error)
    return SessionSummary(
        id=SessionId(""),
        path=path,
        created_ms=changed_ms,
        updated_ms=changed_ms,
        name="",
        first_text="",
        messages=0,
        bytes=size,
        damage=0,
        problem=problem,
    )


def _summary(path: str, found: Scan, size: int, changed_ms: int) -> SessionSummary:
    created_ms = parse_time(found.header.timestamp) or changed_ms
    spoken_ms, messages = 0, 0
    for head in found.tree.heads:
        message = head.message
        if message is not None:
            messages += 1
            if message.timestamp > spoken_ms and message.role in ("user", "assistant"):
                spoken_ms = int(message.timestamp)
    return SessionSummary(
        id=SessionId(found.header.id),
        path=path,
        created_ms=created_ms,
        updated_ms=spoken_ms or created_ms,
        name=name_of(found.tree),
        first_text=_first_text(found),
        messages=messages,
        bytes=size,
        damage=found.damage.count - (1 if found.damage.torn_bytes else 0),
        problem="",
    )


def _first_text(found: Scan) -> str:
    for head, line in zip(found.tree.heads, found.tree.lines, strict=True):
        if head.message is not None and head.message.role == "user":
            message = message_at(head, line)
            text = without_preamble(text_of(message)) if message is not None else ""
            text = " ".join(text.split())
            if text:
                return shortened(text, FIRST_TEXT_CHARACTERS_MAX)
    return ""


def shortened(text: str, characters_max: int) -> str:
    """The text, cut by code points, with an ellipsis where it was cut."""
    return text if len(text) <= characters_max else f"{text[: characters_max - 1]}…"


def _views(found: Scan) -> tuple[EntryView, ...]:
    places = {number: place for place, number in enumerate(found.line_numbers)}
    views: list[EntryView] = []
    for number, line in enumerate(found.old_lines[1:], start=2):
        place = places.get(number)
        mark = found.marks.get(number)
        if place is None and mark is None:
            continue  # a blank line, or a copy of an earlier one
        views.append(_view(found, number, line, place))
    return tuple(views)


def _view(found: Scan, number: int, line: bytes, place: int | None) -> EntryView:
    text = line.decode("utf-8", "replace")
    state: EntryState = found.marks.get(number, "intact")
    if place is None:
        return EntryView(
            line=number, state=state, id="", parent_id=None, type="", timestamp="", text=text
        )
    tree = found.tree
    head, parent = tree.heads[place], tree.parent_place(place)
    return EntryView(
        line=number,
        state=state,
        id=head.id,
        parent_id=None if parent == ROOT else tree.heads[parent].id,
        type=head.type,
        timestamp=head.timestamp,
        text=text,
    )
