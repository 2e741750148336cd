"""IndexWriterActor: the one writer of a semantic index, with a lease that it takes itself.

    Idle -> Claiming -> Scanning -> Storing <-> Embedding     a batch after the other
    Storing -> Paused -> Storing                              between two batches
    Storing -> Committing -> Releasing -> Idle                the new generation is served
    Idle -> Sweeping -> Idle                                  what no index names is removed

ARCHITECTURE.md, section IndexWriterActor.
"""

from msgspec.structs import replace

from tenure.actors.index_writer_run import (
    abandon,
    begin,
    begun_run,
    busy,
    cancel_run,
    embed_or_commit,
    finish,
    release,
)
from tenure.actors.index_writer_state import (
    Beginning,
    Claiming,
    Committing,
    Embedding,
    Idle,
    Lease,
    Paused,
    Releasing,
    Scanning,
    State,
    Storing,
    Sweeping,
)
from tenure.messages.base import Message
from tenure.messages.bus import OwnerStarted, Unhandled
from tenure.messages.index import (
    CancelIndex,
    CloseIndexView,
    CollectIndexGarbage,
    GetIndexEstimate,
    GetIndexStatus,
    IndexBusy,
    IndexChanged,
    IndexCollected,
    IndexEstimate,
    IndexNotClaimed,
    IndexNotStarted,
    IndexProgressShown,
    IndexRunOther,
    IndexUnreadable,
    IndexViewClosed,
    PauseIndex,
    ResumeIndex,
    StartIndex,
)
from tenure.messages.index_effects import (
    ChunksEmbedded,
    ChunksNotEmbedded,
    ChunksNotStored,
    ChunksStored,
    ClaimIndex,
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
    IndexStatusNotRead,
    IndexStatusRead,
    IndexSwept,
    NoteScanFailed,
    NotesScanned,
    ReadIndexStatus,
    ScanNotes,
    StoreChunks,
    SweepIndex,
)
from tenure.messages.index_work import (
    IndexRunId,
    RunActive,
    RunCancelled,
    RunFailed,
    ViewName,
)
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken


def index_writer_step(state: State, message: Message, taken: Taken) -> Step[State]:
    """Decide one message."""
    match message:
        case OwnerStarted():
            return Step[State](state)
        case StartIndex():
            return on_start(state, message, taken)
        case PauseIndex(run_id=run_id):
            return on_pause(state, run_id, taken)
        case ResumeIndex(run_id=run_id):
            return on_resume(state, run_id, taken)
        case CancelIndex(run_id=run_id):
            return on_cancel(state, run_id, taken)
        case CloseIndexView(view=view):
            return on_close_view(state, view, taken)
        case CollectIndexGarbage():
            return on_collect(state, taken)
        case GetIndexStatus():
            return Step[State](state).do(ReadIndexStatus(asker=taken.asker))
        case GetIndexEstimate(scope=scope):
            return Step[State](state).do(EstimateIndex(asker=taken.asker, scope=scope))
        case _:
            return on_outcome(state, message, taken)


def on_outcome(state: State, message: Message, taken: Taken) -> Step[State]:
    """How an effect went.  One of a run that is over changes nothing."""
    match message:
        case IndexClaimed():
            return on_claimed(state, message)
        case IndexClaimHeld() | IndexClaimFailed():
            return on_not_claimed(state, message)
        case NotesScanned():
            return on_scanned(state, message)
        case NoteScanFailed(reason=reason):
            return on_not_scanned(state, message.run_id, reason)
        case ChunksEmbedded():
            return on_embedded(state, message)
        case ChunksNotEmbedded(reason=reason):
            return on_not_embedded(state, message.run_id, reason)
        case ChunksStored():
            return on_stored(state, message.run_id)
        case ChunksNotStored(reason=reason):
            return on_not_stored(state, message.run_id, reason)
        case IndexCommitted() | IndexNotCommitted():
            return on_commit_ended(state, message)
        case IndexReleased():
            return finish(state, message.run_id)
        case IndexSwept() | IndexNotSwept():
            return on_swept(state, message)
        case _:
            return on_looked(state, message, taken)


def on_looked(state: State, message: Message, taken: Taken) -> Step[State]:
    """Answers to queries: what lies on the disk, and over it what this owner knows itself."""
    step = Step[State](state)
    match message:
        case IndexStatusRead(asker=asker, status=status):
            run = begun_run(state)
            if run is not None:
                paused = isinstance(state, Paused)
                active = RunActive(progress=run.progress, paused=paused, holder=run.lease.holder)
                status = replace(status, run_id=run.run_id, run=active)
            return step.answer(_asker(asker), status)
        case IndexEstimated(asker=asker, work=work):
            return step.answer(_asker(asker), IndexEstimate(work=work))
        case IndexStatusNotRead(asker=asker, reason=reason):
            return step.answer(_asker(asker), IndexUnreadable(reason=reason))
        case IndexNotEstimated(asker=asker, reason=reason):
            return step.answer(_asker(asker), IndexUnreadable(reason=reason))
        case _:
            return step.answer(taken.asker, Unhandled(message=type(message).__name__))


