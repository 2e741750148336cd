"""The index door: carries out what the IndexWriterActor wants done on the disk."""

from collections.abc import Awaitable, Callable

from tenure.messages.base import Outcome
from tenure.messages.index import IndexStatus
from tenure.messages.index_effects import (
    ChunksEmbedded,
    ChunksNotEmbedded,
    ChunksNotStored,
    ChunksStored,
    ClaimIndex,
    CommitIndex,
    EmbedChunks,
    EstimateIndex,
    IndexClaimed,
    IndexClaimFailed,
    IndexClaimHeld,
    IndexCommitted,
    IndexEstimated,
    IndexNotCommitted,
    IndexNotEstimated,
    IndexNotSwept,
    IndexReleased,
    IndexStatusRead,
    IndexSwept,
    NoteScanFailed,
    NotesScanned,
    ReadIndexStatus,
    ReleaseIndex,
    ScanNotes,
    StoreChunks,
    SweepIndex,
)
from tenure.messages.index_work import (
    IndexRunId,
    IndexScope,
    IndexWork,
    NoRun,
    RunActive,
    RunFailed,
    RunRefused,
    RunState,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.base import load_base
from tenure.runtime.doors.search.building import Building, look, work_of
from tenure.runtime.doors.search.committing import IndexFolder, LeaseLost, NewerIndex
from tenure.runtime.doors.search.embedders import (
    Embedder,
    EmbedderMissing,
    EmbeddingFailed,
    vectors_of,
)
from tenure.runtime.doors.search.generation import generation_on_disk, served
from tenure.runtime.doors.search.layout import IndexLayout, RunNote, read_run
from tenure.runtime.doors.search.leases import LeaseBusy, Leases
from tenure.runtime.doors.search.scanning import NotAScope
from tenure.runtime.doors.search.segments import SegmentDamaged

ChooseNow = Callable[[], Awaitable[Embedder]]
"""The embedder that the settings name now.  Raises `EmbedderMissing`."""

INTERRUPTED = "it was interrupted; start it again, what was embedded is kept"

_TROUBLE = (OSError, LeaseLost, NewerIndex, NotAScope, EmbedderMissing, SegmentDamaged)


class Indexing:
    """The index of one root, as its one writer and whoever asks for its status use it."""

    def __init__(self, leaves: Leaves, root: str, leases: Leases, choose: ChooseNow) -> None:
        self._leaves = leaves
        self.layout = IndexLayout(root)
        self._leases = leases
        self._choose = choose
        self._building: Building | None = None

    # --- a run -----------------------------------------------------------------------------

    async def claim(self, effect: ClaimIndex, context: Context) -> Outcome:
        return await self._leaves.workers.run(self._claim, effect.run_id)

    async def scan(self, effect: ScanNotes, context: Context) -> Outcome:
        run_id = effect.run_id
        try:
            embedder = await self._choose()
            building = self._run(run_id)
            work = await self._leaves.workers.run(building.scan, effect.scope, embedder)
        except _TROUBLE as why:
            return NoteScanFailed(run_id=run_id, reason=said(why))
        return NotesScanned(run_id=run_id, work=work)

    async def embed(self, effect: EmbedChunks, context: Context) -> Outcome:
        run_id, clock = effect.run_id, self._leaves.clock
        begun_s = clock.monotonic_s()
        building = self._run(run_id)
        texts = building.next_batch()
        try:
            model, vectors = await vectors_of(building.embedder, texts)
            building.take_vectors(model, vectors)
        except (EmbedderMissing, EmbeddingFailed, ValueError) as why:
            return ChunksNotEmbedded(run_id=run_id, reason=said(why))
        took_ms = max(1, round((clock.monotonic_s() - begun_s) * 1000))
        return ChunksEmbedded(run_id=run_id, count=len(texts), took_ms=took_ms)

    async def store(self, effect: StoreChunks, context: Context) -> Outcome:
        run_id = effect.run_id
        try:
            building = self._run(run_id)
            await self._leaves.workers.run(building.store, effect.progress)
        except _TROUBLE as why:
            return ChunksNotStored(run_id=run_id, reason=said(why))
        return ChunksStored(run_id=run_id)

    async def commit(self, effect: CommitIndex, context: Context) -> Outcome:
        run_id = effect.run_id
        try:
            result = await self._leaves.workers.run(self._run(run_id).commit)
        except _TROUBLE as why:
            return IndexNotCommitted(run_id=run_id, reason=said(why))
        return IndexCommitted(run_id=run_id, result=result)

    async def release(self, effect: ReleaseIndex, context: Context) -> Outcome:
        problem = await self._leaves.workers.run(self._release, effect)
        return IndexReleased(run_id=effect.run_id, problem=problem)

    async def let_go(self, seat: str) -> None:
        """The owner ended or starts anew: its run is over, and its lease goes."""
        building, self._building = self._building, None
        if building is not None:
            await self._leaves.workers.run(building.lease.release)

    # --- looking ----------------------------------------------------------------------------

    async def status(self, effect: ReadIndexStatus, context: Context) -> Outcome:
        status = await self._leaves.workers.run(self._status)
        return IndexStatusRead(asker=effect.asker, status=status)

    async def estimate(self, effect: EstimateIndex, context: Context) -> Outcome:
        try:
            embedder = await self._choose()
            work = await self._leaves.workers.run(self._estimate, effect.scope, embedder)
        except _TROUBLE as why:
            return IndexNotEstimated(asker=effect.asker, reason=said(why))
        return IndexEstimated(asker=effect.asker, work=work)

    async def sweep(self, effect: SweepIndex, context: Context) -> Outcome:
        return await self._leaves.workers.run(self._sweep)

    # --- in a worker -------------------------------------------------------------------------

    def _claim(self, run_id: IndexRunId) -> Outcome:
        path = self.layout.folder
        try:
            lease = self._leases.take(self.layout.lease)
        except OSError as refused:
            return IndexClaimFailed(run_id=run_id, path=path, reason=said(refused))
        if isinstance(lease, LeaseBusy):  # guard: INDEX-1
            return IndexClaimHeld(run_id=run_id, path=path, holder=lease.holder)
        self._building = Building(self._leaves, self.layout, lease, run_id)
        return IndexClaimed(run_id=run_id, path=path, holder=lease.holder)

    def _run(self, run_id: IndexRunId) -> Building:
        building = self._building
        if building is None or building.run_id != run_id:
            raise LeaseLost("the run is over")
        return building

    def _release(self, effect: ReleaseIndex) -> str:
        building, self._building = self._building, None
        if building is None:
            return ""
        try:
            if not isinstance(effect.result, RunRefused):
                building.keep()
                building.note(effect.result)
            return ""
        except _TROUBLE as why:
            return said(why)
        finally:
            building.lease.release()

    def _status(self) -> IndexStatus:
        files, layout = self._leaves.files, self.layout
        note = read_run(files, layout)
        return IndexStatus(
            path=layout.folder,
            index=served(generation_on_disk(files, layout)),
            run_id=note.run_id if note is not None else IndexRunId(""),
            run=self._run_state(note),
        )

    def _run_state(self, note: RunNote | None) -> RunState:
        """INDEX-4: it runs only while its lease lives, whatever the note says."""
        if note is None:
            return NoRun()
        if not isinstance(note.state, RunActive):
            return note.state
        try:
            holder = self._leases.live(self.layout.lease)
        except OSError:
            holder = None
        mine = note.state.holder
        if holder is None or mine is None or holder.process != mine.process:  # guard: INDEX-4
            progress = note.state.progress
            return RunFailed(reason=INTERRUPTED, done=progress.done, total=progress.total)
        return note.state

    def _estimate(self, scope: IndexScope, embedder: Embedder) -> IndexWork:
        files, layout = self._leaves.files, self.layout
        found = generation_on_disk(files, layout)
        base = load_base(files, layout, found.manifest, embedder.model)
        scan = look(self._leaves, layout, scope, base)
        problems = (found.problem,) if found.problem else ()
        model = base.model or embedder.model
        return work_of(scan, model, embedder, (*problems, *base.problems))

    def _sweep(self) -> Outcome:
        try:
            lease = self._leases.take(self.layout.lease)
        except OSError as refused:
            return IndexNotSwept(reason=f"{self.layout.folder}: {said(refused)}")
        if isinstance(lease, LeaseBusy):
            return IndexNotSwept(reason=self.layout.folder, holder=lease.holder)
        try:
            folder = IndexFolder(self._leaves, self.layout, lease)
            folder.prepare()
            names, size = folder.sweep()
        except _TROUBLE as why:
            return IndexNotSwept(reason=said(why))
        finally:
            lease.release()
        return IndexSwept(files=names, bytes=size)


def said(why: BaseException) -> str:
    """An error in words for people."""
    if isinstance(why, OSError):
        where = f"{why.filename}: " if why.filename else ""
        return f"{where}{why.strerror or why}"
    return str(why)
