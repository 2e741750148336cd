"""What the McpAuthActor wants done outside, and how it went.  No message holds a token."""

from typing import ClassVar, Literal

from tenure.messages.base import Effect, Outcome
from tenure.messages.mcp_auth import Credential, McpServer, Signed, SignInStage
from tenure.messages.tokens import ServerId


class ReadCredential(Effect, frozen=True, kw_only=True):
    """What is known of a server's tokens now, whoever changed them."""

    concurrent: ClassVar[bool] = True

    server: McpServer

    def failed(self, reason: str) -> Outcome:
        return CredentialNotRead(server_id=self.server.server_id, reason=reason)


class CredentialRead(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    credential: Credential


class CredentialNotRead(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    reason: str


class RefreshCredential(Effect, frozen=True, kw_only=True):
    """Exchange the refresh token, unless another process has done so since.

    Lock, read again, adopt or persist the intent, send, persist, show.  The door
    does this in a task of its own, which ends although nobody waits for it.
    """

    concurrent: ClassVar[bool] = True

    server: McpServer
    generation: int
    """Of the tokens that are to be replaced."""

    def failed(self, reason: str) -> Outcome:
        return CredentialNotRefreshed(server_id=self.server.server_id, reason=reason)


class CredentialRefreshDone(Outcome, frozen=True, kw_only=True):
    """There are newer tokens, durably."""

    server_id: ServerId
    credential: Signed


class CredentialRefreshRefused(Outcome, frozen=True, kw_only=True):
    """The authorization server has spoken, or the one retry was used up."""

    server_id: ServerId
    reason: str


class CredentialNotRefreshed(Outcome, frozen=True, kw_only=True):
    """Nothing is known to have changed; it may be tried again."""

    server_id: ServerId
    reason: str


class NoteScopes(Effect, frozen=True, kw_only=True):
    """Keep the scopes that a server asked for until somebody signs in."""

    concurrent: ClassVar[bool] = True

    server: McpServer
    scopes: tuple[str, ...]

    def failed(self, reason: str) -> Outcome:
        return ScopesNotNoted(server_id=self.server.server_id, reason=reason)


class ScopesNoted(Outcome, frozen=True, kw_only=True):
    server_id: ServerId


class ScopesNotNoted(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    reason: str


class AuthorizeServer(Effect, frozen=True, kw_only=True):
    """The sign-in, from discovery to durable tokens.  A cancel ends it while the user is asked."""

    concurrent: ClassVar[bool] = True

    server: McpServer
    sign_in_id: str
    scopes: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"sign-in/{self.sign_in_id}"

    def failed(self, reason: str) -> Outcome:
        return ServerNotAuthorized(
            server_id=self.server.server_id,
            sign_in_id=self.sign_in_id,
            stage="discovery",
            reason=reason,
        )


class ServerProgressed(Outcome, frozen=True, kw_only=True):
    """How far a sign-in is; not its end."""

    server_id: ServerId
    sign_in_id: str
    stage: SignInStage


class ServerAuthorized(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    sign_in_id: str
    credential: Signed


class ServerNotAuthorized(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    sign_in_id: str
    stage: SignInStage
    reason: str


class RemoveCredential(Effect, frozen=True, kw_only=True):
    """Under the credential's claim: tell the authorization server, then remove."""

    concurrent: ClassVar[bool] = True

    server: McpServer
    what: Literal["tokens", "everything"]

    def failed(self, reason: str) -> Outcome:
        return CredentialNotGone(server_id=self.server.server_id, reason=reason)


class CredentialGone(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    revoked: Literal["revoked", "not_revoked", "nothing"]


class CredentialNotGone(Outcome, frozen=True, kw_only=True):
    server_id: ServerId
    reason: str


class ListCredentials(Effect, frozen=True, kw_only=True):
    """Every credential of this user."""

    concurrent: ClassVar[bool] = True

    asker: int | None

    def failed(self, reason: str) -> Outcome:
        return CredentialsListed(asker=self.asker, credentials=(), problems=(reason,))


class CredentialsListed(Outcome, frozen=True, kw_only=True):
    asker: int | None
    credentials: tuple[Credential, ...]
    problems: tuple[str, ...]


class SweepCredentials(Effect, frozen=True, kw_only=True):
    """Remove what this root does not use any more."""

    concurrent: ClassVar[bool] = True

    asker: int | None
    servers: tuple[McpServer, ...]
    retained: tuple[McpServer, ...]

    def failed(self, reason: str) -> Outcome:
        return CredentialsSwept(asker=self.asker, removed=(), problems=(reason,))


class CredentialsSwept(Outcome, frozen=True, kw_only=True):
    asker: int | None
    removed: tuple[ServerId, ...]
    problems: tuple[str, ...]
