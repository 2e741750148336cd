"""How the librarian says what it found."""

import re
from collections.abc import Iterable, Iterator

from tenure.runtime.doors.models.librarian.passages import Passage

QUOTE_LINES_MAX = 6
QUOTE_CHARS_MAX = 600
PIECE_WORDS = 3

SIGNED = "(I am the librarian, not a language model: I quote and do not interpret.)"

_PIECE = re.compile(rf"\s*(?:\S+\s*){{1,{PIECE_WORDS}}}")


def pieces_of(text: str) -> Iterator[str]:
    """The text in pieces of a few words; together they are the text."""
    rest = 0
    for m in _PIECE.finditer(text):
        rest = m.end()
        yield m[0]
    if rest < len(text):
        yield text[rest:]


def quote(passage: Passage, rows: dict[int, str]) -> str:
    """A passage with its place: the lines with key words, and the paragraph that goes on."""
    lines: list[str] = []
    chars = 0
    for number in range(passage.first, passage.first + QUOTE_LINES_MAX):
        text = rows.get(number)
        if text is None or (number > passage.last and _ends(text, lines)):
            break
        lines.append(text.rstrip())
        chars += len(text)
        if chars > QUOTE_CHARS_MAX:
            lines[-1] = lines[-1][: QUOTE_CHARS_MAX + len(text) - chars] + " …"
            break
    while lines and not lines[-1].strip():
        lines.pop()
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"{passage.place}\n{quoted}"


def _ends(text: str, before: list[str]) -> bool:
    """Whether a quote is over before this line: at a blank line or the next heading.

    Not right behind a heading, for what the heading announces comes then.
    """
    behind_heading = all(not line.strip() or line.lstrip().startswith("#") for line in before)
    if behind_heading:
        return text.lstrip().startswith("#")
    return not text.strip() or text.lstrip().startswith("#")


def listed(words: Iterable[str]) -> str:
    """Words as people list them."""
    return ", ".join(f"“{word}”" for word in words)


def cited_in(answers: Iterable[str]) -> frozenset[str]:
    """The places that earlier answers told: lines that are `path:number` and nothing else."""
    places = re.compile(r"^(\S.*:\d+)$", re.MULTILINE)
    return frozenset(place for answer in answers for place in places.findall(answer))