# --- commands ------------------------------------------------------------------------------


def on_start(state: State, command: StartIndex, taken: Taken) -> Step[State]:
    """INDEX-1: one run at a time, and the lease is taken by the writer itself."""
    if not isinstance(state, Idle):  # guard: INDEX-1
        return Step[State](state).answer(taken.asker, busy(state))
    run_id = IndexRunId(taken.id(0))
    claiming = Claiming(Beginning(run_id, command, taken.asker))
    return Step[State](claiming).do(ClaimIndex(run_id=run_id))


def on_pause(state: State, run_id: IndexRunId, taken: Taken) -> Step[State]:
    match state:
        case Embedding(run) | Storing(run) if run.run_id == run_id and run.wish != "cancel":
            changed = replace(state, run=replace(run, wish="pause"))
            now = IndexChanged(run_id=run_id, now="pausing")
            return Step[State](changed).answer(taken.asker, now)
        case Paused(run) if run.run_id == run_id:
            now = IndexChanged(run_id=run_id, now="pausing")
            return Step[State](state).answer(taken.asker, now)
        case _:
            return _too_late(state, run_id, taken)


def on_resume(state: State, run_id: IndexRunId, taken: Taken) -> Step[State]:
    now = IndexChanged(run_id=run_id, now="running")
    match state:
        case Paused(run) if run.run_id == run_id:
            # Through the disk first: a lease that was lost meanwhile must not cost a batch.
            storing = Storing(replace(run, wish="go"))
            step = Step[State](storing).do(StoreChunks(run_id=run_id, progress=run.progress))
            return step.answer(taken.asker, now)
        case Embedding(run) | Storing(run) if run.run_id == run_id and run.wish != "cancel":
            changed = replace(state, run=replace(run, wish="go"))
            return Step[State](changed).answer(taken.asker, now)
        case _:
            return _too_late(state, run_id, taken)


def on_cancel(state: State, run_id: IndexRunId, taken: Taken) -> Step[State]:
    """S114: a live run ends cancelled; without one, that is said."""
    if _run_id(state) != run_id or isinstance(state, Committing | Releasing):
        return _too_late(state, run_id, taken)
    now = IndexChanged(run_id=run_id, now="cancelling")
    return cancel_run(state).answer(taken.asker, now)


def on_close_view(state: State, view: ViewName, taken: Taken) -> Step[State]:
    """INDEX-6: the run of this view ends; that of another view goes on."""
    closed = IndexViewClosed(view=view)
    if _view(state) != view:  # guard: INDEX-6
        return Step[State](state).answer(taken.asker, closed)
    return cancel_run(state).answer(taken.asker, closed)


def on_collect(state: State, taken: Taken) -> Step[State]:
    if not isinstance(state, Idle):
        return Step[State](state).answer(taken.asker, busy(state))
    return Step[State](Sweeping(taken.asker)).do(SweepIndex())


# --- outcomes ------------------------------------------------------------------------------


def on_claimed(state: State, outcome: IndexClaimed) -> Step[State]:
    match state:
        case Claiming(beginning, wish) if beginning.run_id == outcome.run_id:
            lease = Lease(outcome.path, outcome.holder)
            if wish == "cancel":
                return abandon(beginning, lease, IndexNotStarted(reason="it was cancelled"))
            scan = ScanNotes(run_id=beginning.run_id, scope=beginning.command.scope)
            return Step[State](Scanning(beginning, lease)).do(scan)
        case _:
            return Step[State](state)


def on_not_claimed(state: State, outcome: IndexClaimHeld | IndexClaimFailed) -> Step[State]:
    """INDEX-5: without a lease nothing is read, embedded or written."""
    if not isinstance(state, Claiming) or state.beginning.run_id != outcome.run_id:
        return Step[State](state)
    asker = state.beginning.asker
    if isinstance(outcome, IndexClaimHeld):
        held = IndexBusy(path=outcome.path, holder=outcome.holder)
        return Step[State](Idle()).answer(asker, held)
    refused = IndexNotClaimed(path=outcome.path, reason=outcome.reason)
    return Step[State](Idle()).answer(asker, refused)


