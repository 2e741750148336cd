"""Search in an index: words and meaning, fused, grouped by note, with lines and snippets."""

from collections.abc import Awaitable, Callable, Sequence

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.base import same_model
from tenure.runtime.doors.search.embedders import (
    KEYWORD,
    Embedder,
    EmbedderMissing,
    EmbeddingFailed,
    unpacked,
    vectors_of,
)
from tenure.runtime.doors.search.fusing import Scored, fused
from tenure.runtime.doors.search.keyword import keeps_phrases
from tenure.runtime.doors.search.querying import BadQuery, Query, parse_query
from tenure.runtime.doors.search.reading import Generation, Generations, IndexAbsent
from tenure.runtime.doors.search.results import NoteHit, Passage, SearchFailed, SearchResults
from tenure.runtime.doors.search.segments import SegmentDamaged
from tenure.runtime.doors.search.words import words_of

NEIGHBOURS = 128
"""Chunks that are taken by meaning before they are grouped."""
PASSAGES_MAX = 3
"""Of one note."""
SNIPPET_CHARS = 200
LIMIT_MAX = 100

ForModel = Callable[[IndexModel], Awaitable[Embedder]]
"""The embedder that made an index.  Raises `EmbedderMissing`."""


class Searching:
    """Searches the last complete generation of one root.  It takes no lock and writes nothing."""

    def __init__(self, leaves: Leaves, root: str, for_model: ForModel) -> None:
        self._leaves = leaves
        self._generations = Generations(leaves.files, root)
        self._for_model = for_model

    async def search(
        self, text: str, *, limit: int = 10, offset: int = 0
    ) -> SearchResults | SearchFailed:
        """Notes that answer, best first.

        Args:
            text: words, "phrases", -words, `path:` and `tag:` filters.
            limit: notes, 100 at most.
            offset: how many of the best to leave out.
        """
        try:
            query = parse_query(text)
            generation = await self._leaves.workers.run(self._generations.current)
        except (BadQuery, IndexAbsent) as why:
            return SearchFailed(query=text, reason=str(why))
        vector, note = await self._vector(query, generation)
        notes = tuple(each for each in (generation.problem, note) if each)
        window = (max(0, offset), min(max(1, limit), LIMIT_MAX))
        try:
            hits = await self._leaves.workers.run(_find, generation, query, vector, window)
        except (OSError, SegmentDamaged) as why:
            return SearchFailed(query=text, reason=f"{why}; run `tenure index build`")
        return SearchResults(
            query=text,
            generation=generation.manifest.generation,
            committed_ms=generation.manifest.committed_ms,
            hits=tuple(hits),
            notes=notes,
        )

    async def _vector(
        self, query: Query, generation: Generation
    ) -> tuple[tuple[float, ...] | None, str]:
        """The query as a vector of the index's own model; None, and why, where there is none."""
        model = generation.model
        if model.id == KEYWORD.id or not query.text:
            return None, ""
        if generation.vectors is None:
            return None, f"searched by words only: {generation.unsearchable}"
        try:
            embedder = await self._for_model(model)
            known, vectors = await vectors_of(embedder, [query.text])
        except (EmbedderMissing, EmbeddingFailed) as why:
            return None, f"searched by words only: {why}"
        if not same_model(known, model):
            return None, (
                f"searched by words only: {known.id} gives {known.dimensions} numbers now, "
                f"and the index has {model.dimensions}"
            )
        return unpacked(vectors[0]), ""


def _find(
    generation: Generation,
    query: Query,
    vector: Sequence[float] | None,
    window: tuple[int, int],
) -> list[NoteHit]:
    scored = _scored(generation, query, vector)
    names = generation.names
    by_note: dict[int, list[tuple[float, Scored]]] = {}
    lifts: dict[int, float] = {}
    for each in scored:
        for stands in generation.standing.get(each.row, ()):
            number = stands.document
            if not generation.passes(number, query):
                continue
            if number not in lifts:
                lifts[number] = names.lift(number, query)
            by_note.setdefault(number, []).append((each.score + lifts[number], each))
    order = sorted(
        by_note.items(), key=lambda item: (-item[1][0][0], generation.documents[item[0]].path)
    )
    offset, limit = window
    return [_note_hit(generation, query, *each) for each in order[offset : offset + limit]]


def _scored(generation: Generation, query: Query, vector: Sequence[float] | None) -> list[Scored]:
    allowed = generation.allowed(query)
    if not query.words and vector is None:
        return [Scored(row, 0.0, 0.0, 0.0) for row in generation.standing if allowed(row)]
    words = {hit.row: (hit.coverage, hit.rank) for hit in generation.keyword.find(query, allowed)}
    for row in generation.names.rows(query):
        if allowed(row):
            words.setdefault(row, (0.0, 0.0))
    if vector is None or generation.vectors is None:
        return _strict(generation, query, fused({}, words, by_meaning=False))
    table = generation.vectors
    filtered = bool(query.folders or query.tags)
    rows = [row for row in generation.standing if allowed(row)] if filtered else []
    mask = table.mask(rows) if filtered else generation.mask
    cosines = dict(table.nearest(vector, NEIGHBOURS, mask))
    missing = [row for row in words if row not in cosines]
    if missing:
        cosines |= dict(zip(missing, table.products(vector, missing), strict=True))
    return _strict(generation, query, fused(cosines, words, by_meaning=True))


def _strict(generation: Generation, query: Query, scored: list[Scored]) -> list[Scored]:
    """Phrases and excluded words hold for what was found by meaning, too."""
    if not query.phrases and not query.without:
        return scored
    return [
        each for each in scored if keeps_phrases(query, words_of(generation.keyword.text(each.row)))
    ]


def _note_hit(
    generation: Generation, query: Query, number: int, found: list[tuple[float, Scored]]
) -> NoteHit:
    document = generation.documents[number]
    passages = []
    for score, each in found[:PASSAGES_MAX]:
        for stands in generation.standing[each.row]:
            if stands.document == number:
                text = generation.keyword.text(each.row)
                place = (stands.first, stands.last)
                passages.append(_passage(text, query, score, each, place))
                break
    return NoteHit(
        path=document.path,
        title=document.title,
        tags=document.tags,
        score=round(found[0][0], 4),
        passages=tuple(passages),
    )


def _passage(
    text: str, query: Query, score: float, found: Scored, place: tuple[int, int]
) -> Passage:
    heading, _, body = text.partition("\n")
    lines = body.split("\n")
    wanted = set(query.words)
    ranked = [
        (len(wanted.intersection(words_of(line))), -number)
        for number, line in enumerate(lines)
        if line.strip()
    ]
    at = -max(ranked)[1] if ranked else 0
    by = [name for name, value in (("words", found.coverage), ("meaning", found.cosine)) if value]
    return Passage(
        first=place[0],
        last=place[1],
        heading=heading,
        text=body,
        snippet=_snippet(lines[at], wanted),
        line=place[0] + at,
        score=round(score, 4),
        by=tuple(by),
    )


def _snippet(line: str, wanted: set[str]) -> str:
    line = " ".join(line.split())
    if len(line) <= SNIPPET_CHARS:
        return line
    at = 0
    for piece in line.split(" "):
        if not wanted.isdisjoint(words_of(piece)):
            break
        at += len(piece) + 1
    first = max(0, min(at, len(line)) - SNIPPET_CHARS // 3)
    last = first + SNIPPET_CHARS
    return f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"
