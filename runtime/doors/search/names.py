"""The words of titles and paths: a note is often asked for by its name."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.runtime.doors.search.layout import Document
from tenure.runtime.doors.search.querying import Query
from tenure.runtime.doors.search.words import words_of

LIFT = 0.12
"""What a name adds that has every word of the query."""
SHARE_MIN = 0.5
"""Of the query: below this, a name says nothing."""
NAMED_MAX = 32


class NameIndex:
    """The words of all names of a generation.

    Args:
        first_rows: of each document that has a chunk, the row of its first one.
    """

    def __init__(self, documents: Sequence[Document], first_rows: Mapping[int, int]) -> None:
        self._first_rows = first_rows
        self._words = [
            frozenset(words_of(f"{each.title} {each.path.rpartition('.')[0] or each.path}"))
            for each in documents
        ]
        self._notes: dict[str, list[int]] = {}
        for number, words in enumerate(self._words):
            for word in words:
                self._notes.setdefault(word, []).append(number)

    def lift(self, number: int, query: Query) -> float:
        """What a note's name adds to its score."""
        if not query.words:
            return 0.0
        share = len(self._words[number].intersection(query.words)) / len(query.words)
        return LIFT * share if share >= SHARE_MIN else 0.0

    def rows(self, query: Query) -> Iterator[int]:
        """The first chunks of the notes whose names have most of the query."""
        counts: dict[int, int] = {}
        for word in query.words:
            notes = self._notes.get(word, ())
            if len(notes) > len(self._words) // 5 + NAMED_MAX:
                continue  # a word of a great many names
            for number in notes:
                counts[number] = counts.get(number, 0) + 1
        enough = SHARE_MIN * len(query.words)
        named = sorted((-count, number) for number, count in counts.items() if count >= enough)
        for _, number in named[:NAMED_MAX]:
            if number in self._first_rows:
                yield self._first_rows[number]
