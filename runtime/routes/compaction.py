"""The commands of the CompactionActor."""

from tenure.messages.base import Command
from tenure.messages.compaction import (
    DropPass,
    DropPasses,
    GetCompaction,
    RunCompaction,
    StopCompaction,
)

TAKEN: tuple[type[Command], ...] = (
    RunCompaction,
    StopCompaction,
    DropPass,
    DropPasses,
    GetCompaction,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = (
    RunCompaction,
    DropPass,
    DropPasses,
)
"""These only owners send each other: from outside they would go round a check."""
