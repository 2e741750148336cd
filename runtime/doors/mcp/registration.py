"""As whom we sign in: a given client, a metadata document, an earlier registration, or a new one.

In this order: what was given by hand; the address of a document that describes us,
where the server takes one; what we registered before, for as long as the address
that the browser comes back to is the same; dynamic registration (RFC 7591).
"""

from typing import Any

import msgspec

from tenure.messages.mcp_auth import McpServer
from tenure.runtime.doors.mcp.credential_file import ClientRecord, CredentialRecord
from tenure.runtime.doors.mcp.discovery import Discovered
from tenure.runtime.doors.mcp.fetching import FetchFailed, Fetching, object_in, said
from tenure.runtime.doors.mcp.token_requests import AuthMethod
from tenure.runtime.doors.mcp.urls import shown

CLIENT_NAME = "tenure"
CLIENT_ID_CHARS_MAX = 2_048
SECRET_CHARS_MAX = 4_096


class KnownClient(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are, with our secret where we have one: never in a message."""

    record: ClientRecord
    secret: str = ""


class ClientIdNeeded(FetchFailed):
    """Only somebody who registers a client by hand can go on."""


def can_register(server: McpServer, found: Discovered) -> bool:
    """Whether another address to come back to can still be registered."""
    return not server.client_id and bool(found.endpoints.registration)


async def client_for(
    fetching: Fetching,
    server: McpServer,
    found: Discovered,
    *,
    redirect_uri: str,
    scopes: tuple[str, ...],
    given_secret: str,
    earlier: tuple[CredentialRecord, str] | None,
) -> KnownClient:
    """Who we are to this authorization server.

    Args:
        given_secret: of a client that was registered by hand; empty where it has none.
        earlier: what the last sign-in left, and its client's secret.

    Raises:
        ClientIdNeeded: it takes no new clients.
        FetchFailed: it did not register us.
    """
    if server.client_id:
        return _given(server, found, redirect_uri, given_secret, earlier)
    if server.client_metadata_url and found.takes_documents:
        record = ClientRecord(
            client_id=server.client_metadata_url, origin="document", redirect_uri=redirect_uri
        )
        return KnownClient(record=record)
    if earlier is not None and _usable(earlier[0], found, redirect_uri):
        return KnownClient(record=earlier[0].client, secret=earlier[1])
    if not found.endpoints.registration:
        raise ClientIdNeeded(
            f"{shown(found.endpoints.issuer)} takes no new clients by itself; register one "
            f"there with the address {redirect_uri} and give its id with --client-id"
        )
    return await _register(fetching, found, redirect_uri, scopes)


def _given(
    server: McpServer,
    found: Discovered,
    redirect_uri: str,
    given_secret: str,
    earlier: tuple[CredentialRecord, str] | None,
) -> KnownClient:
    secret = given_secret
    if not secret and earlier is not None:
        before = earlier[0]
        same = before.client.client_id == server.client_id
        if same and before.endpoints.issuer == found.endpoints.issuer:
            secret = earlier[1]
    record = ClientRecord(
        client_id=server.client_id,
        auth_method=_method(found, secret),
        origin="given",
        redirect_uri=redirect_uri,
    )
    return KnownClient(record=record, secret=secret)


def _usable(earlier: CredentialRecord, found: Discovered, redirect_uri: str) -> bool:
    """A registration is of one issuer, and for one address to come back to."""
    client = earlier.client
    return (
        client.origin == "registered"
        and not client.refused
        and earlier.endpoints.issuer == found.endpoints.issuer
        and client.redirect_uri == redirect_uri
    )


async def _register(
    fetching: Fetching, found: Discovered, redirect_uri: str, scopes: tuple[str, ...]
) -> KnownClient:
    url = found.endpoints.registration
    wish = {
        "client_name": CLIENT_NAME,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": _wished_method(found),
    }
    if scopes:
        wish["scope"] = " ".join(scopes)
    answer = await fetching.post_json(url, wish)
    if answer.status not in (200, 201):
        told = _error_in(answer.body, url)
        raise FetchFailed(f"{shown(url)}: we were not registered (status {answer.status}{told})")
    return _registered(object_in(answer.body, url), found, redirect_uri)


def _registered(told: dict[str, Any], found: Discovered, redirect_uri: str) -> KnownClient:
    url = found.endpoints.registration
    client_id, secret = told.get("client_id"), told.get("client_secret") or ""
    if not isinstance(client_id, str) or not _fits(client_id, CLIENT_ID_CHARS_MAX):
        raise FetchFailed(f"{shown(url)}: it gave no client id that can be used")
    if not isinstance(secret, str) or (secret and not _fits(secret, SECRET_CHARS_MAX)):
        raise FetchFailed(f"{shown(url)}: it gave a secret that cannot be used")
    said_method = told.get("token_endpoint_auth_method")
    method = _method(found, secret)
    if secret and said_method in ("client_secret_basic", "client_secret_post", "none"):
        method = said_method
    record = ClientRecord(client_id=client_id, auth_method=method, redirect_uri=redirect_uri)
    return KnownClient(record=record, secret=secret)


def _wished_method(found: Discovered) -> AuthMethod:
    """None is what we want: a secret on every user's disk is no secret."""
    methods: tuple[AuthMethod, ...] = ("none", "client_secret_basic", "client_secret_post")
    if not found.auth_methods:
        return "none"
    return next((each for each in methods if each in found.auth_methods), "none")


def _method(found: Discovered, secret: str) -> AuthMethod:
    if not secret:
        return "none"
    known = found.auth_methods
    post_only = "client_secret_post" in known and "client_secret_basic" not in known
    return "client_secret_post" if post_only else "client_secret_basic"


def _fits(text: str, chars_max: int) -> bool:
    return 0 < len(text) <= chars_max and text.isascii() and text.isprintable()


def _error_in(body: bytes, url: str) -> str:
    try:
        told = object_in(body, url)
    except FetchFailed:
        return ""
    error = said(told.get("error"))
    return f", {error}" if error else ""
