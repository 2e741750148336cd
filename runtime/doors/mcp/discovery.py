"""Who signs people in for a server: from its refusal to its authorization server.

    401 -> protected resource metadata (RFC 9728) -> authorization server metadata
    (RFC 8414, OpenID Connect discovery)

Nothing is guessed: an endpoint that no document names is never asked, because
whoever answers there could be handed a token.
"""

from typing import Any

import msgspec

from tenure.messages.mcp_auth import Challenge, McpServer
from tenure.runtime.doors.mcp.challenges import SCOPES_MAX, challenge_of, scopes_in
from tenure.runtime.doors.mcp.credential_file import Endpoints
from tenure.runtime.doors.mcp.fetching import FetchFailed, Fetching, NotFound
from tenure.runtime.doors.mcp.urls import (
    UrlRefused,
    checked,
    checked_from,
    covers,
    origin,
    path_of,
    resource_of,
    shown,
    well_known,
)

PROBE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tenure", "version": "0"},
    },
}


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in needs to know."""

    endpoints: Endpoints
    resource: str
    challenge_scopes: tuple[str, ...]
    """What the server asked for when it refused."""
    scopes_supported: tuple[str, ...]
    """What the resource knows."""
    offline_access: bool
    """Whether the authorization server knows the scope for tokens that can be refreshed."""
    iss_promised: bool
    """Whether its answers name the issuer (RFC 9207)."""
    takes_documents: bool
    """Whether a client's id may be the address of its metadata document."""
    auth_methods: tuple[str, ...]


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    issuer: str
    scopes: tuple[str, ...] = ()


async def discover(fetching: Fetching, server: McpServer) -> Discovered:
    """Raises `FetchFailed`: there is none, or what was found must not be used."""
    try:
        checked(server.url)
    except UrlRefused as refused:
        raise FetchFailed(str(refused)) from None
    challenge = await _challenge(fetching, server)
    found = await _resource(fetching, server, challenge)
    document = await _metadata(fetching, found.issuer, server.url)
    return Discovered(
        endpoints=_endpoints(document, found.issuer, server.url),
        resource=found.resource,
        challenge_scopes=challenge.scopes,
        scopes_supported=found.scopes,
        offline_access="offline_access" in _texts(document.get("scopes_supported")),
        iss_promised=document.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=document.get("client_id_metadata_document_supported") is True,
        auth_methods=_texts(document.get("token_endpoint_auth_methods_supported")),
    )


async def _challenge(fetching: Fetching, server: McpServer) -> Challenge:
    """What the server says to somebody without a token; no answer is no obstacle."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    try:
        answer = await fetching.probe(server.url, headers, msgspec.json.encode(PROBE))
    except FetchFailed:
        return Challenge(status=401)
    if answer.status != 401:
        return Challenge(status=401)
    return challenge_of(401, answer.headers.get("www-authenticate", ""))


async def _resource(fetching: Fetching, server: McpServer, challenge: Challenge) -> _Resource:
    """The metadata of the server as a resource, from its own origin only."""
    candidates = [well_known(server.url, "oauth-protected-resource")]
    if path_of(server.url):
        candidates.append(f"{origin(server.url)}/.well-known/oauth-protected-resource")
    if challenge.resource_metadata:
        _same_place(challenge.resource_metadata, server.url)
        candidates = [challenge.resource_metadata, *candidates]
    for url in dict.fromkeys(candidates):
        try:
            document = await fetching.document(url)
        except NotFound:
            continue
        return _resource_in(document, url, server)
    # A server from before these documents: it signs people in itself, if its own
    # origin has the metadata of an authorization server.
    return _Resource(resource=resource_of(server.url), issuer=origin(server.url))


def _same_place(url: str, server_url: str) -> None:
    try:
        same = origin(checked(url)) == origin(server_url)
    except UrlRefused as refused:
        raise FetchFailed(str(refused)) from None
    if not same:  # guard: AUTH-7
        raise FetchFailed(f"{shown(server_url)} has its metadata elsewhere, at {shown(url)}")


def _resource_in(document: dict[str, Any], url: str, server: McpServer) -> _Resource:
    resource, servers = document.get("resource"), _texts(document.get("authorization_servers"))
    if not isinstance(resource, str) or not _is_covered(resource, server.url):  # guard: AUTH-7
        raise FetchFailed(f"{shown(url)}: this is the metadata of another resource")
    if not servers:
        raise FetchFailed(f"{shown(url)}: it names no authorization server")
    scopes = scopes_in(" ".join(_texts(document.get("scopes_supported"))))
    return _Resource(resource=resource, issuer=servers[0], scopes=scopes)


def _is_covered(resource: str, server_url: str) -> bool:
    try:
        return covers(checked(resource), server_url)
    except UrlRefused:
        return False


async def _metadata(fetching: Fetching, issuer: str, server_url: str) -> dict[str, Any]:
    """The metadata of an authorization server, which must name itself as it was named."""
    try:
        checked_from(issuer, server_url)
    except UrlRefused as refused:
        raise FetchFailed(str(refused)) from None
    candidates = [
        well_known(issuer, "oauth-authorization-server"),
        well_known(issuer, "openid-configuration"),
    ]
    if path_of(issuer):
        candidates.append(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    for url in candidates:
        try:
            document = await fetching.document(url)
        except NotFound:
            continue
        if document.get("issuer") != issuer:  # guard: AUTH-7
            raise FetchFailed(f"{shown(url)}: this is another issuer's metadata")
        return document
    raise FetchFailed(f"{shown(issuer)}: there is no authorization server that describes itself")


def _endpoints(document: dict[str, Any], issuer: str, server_url: str) -> Endpoints:
    if "S256" not in _texts(document.get("code_challenge_methods_supported")):
        raise FetchFailed(f"{shown(issuer)}: it does not say that it knows PKCE with S256")
    found = {
        name: _endpoint(document, f"{name}_endpoint", server_url)
        for name in ("authorization", "token", "registration", "revocation")
    }
    for name in ("authorization", "token"):
        if not found[name]:
            raise FetchFailed(f"{shown(issuer)}: it names no {name} endpoint")
    return Endpoints(issuer=issuer, **found)


def _endpoint(document: dict[str, Any], name: str, server_url: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        return ""
    try:
        return checked_from(value, server_url)
    except UrlRefused as refused:
        raise FetchFailed(f"{name}: {refused}") from None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(each for each in value[:SCOPES_MAX] if isinstance(each, str))
