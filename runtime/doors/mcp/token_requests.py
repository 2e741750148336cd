"""Token requests: authlib writes them, and we say what the answer means.

An answer is one of four things, and the difference decides what becomes of a
refresh token: new tokens; a refusal, which is definite; a request that was never
sent; one whose answer nobody saw, after which the old token may be spent.
"""

import asyncio
import re
from typing import Any, Literal, NoReturn

import msgspec

from tenure.runtime.doors.mcp.challenges import scopes_in
from tenure.runtime.doors.mcp.fetching import (
    REQUEST_S_MAX,
    Answer,
    FetchFailed,
    TooLarge,
    answer_of,
    bounded,
    object_in,
    said,
)
from tenure.runtime.doors.mcp.urls import UrlRefused, checked, shown
from tenure.runtime.doors.web import Web

EXPIRES_S_MAX = 10 * 365 * 86_400
_ACCESS_TOKEN = re.compile(r"[\x21-\x7E]{1,16384}")
_REFRESH_TOKEN = re.compile(r"[\x20-\x7E]{1,16384}")
_ERROR_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

AuthMethod = Literal["none", "client_secret_basic", "client_secret_post"]


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """How we introduce ourselves to a token endpoint.  It holds a secret: never in a message."""

    client_id: str
    auth_method: AuthMethod = "none"
    client_secret: str = ""


class NewTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a token endpoint gave.  Secret: never in a message."""

    access_token: str
    refresh_token: str = ""
    """Empty: none was given, and the one that was sent stays."""
    expires_s: int = 0
    """0: the server did not say."""
    scopes: tuple[str, ...] = ()
    """Empty: those that were asked for."""


class TokenRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The server answered and gave no tokens."""

    status: int
    error: str
    """Its error code, `invalid_grant`; empty where there was none."""
    reason: str


class TokenUnsent(msgspec.Struct, frozen=True, kw_only=True):
    """The request did not reach the server: nothing has changed there."""

    reason: str


class TokenUnanswered(msgspec.Struct, frozen=True, kw_only=True):
    """The request may have been carried out, and nobody saw the answer."""

    reason: str


TokenAnswer = NewTokens | TokenRefused | TokenUnsent | TokenUnanswered


class _Seen(Exception):
    """Carries an answer past authlib's reading of it, which knows no bad ones."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("seen")
        self.answer = answer


class TokenRequests:
    """Every request for tokens of this host."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def refresh(
        self, endpoint: str, client: ClientIdentity, refresh_token: str, resource: str
    ) -> TokenAnswer:
        """Exchange a refresh token.

        Args:
            resource: empty: none is named.
        """
        extra = {"resource": resource} if resource else {}

        async def send(oauth: Any) -> None:
            await oauth.refresh_token(endpoint, refresh_token=refresh_token, **extra)

        return await self._ask(endpoint, client, send, resource)

    async def exchange(
        self,
        endpoint: str,
        client: ClientIdentity,
        *,
        code: str,
        verifier: str,
        redirect_uri: str,
        resource: str,
    ) -> TokenAnswer:
        """Exchange an authorization code, which can be used once."""

        async def send(oauth: Any) -> None:
            await oauth.fetch_token(
                endpoint,
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
                redirect_uri=redirect_uri,
                resource=resource,
            )

        return await self._ask(endpoint, client, send, resource)

    async def revoke(self, endpoint: str, client: ClientIdentity, token: str, hint: str) -> bool:
        """Whether the server says that it has revoked a token."""
        done: list[int] = []

        async def send(oauth: Any) -> None:
            answer = await oauth.revoke_token(endpoint, token=token, token_type_hint=hint)
            done.append(answer.status_code)

        await self._ask(endpoint, client, send, "")
        return done == [200]

    async def _ask(
        self, endpoint: str, client: ClientIdentity, send: Any, resource: str
    ) -> TokenAnswer:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        from tenure.runtime.doors.http import httpx, timeouts

        try:
            checked(endpoint)
            async with (
                asyncio.timeout(REQUEST_S_MAX),
                AsyncOAuth2Client(
                    client_id=client.client_id,
                    client_secret=client.client_secret or None,
                    token_endpoint_auth_method=client.auth_method,
                    revocation_endpoint_auth_method=client.auth_method,
                    transport=bounded(self._web),
                    timeout=timeouts(REQUEST_S_MAX),
                ) as oauth,
            ):
                oauth.register_compliance_hook("access_token_response", _see)
                oauth.register_compliance_hook("refresh_token_response", _see)
                await send(oauth)
            return TokenUnanswered(reason="it gave no answer that could be read")
        except _Seen as seen:
            return meaning_of(seen.answer, endpoint, resource)
        except UrlRefused as refused:
            return TokenUnsent(reason=str(refused))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            why = f"{shown(endpoint)} cannot be reached ({type(error).__name__})"
            return TokenUnsent(reason=why)
        except TimeoutError:
            why = f"{shown(endpoint)} did not answer within {REQUEST_S_MAX:g} s"
            return TokenUnanswered(reason=why)
        except (httpx.HTTPError, httpx.StreamError, TooLarge) as error:
            why = f"{shown(endpoint)} broke off ({type(error).__name__})"
            return TokenUnanswered(reason=why)


