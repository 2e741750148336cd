"""The index of a root, as an embedder builds, watches and searches it.

async with Host.open("notes") as host:
    await host.index.build()
    found = await host.index.search("what did we decide about pricing?")
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal, TypeVar

from tenure.messages.base import Reply
from tenure.messages.bus import EventsMissed
from tenure.messages.index import (
    CancelIndex,
    CloseIndexView,
    CollectIndexGarbage,
    GetIndexEstimate,
    GetIndexStatus,
    IndexChanged,
    IndexCollected,
    IndexEnded,
    IndexEstimate,
    IndexProgressShown,
    IndexStarted,
    IndexStatus,
    PauseIndex,
    ResumeIndex,
    StartIndex,
)
from tenure.messages.index_work import (
    Everything,
    IndexProgress,
    IndexResult,
    IndexRunId,
    IndexScope,
    IndexWork,
    RunComplete,
    RunFailed,
    ViewName,
)
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.finding import Searching
from tenure.runtime.doors.search.results import SearchFailed, SearchResults
from tenure.runtime.doors.search.verifying import IndexReport, verify_index
from tenure.runtime.doors.search.watching import Watching
from tenure.runtime.events import Subscription
from tenure.runtime.seat import AskHost, refused

WATCH_EVERY_S = 2.0

Told = Callable[[IndexWork | IndexProgress], None]
"""Is told the work when a run begins, then how far it is."""
R = TypeVar("R", bound=Reply)


class HostIndex:
    """The index of one root.  Each has a view of its own: closing it ends its run only."""

    def __init__(
        self,
        ask: AskHost,
        subscribe: Callable[[], Subscription],
        listen: Callable[[], Awaitable[None]],
        leaves: Leaves,
        root: str,
        readers: Searching,
        view: str,
    ) -> None:
        self._ask = ask
        self._subscribe = subscribe
        self._listen = listen
        self._leaves = leaves
        self._root = root
        self._readers = readers
        self.view = ViewName(view)

    async def search(
        self, query: str, *, limit: int = 10, offset: int = 0
    ) -> SearchResults | SearchFailed:
        """Notes that answer, best first: by their words and by their meaning.

        Args:
            query: words, "phrases", -words, `path:FOLDER`, `tag:TAG`.
            limit: how many notes, 100 at most.
            offset: how many of the best to leave out.
        """
        return await self._readers.search(query, limit=limit, offset=offset)

    async def start(
        self,
        scope: IndexScope | None = None,
        *,
        consent: Literal["none", "remote"] = "none",
        large: Literal["ask", "go"] = "ask",
    ) -> IndexStarted:
        """Begin a run; its end is the event `IndexEnded`.

        Args:
            scope: which notes; by default all.
            consent: `remote` lets a provider of another machine see the notes.
            large: `go` begins a large run without asking.

        Raises:
            Refused: another writer has the lease (`IndexBusy`), the lease store is not
                available, somebody must agree first (`IndexNeedsConsent`), or the notes
                or the model cannot be used.
        """
        command = StartIndex(
            view=self.view, scope=scope or Everything(), consent=consent, large=large
        )
        await self._listen()  # another process may want to cancel it
        return await self._asked(self._ask(command), IndexStarted)

    async def build(
        self,
        scope: IndexScope | None = None,
        *,
        consent: Literal["none", "remote"] = "none",
        large: Literal["ask", "go"] = "ask",
        told: Told | None = None,
    ) -> IndexResult:
        """Begin a run and wait for its end.  A caller that is cancelled cancels the run.

        Raises:
            Refused: as `start`.
        """
        events = self._subscribe()
        try:
            started = await self.start(scope, consent=consent, large=large)
            if told is not None:
                told(started.work)
            try:
                return await self._ended(events, started.run_id, told)
            except BaseException:
                await self._ask(CancelIndex(run_id=started.run_id))
                raise
        finally:
            events.close()

    async def status(self) -> IndexStatus:
        """What readers get, and what a writer does, here or elsewhere."""
        return await self._asked(self._ask(GetIndexStatus()), IndexStatus)

    async def estimate(self, scope: IndexScope | None = None) -> IndexWork:
        """What a run would have to do.  Nothing is written."""
        command = GetIndexEstimate(scope=scope or Everything())
        return (await self._asked(self._ask(command), IndexEstimate)).work

    async def pause(self, run_id: str) -> IndexChanged:
        """Stop after the batch under way; the lease is kept."""
        command = PauseIndex(run_id=IndexRunId(run_id))
        return await self._asked(self._ask(command), IndexChanged)

    async def resume(self, run_id: str) -> IndexChanged:
        """Go on with a paused run."""
        command = ResumeIndex(run_id=IndexRunId(run_id))
        return await self._asked(self._ask(command), IndexChanged)

    async def cancel(self, run_id: str) -> IndexChanged:
        """End a run between two batches; what was embedded is kept for the next one."""
        command = CancelIndex(run_id=IndexRunId(run_id))
        return await self._asked(self._ask(command), IndexChanged)

    async def collect(self) -> IndexCollected:
        """Remove what neither the index nor its backup names."""
        return await self._asked(self._ask(CollectIndexGarbage()), IndexCollected)

    async def verify(self) -> IndexReport:
        """Read every file of the index and its backup, and say what is damaged."""
        return await self._leaves.workers.run(verify_index, self._leaves.files, self._root)

    async def watch(
        self, *, consent: Literal["none", "remote"] = "none", every_s: float = WATCH_EVERY_S
    ) -> AsyncIterator[IndexResult]:
        """Keep the index up to date until the iterator is closed; gives the end of each run.

        Raises:
            Refused: as `start`.
        """
        watching = Watching(self._leaves.files, self._root)
        while True:
            if await self._leaves.workers.run(watching.changed):
                result = await self.build(consent=consent, large="go")
                yield result
                if not isinstance(result, RunComplete):
                    watching.forget()
            await self._leaves.clock.sleep(every_s)

    async def close(self) -> None:
        """The view is gone: its run ends, and no other."""
        await self._ask(CloseIndexView(view=self.view))

    async def _ended(
        self, events: Subscription, run_id: IndexRunId, told: Told | None
    ) -> IndexResult:
        async for published in events:
            event = published.event
            match event:
                case IndexEnded(run_id=ended, result=result) if ended == run_id:
                    return result
                case IndexProgressShown(run_id=shown, progress=progress) if shown == run_id:
                    if told is not None:
                        told(progress)
                case EventsMissed():
                    result_now = await self._result_of(run_id)
                    if result_now is not None:
                        return result_now
                case _:
                    pass
        return RunFailed(reason="the host was closed; what was embedded is kept")

    async def _result_of(self, run_id: IndexRunId) -> IndexResult | None:
        status = await self.status()
        run = status.run
        if status.run_id == run_id and isinstance(run, IndexResult):
            return run
        return None

    async def _asked(self, asked: Awaitable[Reply], kind: type[R]) -> R:
        reply = await asked
        if isinstance(reply, kind):
            return reply
        raise refused(reply)
