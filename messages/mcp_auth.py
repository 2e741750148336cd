"""The McpAuthActor's vocabulary: access to MCP servers that ask for a sign-in.

No message holds a token, a code, a verifier or a client's secret: messages are
written into traces.  A token is named by its server and its generation; who is
granted access takes it from the credentials door of the same process
(`runtime/doors/mcp/credentials.py`).
"""

from typing import ClassVar, Literal

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.tokens import ServerId

ACCESS_S_MAX = 120.0
"""How long who asks for access waits: for another process's refresh, then for our own."""


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server as its settings name it."""

    server_id: ServerId
    url: str
    """Its endpoint; https, or http on loopback."""
    client_id: str = ""
    """A client id that was registered by hand; empty: one is found or registered."""
    client_metadata_url: str = ""
    """Where this client's metadata document lies, for servers that take such a URL as id."""
    callback_port: int = 0
    """Of the address that the browser comes back to; 0: one that is free."""
    resource_on_refresh: Literal["send", "omit"] = "send"
    """Some servers refuse the parameter that they took at the sign-in."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """What a server said when it refused a request; see `runtime/doors/mcp/challenges.py`."""

    status: Literal[401, 403]
    error: str = ""
    scopes: tuple[str, ...] = ()
    resource_metadata: str = ""
    """A URL, as the server gave it; it is checked before it is used."""


class Signed(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """What is known of tokens that are there; not the tokens."""

    server_id: ServerId
    url: str
    generation: int
    """Counts every change of this server's tokens, in all processes of the user."""
    issuer: str
    resource: str
    requested: tuple[str, ...] = ()
    """The scopes that were asked for."""
    granted: tuple[str, ...] = ()
    expires_at_ms: int = 0
    """Wall clock; 0: the server did not say."""
    renewable: bool = False
    """Whether there is a refresh token."""
    pending: tuple[str, ...] = ()
    """Scopes that a server asked for and that no sign-in has asked for yet."""
    step_ups: int = 0
    """How often scopes were added since the first sign-in."""
    store: Literal["keyring", "file"] = "file"
    unanswered: int = 0
    """How often its refresh token was sent with no answer seen."""


class Unsigned(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """No tokens."""

    server_id: ServerId
    url: str
    pending: tuple[str, ...] = ()
    reason: str = "not signed in"


Credential = Signed | Unsigned

SignInStage = Literal[
    "discovery",
    "registration",
    "callback",
    "browser",
    "waiting",
    "token",
    "saving",
]


# --- access ------------------------------------------------------------------------------


class ObtainAccess(Command, frozen=True, kw_only=True):
    """Before a request: a token that is good for some time yet, refreshed where needed.

    Answered `AccessGranted`, `SignInNeeded` or `AccessUnavailable`.  Who stops
    waiting stops nothing: a refresh that began goes to its end.
    """

    ask_deadline_s: ClassVar[float | None] = ACCESS_S_MAX

    server: McpServer


class RenewAccess(Command, frozen=True, kw_only=True):
    """After a server refused a token with 401 or 403.  Answered as `ObtainAccess`.

    Ask once for each request, then give up: the token may be what the server does
    not want.
    """

    ask_deadline_s: ClassVar[float | None] = ACCESS_S_MAX

    server: McpServer
    generation: int
    """Of the token that was refused; a newer one is given at once."""
    challenge: Challenge


class AccessGranted(Reply, frozen=True, kw_only=True):
    """There is a token: `Credentials.bearer(server, generation)`."""

    server_id: ServerId
    generation: int
    resource: str
    expires_at_ms: int


class SignInNeeded(Refusal, frozen=True, kw_only=True):
    """Only the user can go on: `host.mcp.login`."""

    server_id: ServerId
    reason: str
    scopes: tuple[str, ...] = ()
    """What to ask for; empty: what the server says at the sign-in."""

    @property
    def remedy(self) -> str:
        return f"{self.server_id}: {self.reason}. Sign in with host.mcp.login"


class ScopesRefused(Refusal, frozen=True, kw_only=True):
    """The server asks for scopes that signing in again would not bring."""

    server_id: ServerId
    scopes: tuple[str, ...]

    @property
    def remedy(self) -> str:
        wanted = " ".join(self.scopes) or "more rights"
        return (
            f"{self.server_id} refuses this for want of {wanted}, which was asked for at the "
            "sign-in and not given; ask the server's operator for it"
        )


class AccessUnavailable(Refusal, frozen=True, kw_only=True):
    """No token now, and nothing is lost: try again later."""

    server_id: ServerId
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.server_id}: {self.reason}. The sign-in is kept; try again"


