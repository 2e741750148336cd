"""The commands of the SettingsActor."""

from tenure.messages.base import Command
from tenure.messages.settings import (
    GetPolicy,
    GetSettings,
    RemoveToolPolicy,
    SetChangeRule,
    SetExpiry,
    SetMode,
    SetModel,
    SetToolPolicy,
    SetWorkingDirs,
)

TAKEN: tuple[type[Command], ...] = (
    GetSettings,
    GetPolicy,
    SetToolPolicy,
    RemoveToolPolicy,
    SetChangeRule,
    SetWorkingDirs,
    SetExpiry,
    SetMode,
    SetModel,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
