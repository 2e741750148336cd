"""The commands of the ApprovalActor."""

from tenure.messages.approval import (
    AnswerApproval,
    DecideCall,
    EndSessionGrants,
    GetApprovals,
    NoteDecision,
    RevokeApprovals,
    RevokeSeatApprovals,
)
from tenure.messages.base import Command
from tenure.messages.checkpoints import RunUndo
from tenure.messages.questions import AnswerQuestion, GetQuestions, PutQuestion

TAKEN: tuple[type[Command], ...] = (
    DecideCall,
    NoteDecision,
    AnswerApproval,
    RevokeApprovals,
    RevokeSeatApprovals,
    EndSessionGrants,
    GetApprovals,
    PutQuestion,
    AnswerQuestion,
    GetQuestions,
    RunUndo,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = (
    DecideCall,
    NoteDecision,
    RevokeApprovals,
    RevokeSeatApprovals,
    EndSessionGrants,
    PutQuestion,
    RunUndo,
)
"""These only owners send each other: from outside they would go round a check."""
