"""The MCP servers of a host, as an embedder signs in to them."""

import asyncio

from tenure.messages.base import Command
from tenure.messages.mcp_auth import (
    AuthStatus,
    CancelSignIn,
    CredentialRemoved,
    CredentialsReconciled,
    ForgetServer,
    GetAuthStatus,
    McpServer,
    ReconcileCredentials,
    Signed,
    SignedIn,
    SignInServer,
    SignOutServer,
)
from tenure.runtime.doors.mcp.screens import BrowserScreen
from tenure.runtime.doors.mcp.sign_in import SignInScreen, SignInWish
from tenure.runtime.running import Running
from tenure.runtime.seat import AskHost, refused


class HostMcp:
    """Sign-ins of this user: they count in every workspace, and in every process."""

    def __init__(self, ask: AskHost, running: Running) -> None:
        self._ask = ask
        self._running = running

    async def login(
        self,
        server: McpServer,
        *,
        screen: SignInScreen | None = None,
        scopes: tuple[str, ...] = (),
        client_secret: str = "",
    ) -> Signed:
        """Sign in; a caller that is cancelled ends the sign-in.

        Args:
            screen: how the user sees it; by default his browser is opened.
            scopes: beside those that the server asks for.
            client_secret: of a client that was registered by hand, with `server.client_id`.

        Raises:
            Refused: `NotSignedIn` with what went wrong, or `SignInBusy`.
        """
        leaves = self._running.leaves
        sign_in_id = leaves.entropy.fresh()
        wish = SignInWish(
            screen=screen if screen is not None else BrowserScreen(leaves),
            client_secret=client_secret,
        )
        command = SignInServer(server=server, sign_in_id=sign_in_id, scopes=scopes)
        async with self._running.doors.sign_ins.wished(sign_in_id, wish):
            try:
                reply = await self._ask(command)
            except asyncio.CancelledError:
                await asyncio.shield(self._ask(CancelSignIn(sign_in_id=sign_in_id)))
                raise
        if isinstance(reply, SignedIn):
            return reply.credential
        raise refused(reply)

    async def logout(self, server: McpServer) -> CredentialRemoved:
        """Revoke and remove the tokens; who we are to the server is kept.

        Raises:
            Refused: `CredentialKept`; nothing was removed.
        """
        return await self._removed(SignOutServer(server=server))

    async def forget(self, server: McpServer) -> CredentialRemoved:
        """Remove everything that is kept for a server.  Raises as `logout`."""
        return await self._removed(ForgetServer(server=server))

    async def status(self) -> AuthStatus:
        """Every sign-in of this user."""
        reply = await self._ask(GetAuthStatus())
        if isinstance(reply, AuthStatus):
            return reply
        raise refused(reply)

    async def reconcile(
        self, servers: tuple[McpServer, ...], retained: tuple[McpServer, ...] = ()
    ) -> CredentialsReconciled:
        """Before servers are loaded: remove what this root does not use any more.

        Args:
            servers: those that are configured now.
            retained: those of backups that may come back.
        """
        reply = await self._ask(ReconcileCredentials(servers=servers, retained=retained))
        if isinstance(reply, CredentialsReconciled):
            return reply
        raise refused(reply)

    def bearer(self, server: McpServer, generation: int) -> str | None:
        """The access token that `AccessGranted` names; it belongs into one header only."""
        return self._running.doors.credentials.bearer(server, generation)

    async def _removed(self, command: Command) -> CredentialRemoved:
        reply = await self._ask(command)
        if isinstance(reply, CredentialRemoved):
            return reply
        raise refused(reply)
