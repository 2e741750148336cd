"""The commands of the McpAuthActor."""

from tenure.messages.base import Command
from tenure.messages.mcp_auth import (
    CancelSignIn,
    ForgetServer,
    GetAuthStatus,
    ObtainAccess,
    ReconcileCredentials,
    RenewAccess,
    SignInServer,
    SignOutServer,
)

TAKEN: tuple[type[Command], ...] = (
    ObtainAccess,
    RenewAccess,
    SignInServer,
    CancelSignIn,
    SignOutServer,
    ForgetServer,
    GetAuthStatus,
    ReconcileCredentials,
)

BETWEEN_OWNERS: tuple[type[Command], ...] = ()
"""These only owners send each other: from outside they would go round a check."""
