"""A note in chunks: by headings, paragraphs and code, each with its line numbers.

A chunk's identity is the digest of what is embedded, its headings and its text.  Neither
path nor line is in it: a note that is renamed, or a paragraph that moves, is not embedded
again.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence

import msgspec

CHUNK_CHARS = 700
"""A chunk is closed when it has so many."""
CHUNK_CHARS_MAX = 1_200
"""Longer blocks are cut, at a line, a sentence or a blank."""
HEADING_CHARS_MAX = 200
DIGEST_BYTES = 16
CHUNKING = 1
"""The version of these rules: chunks of another one are made anew."""

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
_TAG = re.compile(r"(?:^|(?<=\s))#([\w/-]*[^\W\d_][\w/-]*)")


class Chunk(msgspec.Struct, frozen=True):
    """Some neighbouring lines of a note."""

    first: int
    """Its first line, from 1."""
    last: int
    text: str
    heading: str
    """The headings above it, from the top."""

    @property
    def embedded(self) -> str:
        """What a model sees of it."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text

    @property
    def digest(self) -> bytes:
        data = f"{CHUNKING}\0{self.heading}\0{self.text}".encode("utf-8", "replace")
        return hashlib.sha256(data).digest()[:DIGEST_BYTES]


class Note(msgspec.Struct, frozen=True):
    """What a note is made of."""

    title: str
    tags: tuple[str, ...]
    """Folded to lower case, without `#`, sorted."""
    chunks: tuple[Chunk, ...]


class _Block(msgspec.Struct, frozen=True):
    first: int
    text: str
    heading: str
    opens: bool
    """Whether it begins a new section."""

    @property
    def last(self) -> int:
        return self.first + self.text.count("\n")


def note_of(text: str, name: str) -> Note:
    """Cut a note into chunks.

    Args:
        name: the file's name without its suffix: the title where the note has none.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start, front = _front_matter(lines)
    title = front.get("title", ("",))[0] or _first_heading(lines[start:]) or name
    tags = {each.lstrip("#").lower() for key in ("tags", "tag") for each in front.get(key, ())}
    blocks = [piece for block in _blocks(lines, start) for piece in _cut(block)]
    for block in blocks:
        tags.update(found.lower() for found in _TAG.findall(block.text))
    found = tuple(_packed(blocks))
    return Note(title, tuple(sorted(tag for tag in tags if tag)), found)


def _front_matter(lines: Sequence[str]) -> tuple[int, dict[str, tuple[str, ...]]]:
    """How many lines the head of a note takes, and its simple keys."""
    if not lines or lines[0].rstrip() != "---":
        return 0, {}
    for end in range(1, min(len(lines), 200)):
        if lines[end].rstrip() in ("---", "..."):
            return end + 1, dict(_keys(lines[1:end]))
    return 0, {}


def _keys(lines: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    key, values = "", []
    for line in lines:
        if line.lstrip().startswith("- ") and key:
            values.append(_bare(line.lstrip()[2:]))
            continue
        if key:
            yield key, tuple(values)
        name, colon, value = line.partition(":")
        key = name.strip().lower() if colon and not name.startswith(" ") else ""
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            values = [_bare(each) for each in value[1:-1].split(",")]
        else:
            values = [_bare(value)] if value else []
    if key:
        yield key, tuple(values)


def _bare(value: str) -> str:
    return value.strip().strip("'\"").strip()


def _first_heading(lines: Sequence[str]) -> str:
    for line in lines[:50]:
        found = _HEADING.match(line)
        if found:
            return found[2][:HEADING_CHARS_MAX]
    return ""


def _blocks(lines: Sequence[str], start: int) -> Iterator[_Block]:
    """Paragraphs, headings and fenced code, in their order."""
    headings: list[tuple[int, str]] = []
    begun, block, fence, opens = start, list[str](), "", False

    def above() -> str:
        return " > ".join(text for _, text in headings)[-HEADING_CHARS_MAX:]

    for at in range(start, len(lines) + 1):
        line = lines[at] if at < len(lines) else None
        heading = _HEADING.match(line) if line is not None and not fence else None
        ends = line is None or (not fence and (not line.strip() or heading))
        if ends and block:
            yield _Block(begun + 1, "\n".join(block), above(), opens)
            block, opens = [], False
        if heading and line is not None:
            level = len(heading[1])
            headings = [each for each in headings if each[0] < level]
            headings.append((level, heading[2][:HEADING_CHARS_MAX]))
            begun, block, opens = at, [line], True
        elif line is not None and (line.strip() or fence):
            begun = at if not block else begun
            block.append(line)
            marks = _FENCE.match(line)
            if marks and not fence:
                fence = marks[1]
            elif marks and line.strip().startswith(fence) and line.strip() == marks[1]:
                fence = ""


def _cut(block: _Block) -> Iterator[_Block]:
    """A block in pieces of no more than `CHUNK_CHARS_MAX`."""
    text, first, opens = block.text, block.first, block.opens
    while len(text) > CHUNK_CHARS_MAX:
        size = _good_cut(text)
        yield _Block(first, text[:size].rstrip("\n"), block.heading, opens)
        first += text.count("\n", 0, size)
        text, opens = text[size:], False
    if text.strip():
        yield _Block(first, text, block.heading, opens)


def _good_cut(text: str) -> int:
    part = text[:CHUNK_CHARS_MAX]
    line = part.rfind("\n", CHUNK_CHARS_MAX // 3)
    if line > 0:
        return line + 1
    ends = [found.end() for found in _SENTENCE.finditer(part, CHUNK_CHARS_MAX // 3)]
    if ends:
        return ends[-1]
    blank = part.rfind(" ", CHUNK_CHARS_MAX // 3)
    return blank + 1 if blank > 0 else CHUNK_CHARS_MAX


def _packed(blocks: Sequence[_Block]) -> Iterator[Chunk]:
    """Neighbouring blocks of one section together, as far as they fit."""
    waiting: list[_Block] = []
    size = 0
    for block in blocks:
        full = size >= CHUNK_CHARS or size + len(block.text) > CHUNK_CHARS_MAX
        if waiting and (full or (block.opens and size >= CHUNK_CHARS // 3)):
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(block)
        size += len(block.text)
    if waiting:
        yield _joined(waiting)


def _joined(blocks: Sequence[_Block]) -> Chunk:
    lines: list[str] = []
    at = blocks[0].first
    for block in blocks:
        lines += [""] * (block.first - at)
        lines += block.text.split("\n")
        at = block.first + block.text.count("\n") + 1
    return Chunk(blocks[0].first, blocks[-1].last, "\n".join(lines), blocks[0].heading)
