"""Where each session lies, and where else its entries may be when somebody wanted it so."""

import os.path
from typing import Any, ClassVar

from tenure.messages.base import Effect, Message
from tenure.messages.session import SessionChanged
from tenure.messages.session_ops import SessionForked, Vacuum
from tenure.messages.tokens import SessionId
from tenure.messages.transcripts import (
    AlterTranscript,
    ChangeStored,
    Discard,
    DiscardAll,
    RewriteWith,
)
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.checkers.base import Checker
from tenure.runtime.testing.checkers.content import content_of


class Paths(Checker):
    """Where each session lies; files that something else changed are nobody's business."""

    invariants: ClassVar[tuple[str, ...]] = ()
    roles: ClassVar[tuple[str, ...]] = ("session",)

    def __init__(self) -> None:
        super().__init__()
        self.paths: dict[SessionId, str] = {}
        self.foreign: set[str] = set()
        self._sources: dict[SessionId, SessionId] = {}
        self._discarded: set[SessionId] = set()
        self._vacuumed: set[SessionId] = set()
        self._all_discarded = False

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        for event in step.events:
            if isinstance(event, SessionChanged):
                self.paths[event.token.session_id] = event.path
        for _, reply in step.replies:
            if isinstance(reply, SessionForked):
                self._sources[reply.session_id] = reply.source

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        match effect:
            case ChangeStored(change=Discard(session_id=session_id)):
                self._discarded.add(session_id)
            case ChangeStored(change=DiscardAll()):
                self._all_discarded = True
            case ChangeStored(change=RewriteWith(session_id=session_id, rewrite=Vacuum())):
                self._vacuumed.add(session_id)
            case AlterTranscript(token=token, change=Vacuum()):
                self._vacuumed.add(token.session_id)
            case _:
                pass

    def edited(self, path: str) -> None:
        self.foreign.add(path)

    def ours(self) -> dict[SessionId, str]:
        return {each: path for each, path in self.paths.items() if path not in self.foreign}

    def may_speak_of(self, session: SessionId) -> set[SessionId]:
        """A session, and those that it is a copy of: its entries may name them."""
        family = {session}
        while session in self._sources and self._sources[session] not in family:
            session = self._sources[session]
            family.add(session)
        return family

    def kept(self, session: SessionId, path: str) -> bytes:
        """Its file; and the trash, or the backup, where somebody asked for that."""
        found = [content_of(self.disk, path) or b""]
        name = os.path.basename(path)
        discarded = self._all_discarded or session in self._discarded
        for each in self.disk.paths():
            in_trash = discarded and "/trash/" in each and name in each
            backup = session in self._vacuumed and name in each and ".bak" in each
            if in_trash or backup:
                found.append(content_of(self.disk, each) or b"")
        return b"".join(found)
