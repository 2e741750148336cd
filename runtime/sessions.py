"""Looking at the sessions of a root.  Nothing here writes, and nothing takes a lock."""

from collections.abc import AsyncIterator
from typing import Literal

from tenure.messages.session import SessionNotFound
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import (
    Catalogue,
    EntryView,
    Exported,
    NothingToExport,
    SessionAmbiguous,
    SessionFound,
    SessionMatch,
    SessionSnapshot,
    SessionSummary,
    SessionTree,
    Verification,
    export_session,
    find_listed,
    read_session,
    search_sessions,
    tree_of,
    verify_session,
)
from tenure.runtime.following import follow


class Sessions:
    """The sessions of a root.  Reads only: it never writes, and takes no lock."""

    def __init__(self, leaves: Leaves, catalogue: Catalogue) -> None:
        self._leaves = leaves
        self._catalogue = catalogue

    async def list(self) -> tuple[SessionSummary, ...]:
        """The newest first."""
        return await self._leaves.workers.run(self._catalogue.sessions)

    async def search(
        self, text: str, scope: Literal["titles", "everything"] = "everything"
    ) -> tuple[SessionMatch, ...]:
        """The sessions that hold a text, whatever its case, the newest first.

        Args:
            scope: titles looks at names, first words and ids alone, and is quick;
                everything reads what was said in every session, too.
        """
        files = self._leaves.files
        return await self._leaves.workers.run(search_sessions, self._catalogue, files, text, scope)

    async def find(self, text: str) -> SessionFound | SessionAmbiguous | SessionNotFound:
        """By id, by the beginning of an id that only one session has, or by name."""
        return await self._leaves.workers.run(find_listed, self._leaves, self._catalogue, text)

    async def read(self, path: str) -> SessionSnapshot:
        """All entries of one session, with what is damaged marked."""
        return await self._leaves.workers.run(read_session, self._leaves, path)

    async def tree(self, path: str) -> SessionTree:
        """The branches of one session."""
        return tree_of(await self.read(path))

    async def export(
        self, path: str, form: Literal["markdown", "json"] = "markdown"
    ) -> Exported | NothingToExport:
        """The conversation of one session as a document; nothing is written."""
        snapshot = await self.read(path)
        return export_session(snapshot, form, self._leaves.clock.now_ms())

    async def verify(self, path: str) -> Verification:
        """Check one transcript from its bytes alone: lines, sums, chain, epochs, calls."""
        return await self._leaves.workers.run(verify_session, self._leaves, path)

    def follow(self, path: str, since: Literal["now", "start"] = "now") -> AsyncIterator[EntryView]:
        """The entries of one session as they are written, by whatever process; it does not end.

        A live writer's unfinished line is left until it is whole, and a file that
        takes the place of the old one is followed.

        Args:
            since: `start` gives what is there first.
        """
        return follow(self._leaves, path, since)
