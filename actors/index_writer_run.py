"""How a run of the IndexWriterActor begins, goes on, and ends."""

from msgspec.structs import replace

from tenure.actors.index_writer_state import (
    Beginning,
    Claiming,
    Committing,
    Embedding,
    Idle,
    Lease,
    Paused,
    Releasing,
    Run,
    Scanning,
    State,
    Storing,
    Sweeping,
)
from tenure.messages.base import Reply
from tenure.messages.index import (
    IndexBegun,
    IndexBusy,
    IndexEnded,
    IndexNeedsConsent,
    IndexStarted,
)
from tenure.messages.index_effects import CommitIndex, EmbedChunks, ReleaseIndex, StoreChunks
from tenure.messages.index_work import (
    IndexResult,
    IndexRunId,
    IndexWork,
    RunCancelled,
    RunRefused,
    RunSkipped,
)
from tenure.runtime.step import Step

LARGE_NOTES_MIN = 2_000
"""From so many changed notes on, a run is confirmed first."""


def begin(beginning: Beginning, lease: Lease, work: IndexWork) -> Step[State]:
    """The work is known: ask for consent where it is needed, else begin."""
    command = beginning.command
    if work.remote and work.to_embed and command.consent != "remote":
        return abandon(beginning, lease, IndexNeedsConsent(why="remote", work=work))
    if work.changed >= LARGE_NOTES_MIN and work.to_embed and command.large != "go":
        return abandon(beginning, lease, IndexNeedsConsent(why="large", work=work))
    run = Run(beginning.run_id, command.view, lease, work)
    begun = IndexBegun(run_id=run.run_id, view=run.view, work=work)
    if not work.notes and not work.removed:
        step = release(run, RunSkipped(reason="there is nothing in scope"))
    else:
        store = StoreChunks(run_id=run.run_id, progress=run.progress)
        step = Step[State](Storing(run)).do(store)
    started = IndexStarted(run_id=run.run_id, work=work)
    return step.answer(beginning.asker, started).emit(begun)


def embed_or_commit(run: Run) -> Step[State]:
    """The next batch, or the end."""
    if run.done < run.work.to_embed:
        embed = EmbedChunks(run_id=run.run_id, batch=run.batch)
        return Step[State](Embedding(run)).do(embed)
    return Step[State](Committing(run)).do(CommitIndex(run_id=run.run_id))


def cancel_run(state: State) -> Step[State]:
    """Have the run end between two batches; what is with the model is given up at once."""
    match state:
        case Claiming():
            return Step[State](replace(state, wish="cancel"))
        case Scanning(beginning):
            cancelled = Step[State](replace(state, wish="cancel"))
            return cancelled.cancel(f"ScanNotes/{beginning.run_id}")
        case Embedding(run):
            cancelled = Step[State](Embedding(replace(run, wish="cancel")))
            return cancelled.cancel(f"EmbedChunks/{run.run_id}")
        case Storing(run):
            return Step[State](Storing(replace(run, wish="cancel")))
        case Paused(run):
            return release(run, RunCancelled(done=run.done, total=run.work.to_embed))
        case Idle() | Committing() | Releasing() | Sweeping():
            return Step[State](state)


def abandon(beginning: Beginning, lease: Lease, reply: Reply) -> Step[State]:
    """Nothing was begun: let go first, then refuse, so that who tries again finds it free."""
    run_id, refused = beginning.run_id, RunRefused()
    releasing = Releasing(run_id, beginning.command.view, lease, refused, beginning.asker, (reply,))
    return Step[State](releasing).do(ReleaseIndex(run_id=run_id, result=refused))


def release(run: Run, result: IndexResult) -> Step[State]:
    releasing = Releasing(run.run_id, run.view, run.lease, result)
    return Step[State](releasing).do(ReleaseIndex(run_id=run.run_id, result=result))


def finish(state: State, run_id: IndexRunId) -> Step[State]:
    """The lease is let go: now the run is over."""
    if not isinstance(state, Releasing) or state.run_id != run_id:
        return Step[State](state)
    step = Step[State](Idle())
    for reply in state.reply:
        step = step.answer(state.asker, reply)
    if isinstance(state.result, RunRefused):
        return step
    return step.emit(IndexEnded(run_id=run_id, result=state.result))


def busy(state: State) -> IndexBusy:
    """Who starts while something is under way here is told who holds the lease."""
    match state:
        case Scanning(lease=lease) | Releasing(lease=lease):
            return IndexBusy(path=lease.path, holder=lease.holder)
        case Embedding(run) | Storing(run) | Paused(run) | Committing(run):
            return IndexBusy(path=run.lease.path, holder=run.lease.holder)
        case Idle() | Claiming() | Sweeping():
            return IndexBusy(path="the index", holder=None)


def begun_run(state: State) -> Run | None:
    """The run that is under way, as far as it has begun."""
    match state:
        case Embedding(run) | Storing(run) | Paused(run) | Committing(run):
            return run
        case _:
            return None
