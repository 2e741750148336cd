"""An authorization server and an MCP server that it guards, as simulated servers.

    auth = AuthServer("https://auth.example", world.clock)
    mcp = GuardedServer("https://mcp.example/mcp", auth)
    world.web.serve("https://auth.example", auth)
    world.web.serve("https://mcp.example", mcp)

Refresh tokens rotate, and one that comes a second time takes its whole family
away: a server with a grace time would hide the mistakes that this one shows.
What was asked of it is counted, so that tests can say what must not have been.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from tenure.runtime.doors.clock import Clock
from tenure.runtime.testing.web_faults import WebRequest, WebResponse

LIFE_S = 3_600


@dataclass(slots=True, kw_only=True)
class Family:
    """All tokens that came of one sign-in."""

    client_id: str
    resource: str
    scope: str
    refresh_token: str
    """The one that may still be used."""
    alive: bool = True


@dataclass(slots=True, kw_only=True)
class Counts:
    """What was asked of the server."""

    registrations: int = 0
    codes: int = 0
    """Sign-ins that were finished."""
    refreshes: int = 0
    """Refresh tokens that were exchanged."""
    spent: dict[str, int] = field(default_factory=dict)
    """Refresh tokens that came again after they had been exchanged, and how often."""
    revoked: int = 0
    resources: list[str] = field(default_factory=list)
    """The parameter `resource` of each token request."""
    secrets: set[str] = field(default_factory=set)
    """Everything that no file but the secret store may hold."""


class AuthServer:
    """OAuth 2.1 as MCP wants it.  State is in memory; a request is done at once."""

    def __init__(self, issuer: str, clock: Clock, *, life_s: int = LIFE_S) -> None:
        self.issuer = issuer
        self.life_s = life_s
        self.clock = clock
        self.counts = Counts()
        self.changes: dict[str, Any] = {}
        """Laid over the metadata: a value of None takes a field away."""
        self.rotates: Literal["always", "never"] = "always"
        self.iss = issuer
        """What its answers to the browser name as issuer; empty: nothing."""
        self.pause: Callable[[WebRequest], Awaitable[None]] | None = None
        """What it does before it looks at a request."""
        self.families: list[Family] = []
        self._clients: dict[str, str] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self._access: dict[str, tuple[Family, float]] = {}
        self._spent: dict[str, Family] = {}
        self._made = 0

    async def __call__(self, request: WebRequest) -> WebResponse:
        """Answer one request."""
        known = {
            ("GET", "/.well-known/oauth-authorization-server"): self._metadata,
            ("POST", "/register"): self._register,
            ("GET", "/authorize"): self._authorize,
            ("POST", "/token"): self._token,
            ("POST", "/revoke"): self._revoke,
        }
        if self.pause is not None:
            await self.pause(request)
        handler = known.get((request.method, request.path))
        return WebResponse(status=404) if handler is None else handler(request)

    def accepts(self, access_token: str, resource: str) -> Family | None:
        """Whose token this is, where it is good for this resource now."""
        found = self._access.get(access_token)
        if found is None or found[1] <= self.clock.now_ms() / 1000:
            return None
        return found[0] if found[0].alive and found[0].resource == resource else None

    def expire(self) -> None:
        """Every access token has run out."""
        self._access.clear()

    def forget_clients(self) -> None:
        """As after a restart of a server that keeps them in memory."""
        self._clients.clear()

    # --- endpoints -------------------------------------------------------------------------

    def _metadata(self, request: WebRequest) -> WebResponse:
        document: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": bool(self.iss),
            **self.changes,
        }
        return json({name: value for name, value in document.items() if value is not None})

    def _register(self, request: WebRequest) -> WebResponse:
        told = msgspec.json.decode(request.body)
        client_id = self._new("client")
        self._clients[client_id] = told["redirect_uris"][0]
        self.counts.registrations += 1
        return json({**told, "client_id": client_id}, status=201)

    def _authorize(self, request: WebRequest) -> WebResponse:
        """The user agrees at once."""
        asked = request.query
        if self._clients.get(asked.get("client_id", "")) != asked.get("redirect_uri"):
            return WebResponse(status=400, body=b"unknown client")
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return WebResponse(status=400, body=b"no PKCE")
        code = self._new("code")
        self._codes[code] = asked
        self.counts.secrets |= {code, asked["state"]}
        answer = {"code": code, "state": asked["state"]}
        if self.iss:
            answer["iss"] = self.iss
        target = f"{asked['redirect_uri']}?{urlencode(answer)}"
        return WebResponse(status=302, headers={"location": target})

    def _token(self, request: WebRequest) -> WebResponse:
        form = request.form
        if form.get("client_id") not in self._clients:
            return refused("invalid_client", status=401)
        self.counts.resources.append(form.get("resource", ""))
        if form.get("grant_type") == "authorization_code":
            return self._exchange(form)
        return self._refresh(form)

    def _exchange(self, form: dict[str, str]) -> WebResponse:
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or asked["redirect_uri"] != form.get("redirect_uri"):
            return refused("invalid_grant")
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return refused("invalid_grant")
        self.counts.secrets.add(form["code_verifier"])
        self.counts.codes += 1
        family = Family(
            client_id=form["client_id"],
            resource=asked.get("resource", ""),
            scope=asked.get("scope", ""),
            refresh_token=self._new("refresh"),
        )
        self.families.append(family)
        return self._grant(family)

    def _refresh(self, form: dict[str, str]) -> WebResponse:
        sent = form.get("refresh_token", "")
        spent = self._spent.get(sent)
        if spent is not None:
            self.counts.spent[sent] = self.counts.spent.get(sent, 0) + 1
            spent.alive = False
            return refused("invalid_grant")
        family = next((each for each in self.families if each.refresh_token == sent), None)
        if family is None or not family.alive or family.client_id != form["client_id"]:
            return refused("invalid_grant")
        self.counts.refreshes += 1
        if self.rotates == "always":
            self._spent[sent] = family
            family.refresh_token = self._new("refresh")
        return self._grant(family)

    def _grant(self, family: Family) -> WebResponse:
        access_token = self._new("access")
        self._access[access_token] = family, self.clock.now_ms() / 1000 + self.life_s
        answer = {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": self.life_s,
            "refresh_token": family.refresh_token,
            "scope": family.scope,
        }
        return json({name: value for name, value in answer.items() if value})

    def _revoke(self, request: WebRequest) -> WebResponse:
        for family in self.families:
            if family.refresh_token == request.form.get("token"):
                family.alive = False
        self.counts.revoked += 1
        return WebResponse(status=200)

    def _new(self, kind: str) -> str:
        """A value that can be found again wherever it was written."""
        self._made += 1
        seed = f"{self.issuer}/{kind}/{self._made}".encode()
        value = f"{kind}-{hashlib.sha256(seed).hexdigest()[:32]}"
        if kind in ("access", "refresh"):
            self.counts.secrets.add(value)
        return value


class GuardedServer:
    """An MCP server as far as signing in to it goes: it refuses who has no good token.

    Args:
        url: its endpoint.
    """

    def __init__(self, url: str, auth: AuthServer, *, scope: str = "") -> None:
        self.url = url
        self.auth = auth
        self.resource = url
        """As it names itself."""
        self.scope = scope
        self.wanted: tuple[str, ...] = ()
        """Scopes without which a call is refused."""
        self.changes: dict[str, Any] = {}
        """Laid over the metadata of the resource."""
        self.metadata_url = ""
        """What its refusals name; empty: where its metadata is."""
        self.served = 0

    @property
    def origin(self) -> str:
        """Where it is served."""
        return "/".join(self.url.split("/")[:3])

    async def __call__(self, request: WebRequest) -> WebResponse:
        """Answer one request."""
        path = self.url.removeprefix(self.origin)
        if request.path == f"/.well-known/oauth-protected-resource{path}":
            return json(
                {
                    "resource": self.resource,
                    "authorization_servers": [self.auth.issuer],
                    **self.changes,
                }
            )
        if request.path != path:
            return WebResponse(status=404)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        family = self.auth.accepts(token, self.resource) if scheme == "Bearer" else None
        if family is None:
            return self._refuse(401, self.scope)
        if not set(self.wanted) <= set(family.scope.split()):
            return self._refuse(403, " ".join(self.wanted))
        self.served += 1
        return json({"jsonrpc": "2.0", "id": 1, "result": {}})

    def _refuse(self, status: int, scope: str) -> WebResponse:
        path = self.url.removeprefix(self.origin)
        where = self.metadata_url or f"{self.origin}/.well-known/oauth-protected-resource{path}"
        parts = [f'resource_metadata="{where}"']
        if status == 403:
            parts.insert(0, 'error="insufficient_scope"')
        if scope:
            parts.append(f'scope="{scope}"')
        return WebResponse(
            status=status, headers={"www-authenticate": f"Bearer {', '.join(parts)}"}
        )


def json(document: object, *, status: int = 200) -> WebResponse:
    """An answer that is JSON."""
    body = msgspec.json.encode(document)
    return WebResponse(status=status, headers={"content-type": "application/json"}, body=body)


def refused(error: str, *, status: int = 400) -> WebResponse:
    """A token endpoint's refusal."""
    return json({"error": error}, status=status)
