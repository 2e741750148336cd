"""One run of the writer on the disk: from the lease to the new generation.

Everything here blocks and runs in a worker, one call at a time, except `next_batch` and
`take_vectors`, which only move what is in memory.
"""

from collections.abc import Iterator, Sequence

import msgspec

from tenure.messages.index_work import (
    IndexModel,
    IndexProgress,
    IndexResult,
    IndexRunId,
    IndexScope,
    IndexWork,
    RunActive,
    RunComplete,
)
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.base import Base, Place, load_base
from tenure.runtime.doors.search.committing import IndexFolder
from tenure.runtime.doors.search.embedders import Embedder
from tenure.runtime.doors.search.layout import (
    Document,
    IndexLayout,
    Manifest,
    NamedFile,
    RunNote,
    digest_name,
)
from tenure.runtime.doors.search.leases import HeldLease
from tenure.runtime.doors.search.merging import merged
from tenure.runtime.doors.search.scanning import UNREAD_SHOWN_MAX, Scan, scan_notes
from tenure.runtime.doors.search.segments import Row, named_segment, segment_bytes

FLUSH_ROWS = 1_024
"""So many chunks are embedded before they are made durable: what a crash costs at most."""


class Building:
    """A run that has the lease."""

    def __init__(
        self, leaves: Leaves, layout: IndexLayout, lease: HeldLease, run_id: IndexRunId
    ) -> None:
        self.run_id = run_id
        self.lease = lease
        self.folder = IndexFolder(leaves, layout, lease)
        self._leaves = leaves
        self._layout = layout
        self._embedder: Embedder
        self._model: IndexModel
        self._manifest: Manifest | None = None
        self._base = Base()
        self._scan: Scan
        self._pending: list[tuple[bytes, str]] = []
        self._next = 0
        self._rows: list[Row] = []
        """Embedded, and not durable yet."""
        self._new: list[NamedFile] = []
        self._noted = False
        self._served_backup = False

    @property
    def embedder(self) -> Embedder:
        return self._embedder

    def scan(self, scope: IndexScope, embedder: Embedder) -> IndexWork:
        """Find out what is to do.  Raises `NewerIndex`, `NotAScope`, `LeaseLost`, `OSError`."""
        self.folder.confirm_lease()
        self.folder.prepare()
        settled = self.folder.settle()
        files = self._leaves.files
        self._embedder, self._manifest = embedder, settled.base
        self._served_backup = bool(settled.recovered)
        self._base = load_base(files, self._layout, settled.base, embedder.model)
        self._model = self._base.model or embedder.model
        self._scan = look(self._leaves, self._layout, scope, self._base)
        self._pending = list(self._scan.texts.items())
        self._new = list(self._base.salvaged)
        recovered = (*settled.recovered, *self._base.problems)
        return work_of(self._scan, self._model, embedder, recovered)

    def next_batch(self) -> Sequence[str]:
        """The texts that are to be embedded next."""
        end = self._next + self._embedder.batch_max
        return [text for _, text in self._pending[self._next : end]]

    def take_vectors(self, model: IndexModel, vectors: Sequence[bytes]) -> None:
        """The vectors of the last `next_batch`.  Raises `ValueError`: of another length."""
        if self._model.dimensions not in (0, model.dimensions):
            raise ValueError(
                f"{model.id} gave vectors of {model.dimensions} numbers, and the index has "
                f"{self._model.dimensions}; it answers otherwise than before"
            )
        self._model = model
        batch = self._pending[self._next : self._next + len(vectors)]
        self._rows += [
            Row(digest, text, vector) for (digest, text), vector in zip(batch, vectors, strict=True)
        ]
        self._next += len(vectors)

    def store(self, progress: IndexProgress) -> None:
        """Make durable what is worth it, if the lease is still held.

        Raises:
            LeaseLost, OSError: what was embedded stays in memory only.
        """
        self.folder.confirm_lease()
        if len(self._rows) >= FLUSH_ROWS:
            self._flush()
        elif self._noted:
            return
        self.note(RunActive(progress=progress, holder=self.lease.holder))

    def note(self, state: RunActive | IndexResult) -> None:
        """Say on disk how far the run is.  Raises `LeaseLost`, `OSError`."""
        named = () if isinstance(state, RunComplete) else tuple(self._new)
        note = RunNote(
            run_id=self.run_id,
            fence=self.lease.fence,
            model=self._model,
            state=state,
            segments=named,
        )
        self.folder.note(note)
        self._noted = True

    def keep(self) -> None:
        """What was embedded is kept for the next run.  Raises `LeaseLost`, `OSError`."""
        if self._rows:
            self._flush()

    def commit(self) -> RunComplete:
        """Have readers served the new generation.

        Raises:
            LeaseLost, NewerIndex, OSError: the last one is served as before.
        """
        self.keep()
        documents, used = self._documents()
        manifest = self._manifest
        same = manifest is not None and not self._served_backup and _same(manifest, used, documents)
        if manifest is None or not same:
            manifest = self._replace(documents, used)
        # Only the note tells a later run that nothing is left to take up: it comes first.
        result = RunComplete(
            generation=manifest.generation,
            notes=manifest.notes,
            chunks=manifest.chunks,
            embedded=len(self._pending),
            unread=len(self._scan.unread),
        )
        self.note(result)
        self.folder.sweep()
        return result

    def _replace(self, documents: list[Document], used: list[NamedFile]) -> Manifest:
        self.folder.confirm_lease()
        documents, used = merged(self._leaves, self._layout, self.folder, documents, used)
        data = msgspec.msgpack.encode(documents)
        named = NamedFile(file=digest_name("doc", data), bytes=len(data))
        self.folder.place(named, data)
        before = self._manifest.generation if self._manifest is not None else 0
        manifest = Manifest(
            generation=before + 1,
            fence=self.lease.fence,
            committed_ms=self._leaves.clock.now_ms(),
            model=self._model,
            notes=len(documents),
            chunks=sum(len(each.chunks) // 4 for each in documents),
            documents=named,
            segments=tuple(used),
        )
        self.folder.replace(manifest)
        return manifest

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        data = segment_bytes(rows, self._model)
        named = named_segment(data)
        try:
            self.folder.place(named, data)
        except BaseException:
            self._rows = rows
            raise
        self._new.append(named)
        self._base.segments[named.file] = named
        self._base.rows[named.file] = len(rows)
        for row, each in enumerate(rows):
            self._base.places.setdefault(each.digest, (named.file, row))

    def _documents(self) -> tuple[list[Document], list[NamedFile]]:
        """The notes with the places of their chunks, and the segments that these lie in."""
        before = self._manifest.segments if self._manifest is not None else ()
        order = [named.file for named in before if named.file in self._base.segments]
        order += [name for name in self._base.segments if name not in order]
        places = self._base.places
        wanted = {
            places[chunk.digest][0]
            for draft in self._scan.drafts.values()
            for chunk in draft.chunks
        }
        used = [name for name in order if name in wanted]
        number = {name: at for at, name in enumerate(used)}
        documents = []
        for path in sorted(self._scan.drafts):
            draft = self._scan.drafts[path]
            numbers = tuple(
                each
                for chunk in draft.chunks
                for each in _numbers(places[chunk.digest], number, chunk.first, chunk.last)
            )
            documents.append(
                Document(path, draft.digest, draft.mtime_ns, draft.title, draft.tags, numbers)
            )
        return documents, [self._base.segments[name] for name in used]


def look(leaves: Leaves, layout: IndexLayout, scope: IndexScope, base: Base) -> Scan:
    """Look at the notes.  Raises as `scan_notes`."""
    known = set(base.places)
    return scan_notes(leaves.files, layout.root, scope, base.drafts, known, anew=base.anew)


def work_of(
    scan: Scan, model: IndexModel, embedder: Embedder, recovered: tuple[str, ...]
) -> IndexWork:
    """What a run would have to do."""
    characters = sum(map(len, scan.texts.values()))
    return IndexWork(
        model=model,
        notes=scan.in_scope,
        changed=scan.changed,
        removed=scan.removed,
        chunks=scan.chunks,
        to_embed=len(scan.texts),
        characters=characters,
        tokens=-(-characters // 4),
        batches=-(-len(scan.texts) // embedder.batch_max),
        remote=embedder.remote,
        unread=scan.unread[:UNREAD_SHOWN_MAX],
        unread_count=len(scan.unread),
        recovered=recovered,
    )


def _numbers(place: Place, number: dict[str, int], first: int, last: int) -> Iterator[int]:
    yield from (number[place[0]], place[1], first, last)


def _same(manifest: Manifest, used: list[NamedFile], documents: list[Document]) -> bool:
    """Whether a generation with these notes is the one that is there."""
    if tuple(used) != manifest.segments:
        return False
    data = msgspec.msgpack.encode(documents)
    return digest_name("doc", data) == manifest.documents.file
