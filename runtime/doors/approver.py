"""The door to whoever approves: the host's own callable, asked beside everything else."""

from collections.abc import Awaitable, Callable

from tenure.messages.approval import (
    Allow,
    ApprovalRequest,
    AskUser,
    Choice,
    Deny,
    Stop,
    UserAnswered,
    UserNotAsked,
)
from tenure.runtime.doors.context import Context

Approve = Callable[[ApprovalRequest], Awaitable[Choice]]
"""`async (ApprovalRequest) -> Allow | Deny | Stop`.  Cancelled when the request closes."""


class Approver:
    """Asks the callable that the embedder gave; without one a request waits for the bus."""

    def __init__(self, approve: Approve | None) -> None:
        self._approve = approve

    async def ask(self, effect: AskUser, context: Context) -> UserAnswered | UserNotAsked:
        request_id = effect.request.request_id
        if self._approve is None:
            return UserNotAsked(request_id=request_id, reason="this host has no approver")
        choice = await self._approve(effect.request)
        if not isinstance(choice, Allow | Deny | Stop):
            given = type(choice).__name__
            raise TypeError(f"the approver gave {given}; it must give Allow, Deny or Stop")
        return UserAnswered(request_id=request_id, choice=choice)
