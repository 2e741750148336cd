"""The chunks in which the words of a query really stand, and how much of it they have."""

import math
import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from tenure.runtime.doors.search.querying import Query
from tenure.runtime.doors.search.segments import OpenSegment
from tenure.runtime.doors.search.words import is_unspaced, words_of

CANDIDATES = 64
"""Chunks whose text is looked at."""
COMMON_SHARE = 0.2
"""A word that stands in more of the chunks is left out, where rarer ones are asked for."""
QUERY_WORDS_MAX = 12
"""The rarest are looked up."""
STEM_CHARS_MIN = 4


class KeywordHit(msgspec.Struct, frozen=True):
    """A chunk with words of the query."""

    row: int
    """In the whole generation."""
    coverage: float
    """How much of the query stands there, from 0 to 1; rare words count for more."""
    rank: float
    """BM25, relative to the best: from 0 to 1."""


class KeywordIndex:
    """The keyword indexes of all segments of a generation."""

    def __init__(self, segments: Sequence[OpenSegment]) -> None:
        self._segments = segments
        self._databases: list[sqlite3.Connection] = []
        try:
            for segment in segments:
                self._databases.append(segment.word_index())
        except BaseException:
            self.close()
            raise
        self._starts: list[int] = []
        at = 0
        for segment in segments:
            self._starts.append(at)
            at += segment.rows
        self.rows = at

    def close(self) -> None:
        for database in self._databases:
            database.close()

    def find(self, query: Query, allowed: Callable[[int], bool]) -> list[KeywordHit]:
        """The best chunks, best first."""
        weights = self._weights(query.words)
        if not weights:
            return []
        found = self._candidates(list(weights), allowed)
        if not found:
            return []
        best = max(rank for _, rank in found) or 1.0
        whole = sum(weights.values())
        hits = []
        for row, rank in found:
            there = words_of(self.text(row))
            if not keeps_phrases(query, there):
                continue
            have = sum(weight for word, weight in weights.items() if _stands(word, there))
            hits.append(KeywordHit(row, have / whole, rank / best))
        return sorted(hits, key=lambda hit: (-hit.coverage * (1 + hit.rank), hit.row))

    def text(self, row: int) -> str:
        """The headings of a chunk, a newline, its text."""
        at = self._segment_of(row)
        return self._segments[at].text(row - self._starts[at])

    def _segment_of(self, row: int) -> int:
        at = len(self._starts) - 1
        while self._starts[at] > row:
            at -= 1
        return at

    def _weights(self, words: Sequence[str]) -> dict[str, float]:
        """How much each word counts: the rarer, the more.  A word that stands nowhere is looked
        for by its beginning, marked with a star, or counts as missing."""
        counts: dict[str, int] = {}
        for word in words:
            count = self._count(word)
            if not count and len(word) == 1 and is_unspaced(word):
                word = f"{word}*"  # one character of a script without spaces begins a pair
                count = self._count(word)
            elif not count and len(word) > STEM_CHARS_MIN and not is_unspaced(word):
                stem = f"{word[: max(STEM_CHARS_MIN, len(word) - 2)]}*"
                count = self._count(stem)
                word = stem if count else word
            counts[word] = count
        if not any(counts.values()):
            return {}
        common = COMMON_SHARE * self.rows
        rare = {word: count for word, count in counts.items() if count <= common}
        chosen = rare if any(rare.values()) else counts
        rarest = sorted(chosen.items(), key=lambda each: each[1])[:QUERY_WORDS_MAX]
        return {
            word: math.log(1 + (self.rows - count + 0.5) / (count + 0.5)) for word, count in rarest
        }

    def _count(self, word: str) -> int:
        """In how many chunks a word stands, or the words that begin like it do."""
        if word.endswith("*"):
            stem = word[:-1]
            asked = "SELECT coalesce(sum(doc), 0) FROM v WHERE term >= ? AND term < ?"
            values: tuple[str, ...] = (stem, f"{stem}\U0010ffff")
        else:
            asked, values = "SELECT coalesce(sum(doc), 0) FROM v WHERE term = ?", (word,)
        return sum(each.execute(asked, values).fetchone()[0] for each in self._databases)

    def _candidates(
        self, words: Sequence[str], allowed: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        asked = " OR ".join(_quoted(word) for word in words)
        found: list[tuple[int, float]] = []
        for start, database in zip(self._starts, self._databases, strict=True):
            rows = database.execute(
                "SELECT rowid, rank FROM f WHERE f MATCH ? ORDER BY rank", (asked,)
            )
            mine = 0
            for row, rank in rows:
                if allowed(start + row):
                    found.append((start + row, -rank))
                    mine += 1
                    if mine == CANDIDATES:
                        break
        return sorted(found, key=lambda each: -each[1])[:CANDIDATES]


def keeps_phrases(query: Query, there: Sequence[str]) -> bool:
    """Whether every phrase stands in a text, and nothing that must not."""
    if query.without and not set(query.without).isdisjoint(there):
        return False
    return all(_has_phrase(phrase, there) for phrase in query.phrases)


def _has_phrase(phrase: Sequence[str], there: Sequence[str]) -> bool:
    # The last character of a run without spaces stands alone at its end only.
    plain = [word for word in phrase if not (len(word) == 1 and is_unspaced(word))] or list(phrase)
    size = len(plain)
    return any(list(there[at : at + size]) == plain for at in range(len(there) - size + 1))


def _stands(word: str, there: Sequence[str]) -> bool:
    if word.endswith("*"):
        return any(each.startswith(word[:-1]) for each in there)
    return word in there


def _quoted(word: str) -> str:
    if word.endswith("*"):
        return f'"{word[:-1]}"*'
    return f'"{word}"'
