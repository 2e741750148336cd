"""A handoff as a readable Markdown file, as ClawVault lays it out, and back.

The front matter holds every item exactly.  The body is for people: an item there is one
line, and its markup is escaped, so that no item can pass for a section or another field.
"""

import re

import msgspec

from tenure.messages.handoff import HandoffText
from tenure.runtime.doors.vault.frontmatter import Note, front_matter, parse_note
from tenure.runtime.doors.vault.names import iso, moment_of, one_line, whole

_SECTIONS = (
    ("Working On", "working_on"),
    ("Blocked", "blocked"),
    ("Next Steps", "next_steps"),
    ("Decisions Made", "decisions"),
    ("Open Questions", "questions"),
)
_NAMES = {
    "working_on": "workingOn",
    "blocked": "blocked",
    "next_steps": "nextSteps",
    "decisions": "decisions",
    "questions": "openQuestions",
}
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")
_LIST_MARK = re.compile(r"\A(\d*)([-+=.)])")
TITLE_CHARS = 80


class HandoffFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file under `handoffs/` says."""

    text: HandoffText
    id: str
    """As its front matter has it; empty where it has none."""
    session: str
    body: str
    problem: str


def render_handoff(
    text: HandoffText, *, handoff_id: str, seq: int, at_ms: int, author: str, session: str
) -> bytes:
    """The bytes of the file: the same for the same handoff, whenever it is written."""
    title = f"Session handoff: {one_line(text.working_on[0])[:TITLE_CHARS]}"
    fields: dict[str, str | int | tuple[str, ...]] = {
        "title": title,
        "date": f"{moment_of(at_ms):%Y-%m-%d}",
        "type": "handoff",
        "id": handoff_id,
        "seq": seq,
        "created": iso(at_ms),
        "author": whole(author) or "caller",
    }
    if session:
        fields["sessionKey"] = whole(session)
    for name, key in _NAMES.items():
        items = tuple(whole(item) for item in getattr(text, name))
        if items or key in ("workingOn", "blocked", "nextSteps"):
            fields[key] = items
    if text.feelings:
        fields["feeling"] = whole("; ".join(text.feelings))
    return (front_matter(fields) + _body(text, at_ms, author, session)).encode()


def _body(text: HandoffText, at_ms: int, author: str, session: str) -> str:
    lines = ["", "# Session Handoff", "", f"**Created:** {iso(at_ms)}"]
    if session:
        lines.append(f"**Session:** {escaped(session)}")
    if author:
        lines.append(f"**Author:** {escaped(author)}")
    lines += [f"**Feeling:** {escaped(each)}" for each in text.feelings]
    for heading, name in _SECTIONS:
        items = getattr(text, name)
        if items or name in ("working_on", "blocked", "next_steps"):
            lines += ["", f"## {heading}", ""]
            lines += [f"- {escaped(item)}" for item in items] or ["- (none)"]
    return "\n".join([*lines, ""])


def escaped(item: str) -> str:
    """One line of Markdown that shows the item as it is."""
    line = _MARKUP.sub(r"\\\1", one_line(item))
    return _LIST_MARK.sub(r"\1\\\2", line)


def read_handoff(data: bytes) -> HandoffFile:
    """What a file says, whoever wrote it.  Nothing in it can raise."""
    note = parse_note(data)
    named = {name: note.texts(key) for name, key in _NAMES.items()}
    return HandoffFile(
        text=HandoffText(**named, feelings=note.texts("feeling")),
        id=note.text("id"),
        session=note.text("sessionKey"),
        body=note.body,
        problem=note.problem or ("" if _says_something(note) else "it says nothing"),
    )


def _says_something(note: Note) -> bool:
    return bool(note.body.strip() or note.texts("workingOn"))
