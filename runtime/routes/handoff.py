"""The commands of the HandoffActor."""

from tenure.messages.base import Command
from tenure.messages.handoff import (
    AcknowledgeBrief,
    BuildBrief,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    SaveCheckpoint,
    SaveHandoff,
)

TAKEN: tuple[type[Command], ...] = (
    SaveHandoff,
    SaveCheckpoint,
    BuildBrief,
    AcknowledgeBrief,
    GetRecovery,
    GetHandoffs,
    GetHandoff,
    GetHandoffCheck,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
