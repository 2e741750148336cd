"""One complete generation, open: every file that it names is held before anything is served.

A file that vanished means that a later generation took its place: the manifest is read
again.  Once open, a generation stays readable whatever a writer removes.
"""

from collections.abc import Callable

import msgspec

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.search.base import read_documents
from tenure.runtime.doors.search.generation import LOOKS_MAX, generation_on_disk
from tenure.runtime.doors.search.keyword import KeywordIndex
from tenure.runtime.doors.search.layout import (
    Document,
    IndexLayout,
    Manifest,
    complete,
    read_manifest,
)
from tenure.runtime.doors.search.names import NameIndex
from tenure.runtime.doors.search.querying import Query
from tenure.runtime.doors.search.segments import OpenSegment, SegmentDamaged
from tenure.runtime.doors.search.vectors import NoNumpy, VectorTable


class IndexAbsent(Exception):
    """There is no index that can be read; the text says what to do."""


class Stands(msgspec.Struct, frozen=True):
    """Where a chunk stands: in which note, and in which lines."""

    document: int
    first: int
    last: int


class Generation:
    """An open generation.  Its methods block.

    Raises:
        FileNotFoundError: it was replaced meanwhile.
        SegmentDamaged, ValueError: a file of it is damaged.
    """

    def __init__(self, files: Files, layout: IndexLayout, manifest: Manifest, problem: str) -> None:
        self.manifest = manifest
        self.model: IndexModel = manifest.model
        self.problem = problem
        self.unsearchable = ""
        """Why there is no search by meaning; empty where there is, or where none is meant."""
        self.documents: list[Document] = read_documents(files, layout, manifest.documents)
        self._segments: list[OpenSegment] = []
        try:
            for named in manifest.segments:
                self._segments.append(OpenSegment(files, layout, named))
            self.keyword = KeywordIndex(self._segments)
            self.vectors = self._vectors()
        except BaseException:
            self.close()
            raise
        self.standing = self._standing()
        self.names = NameIndex(self.documents, self._first_rows())
        self.mask = self.vectors.mask(list(self.standing)) if self.vectors is not None else None
        """Of the rows that are in use."""

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def allowed(self, query: Query) -> Callable[[int], bool]:
        """Which rows belong to a note that passes the filters of a query."""
        if not query.folders and not query.tags:
            return self.standing.__contains__
        fits = [_fits(document, query) for document in self.documents]
        return lambda row: any(fits[each.document] for each in self.standing.get(row, ()))

    def passes(self, number: int, query: Query) -> bool:
        """Whether a note passes the filters of a query."""
        return _fits(self.documents[number], query)

    def _first_rows(self) -> dict[int, int]:
        first: dict[int, tuple[int, int]] = {}
        for row, stands in self.standing.items():
            for each in stands:
                known = first.get(each.document)
                if known is None or each.first < known[0]:
                    first[each.document] = (each.first, row)
        return {number: row for number, (_, row) in first.items()}

    def _vectors(self) -> VectorTable | None:
        if not self.model.dimensions:
            return None
        try:
            sections = [segment.section("vectors") for segment in self._segments]
            return VectorTable(sections, self.model.dimensions)
        except NoNumpy as missing:
            self.unsearchable = str(missing)
            return None

    def _standing(self) -> dict[int, tuple[Stands, ...]]:
        """Of every row that is in use, the notes that have it."""
        starts, at = [], 0
        for segment in self._segments:
            starts.append(at)
            at += segment.rows
        standing: dict[int, tuple[Stands, ...]] = {}
        for number, document in enumerate(self.documents):
            chunks = document.chunks
            for at in range(0, len(chunks), 4):
                segment_number, row, first, last = chunks[at : at + 4]
                if segment_number >= len(starts) or row >= self._segments[segment_number].rows:
                    raise SegmentDamaged(f"{document.path} names a chunk that is not there")
                place = starts[segment_number] + row
                stands = Stands(number, first, last)
                standing[place] = (*standing.get(place, ()), stands)
        return standing


def _fits(document: Document, query: Query) -> bool:
    path = document.path.lower()
    if query.folders and not any(
        path == folder or path.startswith(f"{folder}/") or f"/{folder}/" in f"/{path}"
        for folder in query.folders
    ):
        return False
    return set(query.tags) <= set(document.tags)


class Generations:
    """The generation that is served now, opened anew when there is another.  Blocks."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self.layout = IndexLayout(root)
        self._open: Generation | None = None
        self._mark: FileStat | None = None

    def current(self) -> Generation:
        """The last complete generation.

        Raises:
            IndexAbsent: there is none, or it is damaged.
        """
        mark = self._manifest_mark()
        if self._open is not None and mark == self._mark and not self._open.problem:
            return self._open
        opened = self._open_one()
        # The one before is not closed here: another thread may still search in it.
        self._open, self._mark = opened, mark
        return opened

    def _open_one(self) -> Generation:
        why = "it changes faster than it can be opened"
        for _ in range(LOOKS_MAX):
            found = generation_on_disk(self._files, self.layout)
            if found.manifest is None:
                raise IndexAbsent(found.problem or "there is no index; run `tenure index build`")
            try:
                return Generation(self._files, self.layout, found.manifest, found.problem)
            except FileNotFoundError:
                continue  # a later generation is there, and this one was swept
            except (SegmentDamaged, ValueError) as damaged:
                why = f"{damaged}; run `tenure index build`"
                return self._open_backup(found.manifest, why)
            except OSError as refused:
                why = refused.strerror or str(refused)
                break
        raise IndexAbsent(why)

    def _open_backup(self, damaged: Manifest, why: str) -> Generation:
        """The generation before one that turned out to be damaged."""
        files, layout = self._files, self.layout
        try:
            backup = complete(files, layout, read_manifest(files, layout.backup))
            if isinstance(backup, Manifest) and backup != damaged:
                return Generation(files, layout, backup, f"{why}; this is the one before")
        except (SegmentDamaged, ValueError, OSError):
            pass  # the first damage is the one to tell
        raise IndexAbsent(why)

    def _manifest_mark(self) -> FileStat | None:
        try:
            return self._files.stat(self.layout.manifest)
        except OSError:
            return None
