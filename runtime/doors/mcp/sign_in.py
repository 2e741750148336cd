"""The sign-in door: from a server's address to durable tokens, by way of the user's browser.

    discovery -> callback -> registration -> browser -> waiting -> token -> saving

The address that the user opens holds the state of this sign-in; it goes to the
screen that began it and into no message, log or trace.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.mcp_auth import McpServer, Signed, SignInStage
from tenure.messages.mcp_auth_effects import (
    AuthorizeServer,
    ServerAuthorized,
    ServerNotAuthorized,
    ServerProgressed,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.mcp.callbacks import CameBack, NotOurs, PortTaken, Receiver
from tenure.runtime.doors.mcp.credential_file import CredentialRecord
from tenure.runtime.doors.mcp.credentials import Credentials, Gained
from tenure.runtime.doors.mcp.discovery import Discovered, discover
from tenure.runtime.doors.mcp.fetching import FetchFailed, Fetching
from tenure.runtime.doors.mcp.refreshing import why
from tenure.runtime.doors.mcp.registration import KnownClient, can_register, client_for
from tenure.runtime.doors.mcp.token_requests import ClientIdentity, NewTokens
from tenure.runtime.doors.mcp.urls import with_query

WAIT_S_MAX = 300.0
"""How long the user has."""
PASTES_MAX = 5
SCOPES_MAX = 64


class SignInScreen(Protocol):
    """How the user sees a sign-in."""

    async def show(self, url: str) -> None:
        """Have the user open this address.  It is secret: it must not be written anywhere."""
        ...

    async def pasted(self, problem: str) -> str:
        """The address that the browser ended at, from a user whose browser is elsewhere.

        It waits for ever where nothing can be pasted; then only the browser of
        this machine can answer.

        Args:
            problem: what was wrong with the last one; empty at first.
        """
        ...


class SignInWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in needs that no message may hold."""

    screen: SignInScreen
    client_secret: str = ""
    """Of a client that was registered by hand."""


class SignInFailed(Exception):
    """It came to nothing; the text is for people."""


class SignIns:
    """Carries out `AuthorizeServer`."""

    def __init__(self, leaves: Leaves, credentials: Credentials) -> None:
        self._leaves = leaves
        self._credentials = credentials
        self._fetching = Fetching(leaves.web)
        self._wishes: dict[str, SignInWish] = {}

    @asynccontextmanager
    async def wished(self, sign_in_id: str, wish: SignInWish) -> AsyncIterator[None]:
        """While this lasts, the sign-in of this name has its screen."""
        self._wishes[sign_in_id] = wish
        try:
            yield
        finally:
            del self._wishes[sign_in_id]

    async def authorize(self, effect: AuthorizeServer, context: Context) -> Outcome:
        """The whole sign-in."""
        server_id, sign_in_id = effect.server.server_id, effect.sign_in_id
        stages: list[SignInStage] = ["discovery"]

        def at(stage: SignInStage) -> None:
            stages.append(stage)
            context.progress(
                ServerProgressed(server_id=server_id, sign_in_id=sign_in_id, stage=stage)
            )

        try:
            signed = await self._sign_in(effect, _Progress(at))
        except (SignInFailed, FetchFailed, OSError, ValueError) as error:
            return ServerNotAuthorized(
                server_id=server_id, sign_in_id=sign_in_id, stage=stages[-1], reason=why(error)
            )
        return ServerAuthorized(server_id=server_id, sign_in_id=sign_in_id, credential=signed)

    async def _sign_in(self, effect: AuthorizeServer, progress: "_Progress") -> Signed:
        wish = self._wishes.get(effect.sign_in_id)
        if wish is None:
            raise SignInFailed("who began this sign-in has gone")
        progress.at("discovery")
        found = await discover(self._fetching, effect.server)
        earlier = await self._leaves.workers.run(self._credentials.client_of, effect.server)
        entropy = self._leaves.entropy
        receiver = Receiver(self._leaves.loopback, entropy.fresh() + entropy.fresh())
        try:
            progress.at("callback")
            await receiver.listen(_ports(effect.server, found, earlier))
            attempt = await self._prepare(effect, wish, found, earlier, receiver, progress)
            signed = await self._with_user(attempt, wish.screen, receiver, progress)
        except BaseException as error:
            receiver.end(400, "The sign-in failed. Look at the program that asked for it.")
            if isinstance(error, PortTaken):
                raise SignInFailed(f"{error.args[0]}; end it, or choose another port") from None
            raise
        finally:
            await receiver.close()
        return signed

    async def _prepare(
        self,
        effect: AuthorizeServer,
        wish: SignInWish,
        found: Discovered,
        earlier: tuple[CredentialRecord, str] | None,
        receiver: Receiver,
        progress: "_Progress",
    ) -> "_Attempt":
        progress.at("registration")
        scopes = _scopes(effect.scopes, found, earlier)
        client = await client_for(
            self._fetching,
            effect.server,
            found,
            redirect_uri=receiver.redirect_uri,
            scopes=scopes,
            given_secret=wish.client_secret,
            earlier=earlier,
        )
        entropy = self._leaves.entropy
        verifier = "".join(entropy.fresh() for _ in range(4))
        return _Attempt(
            server=effect.server,
            found=found,
            client=client,
            scopes=scopes,
            verifier=verifier,
            redirect_uri=receiver.redirect_uri,
        )

    async def _with_user(
        self,
        attempt: "_Attempt",
        screen: SignInScreen,
        receiver: Receiver,
        progress: "_Progress",
    ) -> Signed:
        progress.at("browser")
        await screen.show(_authorization_url(attempt, receiver.state))
        progress.at("waiting")
        came = await _answer(receiver, screen)
        _check(came, attempt.found)
        progress.at("token")
        # From here on it is done whole: the code can be used once.
        return await self._credentials.whole(self._redeem(attempt, came, receiver, progress))

    async def _redeem(
        self, attempt: "_Attempt", came: CameBack, receiver: Receiver, progress: "_Progress"
    ) -> Signed:
        sent_at_ms = self._leaves.clock.now_ms()
        client = attempt.client
        answer = await self._credentials.requests.exchange(
            attempt.found.endpoints.token,
            ClientIdentity(
                client_id=client.record.client_id,
                auth_method=client.record.auth_method,
                client_secret=client.secret,
            ),
            code=came.code,
            verifier=attempt.verifier,
            redirect_uri=attempt.redirect_uri,
            resource=attempt.found.resource,
        )
        if not isinstance(answer, NewTokens):
            raise SignInFailed(answer.reason)
        progress.at("saving")
        gained = Gained(
            endpoints=attempt.found.endpoints,
            client=client.record,
            client_secret=client.secret,
            resource=attempt.found.resource,
            requested=attempt.scopes,
            tokens=answer,
            sent_at_ms=sent_at_ms,
        )
        signed = await self._credentials.install(attempt.server, gained)
        receiver.end(200, "You are signed in. You can close this page.")
        return signed