def on_scanned(state: State, outcome: NotesScanned) -> Step[State]:
    if not isinstance(state, Scanning) or state.beginning.run_id != outcome.run_id:
        return Step[State](state)
    if state.wish == "cancel":
        cancelled = IndexNotStarted(reason="it was cancelled")
        return abandon(state.beginning, state.lease, cancelled)
    return begin(state.beginning, state.lease, outcome.work)


def on_not_scanned(state: State, run_id: IndexRunId, reason: str) -> Step[State]:
    if not isinstance(state, Scanning) or state.beginning.run_id != run_id:
        return Step[State](state)
    said = "it was cancelled" if state.wish == "cancel" else reason
    return abandon(state.beginning, state.lease, IndexNotStarted(reason=said))


def on_embedded(state: State, outcome: ChunksEmbedded) -> Step[State]:
    if not isinstance(state, Embedding) or state.run.run_id != outcome.run_id:
        return Step[State](state)
    run = replace(
        state.run,
        done=state.run.done + outcome.count,
        batch=state.run.batch + 1,
        embedding_ms=state.run.embedding_ms + outcome.took_ms,
    )
    store = StoreChunks(run_id=run.run_id, progress=run.progress)
    shown = IndexProgressShown(run_id=run.run_id, progress=run.progress)
    return Step[State](Storing(run)).emit(shown).do(store)


def on_not_embedded(state: State, run_id: IndexRunId, reason: str) -> Step[State]:
    if not isinstance(state, Embedding) or state.run.run_id != run_id:
        return Step[State](state)
    run = state.run
    if run.wish == "cancel":
        return release(run, RunCancelled(done=run.done, total=run.work.to_embed))
    return release(run, RunFailed(reason=reason, done=run.done, total=run.work.to_embed))


def on_stored(state: State, run_id: IndexRunId) -> Step[State]:
    if not isinstance(state, Storing) or state.run.run_id != run_id:
        return Step[State](state)
    run = state.run
    if run.wish == "cancel":
        return release(run, RunCancelled(done=run.done, total=run.work.to_embed))
    if run.wish == "pause":
        return Step[State](Paused(run))
    return embed_or_commit(run)


def on_not_stored(state: State, run_id: IndexRunId, reason: str) -> Step[State]:
    """INDEX-2: a lost lease, or a full disk, ends the run before the next replacement."""
    if not isinstance(state, Storing) or state.run.run_id != run_id:
        return Step[State](state)
    run = state.run
    return release(run, RunFailed(reason=reason, done=run.done, total=run.work.to_embed))


def on_commit_ended(state: State, outcome: IndexCommitted | IndexNotCommitted) -> Step[State]:
    if not isinstance(state, Committing) or state.run.run_id != outcome.run_id:
        return Step[State](state)
    run = state.run
    if isinstance(outcome, IndexCommitted):
        return release(run, outcome.result)
    return release(run, RunFailed(reason=outcome.reason, done=run.done, total=run.work.to_embed))


def on_swept(state: State, outcome: IndexSwept | IndexNotSwept) -> Step[State]:
    if not isinstance(state, Sweeping):
        return Step[State](state)
    step = Step[State](Idle())
    if isinstance(outcome, IndexSwept):
        swept = IndexCollected(files=outcome.files, bytes=outcome.bytes)
        return step.answer(state.asker, swept)
    if outcome.holder is not None:
        held = IndexBusy(path=outcome.reason, holder=outcome.holder)
        return step.answer(state.asker, held)
    return step.answer(state.asker, IndexUnreadable(reason=outcome.reason))


# --- pure helpers --------------------------------------------------------------------------


def _too_late(state: State, asked: IndexRunId, taken: Taken) -> Step[State]:
    running = _run_id(state)
    step = Step[State](state)
    if running == asked and isinstance(state, Committing | Releasing):
        return step.answer(taken.asker, IndexChanged(run_id=asked, now="committing"))
    return step.answer(taken.asker, IndexRunOther(asked=asked, running=running))


def _run_id(state: State) -> IndexRunId:
    match state:
        case Claiming(beginning) | Scanning(beginning):
            return beginning.run_id
        case Embedding(run) | Storing(run) | Paused(run) | Committing(run):
            return run.run_id
        case Releasing(run_id):
            return run_id
        case Idle() | Sweeping():
            return IndexRunId("")


def _view(state: State) -> ViewName | None:
    """Whose run could still be cancelled."""
    match state:
        case Claiming(beginning) | Scanning(beginning):
            return beginning.command.view
        case Embedding(run) | Storing(run) | Paused(run):
            return run.view
        case Committing() | Releasing() | Idle() | Sweeping():
            return None


def _asker(asker: int | None) -> AskId | None:
    return None if asker is None else AskId(asker)


class IndexWriterActor(Owner):
    step = staticmethod(index_writer_step)
    first = Idle
