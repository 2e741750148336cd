"""The commands of the IndexWriterActor."""

from tenure.messages.base import Command
from tenure.messages.index import (
    CancelIndex,
    CloseIndexView,
    CollectIndexGarbage,
    GetIndexEstimate,
    GetIndexStatus,
    PauseIndex,
    ResumeIndex,
    StartIndex,
)

TAKEN: tuple[type[Command], ...] = (
    StartIndex,
    PauseIndex,
    ResumeIndex,
    CancelIndex,
    CloseIndexView,
    CollectIndexGarbage,
    GetIndexStatus,
    GetIndexEstimate,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
