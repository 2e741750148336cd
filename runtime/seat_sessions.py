"""What a seat can do with sessions besides opening them; part of the API of `Seat`."""

from abc import ABC, abstractmethod
from typing import TypeVar

from tenure.messages.base import Command, Refusal, Reply
from tenure.messages.bus import Unhandled
from tenure.messages.session import Appended
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    ForkSession,
    Position,
    Redact,
    RenameSession,
    RewindSession,
    RewriteSession,
    SessionDeleted,
    SessionForked,
    SessionRewound,
    SessionRewritten,
    SessionsCleared,
    SetLabel,
    Vacuum,
)
from tenure.messages.tokens import EntryId, SessionId, SessionToken
from tenure.runtime.errors import Refused

R = TypeVar("R", bound=Reply)


class SessionCommands(ABC):
    """Names, branches, copies and ends of sessions.

    Every method raises `Refused` with the reply inside where the answer is no:
    `SessionInUse`, `SessionNotFound`, `EntryNotFound`, `Stale`, ...
    """

    @property
    @abstractmethod
    def token(self) -> SessionToken:
        """The current session and epoch."""

    @abstractmethod
    async def ask(self, command: Command) -> Reply:
        """Ask the owner of this seat that takes this command."""

    async def rename(self, name: str, session_id: str | None = None) -> Appended:
        """Give the session a name, or another one by its id; empty takes the name away."""
        command = RenameSession(name=name, session_id=_named(session_id))
        return await self._asked(command, Appended)

    async def label(self, entry_id: str, label: str) -> Appended:
        """Mark an entry of the session; an empty label takes the mark away."""
        return await self._asked(SetLabel(entry_id=EntryId(entry_id), label=label), Appended)

    async def fork(
        self,
        entry_id: str | None = None,
        *,
        position: Position = "at",
        name: str = "",
        session_id: str | None = None,
    ) -> SessionForked:
        """A new session with a copy of the path to an entry; `open` it to go on there.

        Args:
            entry_id: None stands for the last one.
            position: `before` leaves the entry itself out, to say something else.
        """
        entry = None if entry_id is None else EntryId(entry_id)
        command = ForkSession(
            session_id=_named(session_id), entry_id=entry, position=position, name=name
        )
        return await self._asked(command, SessionForked)

    async def rewind(
        self,
        entry_id: str | None,
        *,
        position: Position = "at",
        token: SessionToken | None = None,
    ) -> SessionRewound:
        """Go on from an earlier entry; what came behind it stays in the file.

        Args:
            entry_id: None stands for the beginning.
            position: `before` leaves the entry itself out, to edit it and send it again.
        """
        entry = None if entry_id is None else EntryId(entry_id)
        command = RewindSession(entry_id=entry, position=position, token=token)
        return await self._asked(command, SessionRewound)

    async def delete(self, session_id: str | None = None) -> SessionDeleted:
        """Move a session to the trash: this seat's own, which gets a new one, or another."""
        target = self.token.session_id if session_id is None else SessionId(session_id)
        return await self._asked(DeleteSession(session_id=target), SessionDeleted)

    async def clear(self) -> SessionsCleared:
        """Move all sessions that nobody has open to the trash; the seat gets a new one."""
        return await self._asked(ClearSessions(), SessionsCleared)

    async def rewrite(
        self, rewrite: Redact | Vacuum, session_id: str | None = None
    ) -> SessionRewritten:
        """Take text out of a session for ever, or leave other branches out of its file."""
        command = RewriteSession(rewrite=rewrite, session_id=_named(session_id))
        return await self._asked(command, SessionRewritten)

    async def _asked(self, command: Command, kind: type[R]) -> R:
        reply = await self.ask(command)
        if isinstance(reply, kind):
            return reply
        raise refused(reply)


def _named(session_id: str | None) -> SessionId | None:
    return None if session_id is None else SessionId(session_id)


def refused(reply: Reply) -> Refused:
    """What an embedder gets where a Python caller expects an exception."""
    if isinstance(reply, Refusal):
        return Refused(reply)
    return Refused(Unhandled(message=type(reply).__name__))
