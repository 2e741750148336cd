"""Finding words in all sessions: in names and first words, or in everything that was said."""

import json
from collections.abc import Iterator
from typing import Literal

import msgspec

from tenure.messages.content import AssistantMessage, calls_of, text_of
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.transcripts.cache import SessionSummary
from tenure.runtime.doors.transcripts.catalogue import Catalogue
from tenure.runtime.doors.transcripts.conversation import message_at
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.scan import loose_fields, scan
from tenure.runtime.doors.transcripts.storage import read_all
from tenure.runtime.doors.transcripts.tree import Head

SNIPPET_CHARS_MAX = 160

Place = Literal["name", "first_text", "id", "entry"]


class SessionMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A session in which the words were found."""

    session: SessionSummary
    place: Place
    """Where they were found first."""
    entry_id: str
    """The first entry that holds them; empty for the other places."""
    entries: int
    """How many entries hold them."""
    snippet: str
    """What stands around them, on one line."""


def search_sessions(
    catalogue: Catalogue, files: Files, text: str, scope: Literal["titles", "everything"]
) -> tuple[SessionMatch, ...]:
    """The sessions that hold a text, whatever its case, the newest first.  Blocks.

    Args:
        scope: titles looks at names, first words and ids alone, which needs no
            file of a session that is known; everything reads what was said, too.

    Raises:
        OSError: the folder of sessions is there and cannot be read.
    """
    wanted = text.casefold()
    found: list[SessionMatch] = []
    for summary in catalogue.sessions():
        match = _in_title(summary, wanted)
        if scope == "everything" and not summary.problem:
            match = _in_entries(files, summary, wanted, match)
        if match is not None:
            found.append(match)
    return tuple(found)


def _in_title(summary: SessionSummary, wanted: str) -> SessionMatch | None:
    places: tuple[tuple[Place, str], ...] = (
        ("name", summary.name),
        ("first_text", summary.first_text),
        ("id", summary.id),
    )
    for place, text in places:
        if wanted in text.casefold():
            return SessionMatch(
                session=summary, place=place, entry_id="", entries=0, snippet=_around(text, wanted)
            )
    return None


def _in_entries(
    files: Files, summary: SessionSummary, wanted: str, title: SessionMatch | None
) -> SessionMatch | None:
    try:
        data = read_all(files, summary.path)
        if not _may_hold(data, wanted):
            return title
        tree = scan(data).tree
    except (OSError, Unreadable):
        return title  # removed or replaced meanwhile
    first: tuple[str, str] | None = None
    count = 0
    for head, line in zip(tree.heads, tree.lines, strict=True):
        text = next((text for text in _texts(head, line) if wanted in text.casefold()), None)
        if text is not None:
            count += 1
            first = first or (head.id, _around(text, wanted))
    if title is not None:
        return msgspec.structs.replace(title, entries=count)
    if first is None:
        return None
    entry_id, snippet = first
    return SessionMatch(
        session=summary, place="entry", entry_id=entry_id, entries=count, snippet=snippet
    )


def _may_hold(data: bytes, wanted: str) -> bool:
    """Whether a file may say this: a quick look at its bytes, which misses nothing."""
    escaped = json.dumps(wanted, ensure_ascii=False)[1:-1]
    if wanted.isascii() and escaped == wanted:
        folded = data.lower()
        # Other programs may write any character as an escape, and a few letters that
        # are not ASCII fold to ones that are.
        return wanted.encode() in folded or b"\\u" in folded or not data.isascii()
    return True


def _texts(head: Head, line: bytes) -> Iterator[str]:
    """Everything that an entry says to people."""
    message = message_at(head, line)
    if message is not None:
        yield text_of(message)
        if isinstance(message, AssistantMessage):
            for call in calls_of(message):
                yield json.dumps(call.arguments, ensure_ascii=False, default=str)
        return
    fields = loose_fields(line) or {}
    for name in ("summary", "label", "name"):
        value = fields.get(name)
        if isinstance(value, str):
            yield value


def _around(text: str, wanted: str) -> str:
    """What stands around the first place, on one line."""
    line = " ".join(text.split())
    at = max(0, line.casefold().find(" ".join(wanted.split())))
    start = max(0, at - SNIPPET_CHARS_MAX // 3)
    cut = line[start : start + SNIPPET_CHARS_MAX]
    before = "…" if start else ""
    behind = "…" if start + SNIPPET_CHARS_MAX < len(line) else ""
    return f"{before}{cut}{behind}"
