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
from tenure.messages.questions import (
    Answer,
    Declined,
    PutToUser,
    QuestionRequest,
    Said,
    UserNotReached,
    UserReplied,
)
from tenure.runtime.doors.context import Context

Approve = Callable[[ApprovalRequest], Awaitable[Choice]]
"""`async (ApprovalRequest) -> Allow | Deny | Stop`.  Cancelled when the request closes."""


ReplyTo = Callable[[QuestionRequest], Awaitable[Answer]]
"""`async (QuestionRequest) -> Said | Declined`.  Cancelled when the question closes."""


class Approver:
    """Asks the callable that the embedder gave; without one a request waits for the bus."""

    def __init__(self, approve: Approve | None, reply: ReplyTo | None = None) -> None:
        self._approve = approve
        self._reply = reply

    async def ask(self, effect: AskUser, context: Context) -> UserAnswered | UserNotAsked:
        request_id = effect.request.request_id
        if self._approve is None:
            return UserNotAsked(request_id=request_id, reason="this host has no approver")
        choice = await self._approve(effect.request)
        if not isinstance(choice, Allow | Deny | Stop):
            given = type(choice).__name__
            raise TypeError(f"the approver gave {given}; it must give Allow, Deny or Stop")
        return UserAnswered(request_id=request_id, choice=choice)

    async def put(self, effect: PutToUser, context: Context) -> UserReplied | UserNotReached:
        """A question of a tool."""
        request_id = effect.request.request_id
        if self._reply is None:
            return UserNotReached(request_id=request_id, reason="this host has nobody to ask")
        answer = await self._reply(effect.request)
        if not isinstance(answer, Said | Declined):
            given = type(answer).__name__
            raise TypeError(f"the answer is {given}; it must be Said or Declined")
        return UserReplied(request_id=request_id, answer=answer)
