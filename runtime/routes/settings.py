"""The commands of the SettingsActor."""

from tenure.messages.base import Command
from tenure.messages.settings import GetPolicy, GetSettings, SetMode, SetModel, SetToolPolicy

TAKEN: tuple[type[Command], ...] = (
    GetSettings,
    GetPolicy,
    SetToolPolicy,
    SetMode,
    SetModel,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
