"""Small segments in one: an index that is kept up to date for months stays quick to open."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.committing import IndexFolder
from tenure.runtime.doors.search.layout import Document, IndexLayout, NamedFile
from tenure.runtime.doors.search.segments import OpenSegment, Row, named_segment, segment_bytes

SEGMENTS_MAX = 8
"""Beyond so many, the small ones are merged."""
SMALL_ROWS = 16_384
MERGED_ROWS_MAX = 32_768
DEAD_SHARE_MAX = 0.5
"""A segment with more rows that nobody needs is written anew without them."""


def merged(
    leaves: Leaves,
    layout: IndexLayout,
    folder: IndexFolder,
    documents: list[Document],
    segments: list[NamedFile],
) -> tuple[list[Document], list[NamedFile]]:
    """The same notes over fewer segments, where there are too many or too empty ones.

    Raises:
        LeaseLost, OSError, SegmentDamaged: nothing was replaced.
    """
    live = _live_rows(documents, len(segments))
    opened = [OpenSegment(leaves.files, layout, named) for named in segments]
    try:
        chosen = _chosen(opened, live)
        if not chosen:
            return documents, segments
        kept = [at for at in range(len(segments)) if at not in chosen]
        moved = {(at, row): (number, row) for number, at in enumerate(kept) for row in live[at]}
        result = [segments[at] for at in kept]
        for part in _parts(chosen, live):
            data = segment_bytes(list(_rows(opened, part)), _model(opened, part))
            named = named_segment(data)
            folder.place(named, data)
            moved |= {place: (len(result), row) for row, place in enumerate(part)}
            result.append(named)
    finally:
        for segment in opened:
            segment.close()
    return [_moved(document, moved) for document in documents], result


def _live_rows(documents: Sequence[Document], count: int) -> list[list[int]]:
    live: list[set[int]] = [set() for _ in range(count)]
    for document in documents:
        numbers = document.chunks
        for at in range(0, len(numbers), 4):
            live[numbers[at]].add(numbers[at + 1])
    return [sorted(rows) for rows in live]


def _chosen(opened: Sequence[OpenSegment], live: Sequence[Sequence[int]]) -> list[int]:
    small = [at for at, segment in enumerate(opened) if segment.rows < SMALL_ROWS]
    empty = [
        at
        for at, segment in enumerate(opened)
        if len(live[at]) < segment.rows * (1 - DEAD_SHARE_MAX)
    ]
    return sorted({*empty, *(small if len(opened) > SEGMENTS_MAX and len(small) > 1 else ())})


def _parts(chosen: Sequence[int], live: Sequence[Sequence[int]]) -> Iterator[list[tuple[int, int]]]:
    part: list[tuple[int, int]] = []
    for at in chosen:
        for row in live[at]:
            part.append((at, row))
            if len(part) == MERGED_ROWS_MAX:
                yield part
                part = []
    if part:
        yield part


def _rows(opened: Sequence[OpenSegment], part: Sequence[tuple[int, int]]) -> Iterator[Row]:
    for at, segment in enumerate(opened):
        wanted = [row for where, row in part if where == at]
        if wanted:
            yield from segment.read_rows(wanted)


def _model(opened: Sequence[OpenSegment], part: Sequence[tuple[int, int]]) -> IndexModel:
    return opened[part[0][0]].model


def _moved(document: Document, moved: dict[tuple[int, int], tuple[int, int]]) -> Document:
    numbers = list(document.chunks)
    for at in range(0, len(numbers), 4):
        numbers[at : at + 2] = moved[numbers[at], numbers[at + 1]]
    return replace(document, chunks=tuple(numbers))
