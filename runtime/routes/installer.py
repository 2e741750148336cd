"""The commands of the InstallerActor."""

from tenure.messages.base import Command
from tenure.messages.install import (
    AllowServer,
    DisablePackage,
    EnablePackage,
    ForbidServer,
    GetPackages,
    InstallPackage,
    ReloadPackages,
    RemovePackage,
    RollBackPackage,
    SweepPackages,
    UpdatePackage,
    VerifyPackages,
)

TAKEN: tuple[type[Command], ...] = (
    InstallPackage,
    UpdatePackage,
    RollBackPackage,
    RemovePackage,
    EnablePackage,
    DisablePackage,
    AllowServer,
    ForbidServer,
    SweepPackages,
    ReloadPackages,
    GetPackages,
    VerifyPackages,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
