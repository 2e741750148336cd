"""What a seat can do about its tool calls: answer for them, and undo them; part of `Seat`."""

from abc import ABC, abstractmethod

from tenure.messages.approval import AnswerApproval, ApprovalsOpen, Choice, GetApprovals
from tenure.messages.approval import ApprovalRequest as Request
from tenure.messages.base import Command, Reply
from tenure.messages.checkpoints import ChangeUndone, UndoChange, UndoShown, WhenChanged
from tenure.messages.tokens import RequestId, SessionToken
from tenure.runtime.seat_sessions import refused


class ApprovalCommands(ABC):
    """Requests and their answers, and the way back."""

    @abstractmethod
    async def ask(self, command: Command) -> Reply:
        """Ask the owner of this seat that takes this command."""

    async def approvals(self) -> tuple[Request, ...]:
        """What waits for an answer."""
        reply = await self.ask(GetApprovals())
        if isinstance(reply, ApprovalsOpen):
            return reply.requests
        raise refused(reply)

    async def answer(self, request_id: RequestId, choice: Choice) -> Reply:
        """Answer one request: `Applied`, or `Superseded` or `Expired` where it is over."""
        return await self.ask(AnswerApproval(request_id=request_id, choice=choice))

    async def undo(
        self,
        checkpoint: str = "",
        *,
        when_changed: WhenChanged = "refuse",
        token: SessionToken | None = None,
    ) -> ChangeUndone:
        """Undo the last change to files that a tool of the session made.

        Args:
            checkpoint: refuse unless this is the last change; empty takes the last.
            when_changed: `overwrite` takes the older content back also where somebody
                changed the file since, or where nobody knows how the tool ended; what
                is there then is kept in `.tenure/checkpoints/`.

        Raises:
            Refused: nothing was changed (`NothingToUndo`, `ChangedSince`,
                `UndoUncertain`, `CannotUndo`, `Stale`, ...), or not all of it
                (`UndoFailed`); the change stays on the stack.
        """
        command = UndoChange(token=token, checkpoint=checkpoint, when_changed=when_changed)
        reply = await self.ask(command)
        if isinstance(reply, ChangeUndone):
            return reply
        raise refused(reply)

    async def undo_preview(self) -> UndoShown:
        """What `undo` would do now; nothing is changed.

        Raises:
            Refused: there is nothing to undo, or no way back.
        """
        reply = await self.ask(UndoChange(only_show="yes"))
        if isinstance(reply, UndoShown):
            return reply
        raise refused(reply)