class _Progress:
    """Says how far it is."""

    def __init__(self, at: "_At") -> None:
        self.at = at


class _At(Protocol):
    def __call__(self, stage: SignInStage, /) -> None: ...


class _Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What one sign-in is made with.  Secret: never in a message."""

    server: McpServer
    found: Discovered
    client: KnownClient
    scopes: tuple[str, ...]
    verifier: str
    redirect_uri: str


async def _answer(receiver: Receiver, screen: SignInScreen) -> CameBack:
    """What comes first: the browser's request, or what the user pastes."""
    pasting = asyncio.get_running_loop().create_task(_paste(receiver, screen))
    try:
        async with asyncio.timeout(WAIT_S_MAX):
            coming = asyncio.ensure_future(receiver.answer())
            await asyncio.wait({coming, pasting}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done() and pasting.done():
                pasting.result()  # raises where the screen failed
            return await coming
    except TimeoutError:
        raise SignInFailed(f"nobody signed in within {WAIT_S_MAX:g} s") from None
    finally:
        pasting.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await pasting


async def _paste(receiver: Receiver, screen: SignInScreen) -> None:
    problem = ""
    for _ in range(PASTES_MAX):
        address = (await screen.pasted(problem)).strip()
        try:
            return receiver.take(address)
        except NotOurs as refused:
            problem = str(refused)
    raise SignInFailed(problem)


def _check(came: CameBack, found: Discovered) -> None:
    """Before a code is redeemed: is it from the issuer that we asked (RFC 9207)?"""
    issuer = found.endpoints.issuer
    if came.issuer is not None and came.issuer != issuer:  # guard: AUTH-7
        raise SignInFailed("the answer comes from another authorization server")
    if came.issuer is None and found.iss_promised:
        raise SignInFailed("the answer does not say which authorization server it comes from")
    if came.error:
        raise SignInFailed(f"the authorization server says: {came.error}")


def _authorization_url(attempt: _Attempt, state: str) -> str:
    from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    query = prepare_grant_uri(
        "",
        client_id=attempt.client.record.client_id,
        response_type="code",
        redirect_uri=attempt.redirect_uri,
        scope=" ".join(attempt.scopes) or None,
        state=state,
        code_challenge=create_s256_code_challenge(attempt.verifier),
        code_challenge_method="S256",
        resource=attempt.found.resource,
    )
    return with_query(attempt.found.endpoints.authorization, urlsplit(query).query)


def _scopes(
    wished: tuple[str, ...], found: Discovered, earlier: tuple[CredentialRecord, str] | None
) -> tuple[str, ...]:
    """What the server asked for comes first; what was asked for before stays asked for."""
    kept: tuple[str, ...] = ()
    if earlier is not None and earlier[0].endpoints.issuer == found.endpoints.issuer:
        kept = (*earlier[0].requested, *earlier[0].pending)
    scopes = [*found.challenge_scopes, *wished, *kept]
    if not scopes:
        scopes = list(found.scopes_supported)
    if scopes and found.offline_access:
        scopes.append("offline_access")
    return tuple(dict.fromkeys(scopes))[:SCOPES_MAX]


def _ports(
    server: McpServer, found: Discovered, earlier: tuple[CredentialRecord, str] | None
) -> tuple[int, ...]:
    """Where to listen: as it is registered, else anywhere if another can be registered."""
    if server.callback_port:
        return (server.callback_port, 0) if can_register(server, found) else (server.callback_port,)
    registered = _port_of(earlier[0].client.redirect_uri) if earlier is not None else 0
    return (registered, 0) if registered else (0,)


def _port_of(redirect_uri: str) -> int:
    try:
        return urlsplit(redirect_uri).port or 0
    except ValueError:
        return 0