def _see(answer: Any) -> NoReturn:
    raise _Seen(answer_of(answer))


def meaning_of(answer: Answer, endpoint: str, resource: str) -> TokenAnswer:
    """What an answer of a token endpoint means.

    A success that cannot be read is unanswered: the old token may be spent.
    """
    if answer.status == 200:
        return _tokens_in(answer, endpoint, resource)
    if 300 <= answer.status < 400:
        reason = f"{shown(endpoint)} sends us elsewhere, and secrets are not carried on"
        return TokenRefused(status=answer.status, error="", reason=reason)
    try:
        told = object_in(answer.body, endpoint)
    except FetchFailed:
        told = {}
    code = told.get("error")
    error = code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
    reason = f"{shown(endpoint)} answered {answer.status}{f' {error}' if error else ''}"
    return TokenRefused(status=answer.status, error=error, reason=reason)


def _tokens_in(answer: Answer, endpoint: str, resource: str) -> TokenAnswer:
    try:
        told = object_in(answer.body, endpoint)
    except FetchFailed as failed:
        return TokenUnanswered(reason=str(failed))
    wrong = _what_is_wrong(told, resource)
    if wrong:
        return TokenUnanswered(reason=f"{shown(endpoint)}: {wrong}")
    return NewTokens(
        access_token=told["access_token"],
        refresh_token=told.get("refresh_token") or "",
        expires_s=_seconds(told.get("expires_in")),
        scopes=scopes_in(told["scope"]) if isinstance(told.get("scope"), str) else (),
    )


def _what_is_wrong(told: dict[str, Any], resource: str) -> str:
    access, refresh = told.get("access_token"), told.get("refresh_token")
    if not isinstance(access, str) or not _ACCESS_TOKEN.fullmatch(access):
        return "the access token is missing, or cannot stand in a header"
    if refresh and (not isinstance(refresh, str) or not _REFRESH_TOKEN.fullmatch(refresh)):
        return "the refresh token cannot be sent"
    kind = told.get("token_type", "Bearer")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        return f"its tokens are of the kind {said(kind) or '?'}, not Bearer"
    meant = told.get("resource")
    if resource and isinstance(meant, str) and meant.rstrip("/") != resource.rstrip("/"):
        return "the token is for another resource"  # it is not used, and not shown to anybody
    return ""


def _seconds(value: object) -> int:
    """A life in seconds, also where it is written as a text; 0 where it is nonsense."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:12])
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 0
    return max(0, min(int(value), EXPIRES_S_MAX)) if abs(value) < 1e15 else 0
