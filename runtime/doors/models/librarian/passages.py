"""From the lines that a search gave to the passages worth quoting, the best first."""

import re
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from tenure.runtime.doors.models.librarian.words import Finder

NEAR_LINES = 4
"""Lines of one file that lie this near belong to one passage."""

_HIT = re.compile(r"^(?P<path>.+?):(?P<line>\d+): ?(?P<text>.*)$")
_ROW = re.compile(r"^ *(?P<line>\d+)\t(?P<text>.*)$")

Lines = dict[str, dict[int, str]]
"""By path and line number."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    first: int
    """The first line with a key word."""
    last: int
    words: frozenset[str]
    """The key words that stand in it."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.first}"


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """What the words of a question count."""

    asked: tuple[str, ...]
    """The words of this question."""
    before: tuple[str, ...] = ()
    """The words of the question before, where this one goes on from it."""

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.asked, *(word for word in self.before if word not in self.asked))


def hits_in(result: str) -> Lines:
    """The lines in a result of `search`: `path:line: text`."""
    found: Lines = defaultdict(dict)
    for row in result.split("\n"):
        if not row.startswith("[") and (m := _HIT.match(row)):
            found[m["path"]][int(m["line"])] = m["text"]
    return found


def rows_in(result: str) -> dict[int, str]:
    """The lines in a result of `read`: number, tab, text."""
    return {int(m["line"]): m["text"] for row in result.split("\n") if (m := _ROW.match(row))}


def notes_in(result: str) -> tuple[str, ...]:
    """What a tool says about its own result, in brackets at the end."""
    rows = result.split("\n")
    return tuple(row[1:-1] for row in rows if row.startswith("[") and row.endswith("]"))


def merged(results: Iterable[Lines]) -> Lines:
    lines: Lines = defaultdict(dict)
    for result in results:
        for path, rows in result.items():
            lines[path].update(rows)
    return lines


def ranked(lines: Lines, weights: Weights, cited: frozenset[str]) -> tuple[Passage, ...]:
    """The passages with key words, the best first.

    A passage counts by how many of the asked words stand in it or in its path, then
    by those of the question before, then by how many stand in its path, then
    anywhere in its file, then by how rare its words are; equal ones in the order of
    path and line.

    Args:
        cited: places (`path:line`) that were told before and are left out.
    """
    finder = Finder(weights.words)
    matches = {
        path: {
            line: words for line, text in sorted(rows.items()) if (words := finder.words_in(text))
        }
        for path, rows in lines.items()
    }
    spread = {
        word: sum(word in words for rows in matches.values() for words in rows.values())
        for word in weights.words
    }
    passages = [
        passage
        for path in sorted(matches)
        for passage in _passages(path, matches[path])
        if passage.place not in cited
    ]
    if weights.asked:
        # A place that answers only the question before is no answer to this one.
        passages = [p for p in passages if p.words & set(weights.asked)]

    def rank(passage: Passage) -> tuple[float, ...]:
        in_file = frozenset().union(*matches[passage.path].values())
        in_path = finder.words_in(passage.path)
        rarity = sum(1 / spread[word] for word in passage.words)
        return (
            -len((passage.words | in_path) & set(weights.asked)),
            -len(passage.words & set(weights.words)),
            -len(in_path),
            -len(in_file),
            -rarity,
        )

    return tuple(sorted(passages, key=rank))


def _passages(path: str, rows: dict[int, frozenset[str]]) -> Iterable[Passage]:
    group: list[int] = []
    for line in sorted(rows):
        if group and line - group[-1] > NEAR_LINES:
            yield _passage(path, group, rows)
            group = []
        group.append(line)
    if group:
        yield _passage(path, group, rows)


def _passage(path: str, group: list[int], rows: dict[int, frozenset[str]]) -> Passage:
    words = frozenset().union(*(rows[line] for line in group))
    return Passage(path=path, first=group[0], last=group[-1], words=words)
