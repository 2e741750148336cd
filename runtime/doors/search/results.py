"""What a search gives: notes with the passages that answer, lines and all."""

import msgspec


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """Some neighbouring lines of a note."""

    first: int
    """Line, from 1."""
    last: int
    heading: str
    text: str
    """The lines as they were indexed."""
    snippet: str
    """The line of it that answers best, cut to one line."""
    line: int
    """The number of that line."""
    score: float
    by: tuple[str, ...]
    """`words`, `meaning`: what found it."""


class NoteHit(msgspec.Struct, frozen=True, kw_only=True):
    """A note, with its best passages first."""

    path: str
    title: str
    tags: tuple[str, ...]
    score: float
    passages: tuple[Passage, ...]


class SearchResults(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """What was found, best first, in one complete generation."""

    query: str
    generation: int
    committed_ms: int
    hits: tuple[NoteHit, ...]
    notes: tuple[str, ...] = ()
    """What the reader should know: words only, the index before the last, ..."""


class SearchFailed(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Nothing could be searched."""

    query: str
    reason: str

    @property
    def remedy(self) -> str:
        """The sentence shown to people."""
        return f"cannot search: {self.reason}"