# --- sign-in -----------------------------------------------------------------------------


class SignInServer(Command, frozen=True, kw_only=True):
    """Sign in with a browser.  Answered at its end: `SignedIn` or a refusal."""

    ask_deadline_s: ClassVar[float | None] = None

    server: McpServer
    sign_in_id: str
    """Names this sign-in, and the screen that shows it, which the door knows by this name."""
    scopes: tuple[str, ...] = ()
    """Beside those that were asked for before and those that the server names."""


class CancelSignIn(Command, frozen=True, kw_only=True):
    """End a sign-in that waits for the user.  Answered `SignInStopping` or `NoSignIn`."""

    sign_in_id: str


class SignInStopping(Reply, frozen=True, kw_only=True):
    sign_in_id: str


class NoSignIn(Refusal, frozen=True, kw_only=True):
    sign_in_id: str

    @property
    def remedy(self) -> str:
        return "this sign-in is over"


class SignedIn(Reply, frozen=True, kw_only=True):
    credential: Signed


class SignInBusy(Refusal, frozen=True, kw_only=True):
    """This host is signing in to this server already."""

    server_id: ServerId
    sign_in_id: str

    @property
    def remedy(self) -> str:
        return f"{self.server_id}: a sign-in is under way; finish or cancel it"


class NotSignedIn(Refusal, frozen=True, kw_only=True):
    """The sign-in did not succeed; what was there before is as it was."""

    server_id: ServerId
    stage: SignInStage
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.server_id}: not signed in ({self.stage}): {self.reason}"


class SignOutServer(Command, frozen=True, kw_only=True):
    """Revoke and remove the tokens; the client's registration is kept.

    Answered `CredentialRemoved` or `CredentialKept`.
    """

    ask_deadline_s: ClassVar[float | None] = ACCESS_S_MAX

    server: McpServer


class ForgetServer(Command, frozen=True, kw_only=True):
    """Remove everything that is kept for a server.  Answered as `SignOutServer`."""

    ask_deadline_s: ClassVar[float | None] = ACCESS_S_MAX

    server: McpServer


class CredentialRemoved(Reply, frozen=True, kw_only=True):
    server_id: ServerId
    revoked: Literal["revoked", "not_revoked", "nothing"]
    """Whether the authorization server was told; `nothing`: there were no tokens."""


class CredentialKept(Refusal, frozen=True, kw_only=True):
    server_id: ServerId
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.server_id}: {self.reason}. Nothing was removed"


class GetAuthStatus(Query, frozen=True, kw_only=True):
    """Every credential of this user.  Answered `AuthStatus`."""


class AuthStatus(Reply, frozen=True, kw_only=True):
    credentials: tuple[Credential, ...]
    signing_in: tuple[ServerId, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read."""


class ReconcileCredentials(Command, frozen=True, kw_only=True):
    """Before servers are loaded: what this root does not use any more is removed.

    A server that moved to another URL finds no tokens, and its old ones go; so do
    those of servers that are gone, except where a retained backup names them and
    where another root uses them.  Answered `CredentialsReconciled`.
    """

    servers: tuple[McpServer, ...]
    """Those that are configured now."""
    retained: tuple[McpServer, ...] = ()
    """Those of backups that may come back."""


class CredentialsReconciled(Reply, frozen=True, kw_only=True):
    removed: tuple[ServerId, ...]
    problems: tuple[str, ...] = ()


# --- events ------------------------------------------------------------------------------


class SignInBegun(Event, frozen=True, kw_only=True):
    server_id: ServerId
    sign_in_id: str


class SignInProgressed(Event, frozen=True, kw_only=True):
    server_id: ServerId
    sign_in_id: str
    stage: SignInStage


class SignInEnded(Event, frozen=True, kw_only=True):
    server_id: ServerId
    sign_in_id: str
    status: Literal["signed_in", "failed", "owner_lost"]


class AccessRenewed(Event, frozen=True, kw_only=True):
    """There is a new token: refreshed here, or by another process."""

    server_id: ServerId
    generation: int


class AccessLost(Event, frozen=True, kw_only=True):
    """The tokens are of no use any more: the user has to sign in."""

    server_id: ServerId
    reason: str
