"""`mcp.json`: the MCP servers of a package.  They are off until somebody allows them.

What is wrong with one entry costs that entry; what is wrong with the file costs all.
"""

import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tenure.runtime.doors.packages.manifest import BadManifest, json_object
from tenure.runtime.doors.packages.names import slug

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
SERVERS_MAX = 100
HTTP_TYPES = frozenset({"http", "streamable-http"})
NOT_SUPPORTED = frozenset({"stdio", "sse"})
_HOP_BY_HOP = frozenset(
    {
        "authorization",
        "connection",
        "cookie",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS = frozenset(
    {
        "accept",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "user-agent",
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    key: str
    url: str
    headers: dict[str, str]


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """Those that can be used, and what was left out and why."""

    servers: tuple[Server, ...] = ()
    skipped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def server_id(package: str, key: str) -> str:
    """Stable over updates and moves: it is of the two names alone."""
    digest = hashlib.sha256(f"plugin:{package}:{key}".encode()).hexdigest()
    return f"{slug(key)[:19].strip('-.')}_{digest[:12]}"


def read_servers(data: bytes, package: str) -> Servers:
    """The servers in the bytes of an `mcp.json`.  A broken file gives none, and says so."""
    try:
        table = json_object(data, "mcp.json")
    except BadManifest as bad:
        return Servers(skipped=bad.violations)
    entries = table.get("mcpServers")
    unknown = sorted(set(table) - {"$schema", "mcpServers"})
    if unknown:
        return Servers(skipped=(f"mcp.json: {unknown[0]!r} may not be there; none is used",))
    if table.get("$schema") != SCHEMA:
        return Servers(skipped=(f"mcp.json: $schema is not {SCHEMA}; none is used",))
    if not isinstance(entries, dict):
        return Servers(skipped=("mcp.json: mcpServers is no object; none is used",))
    if len(entries) > SERVERS_MAX:
        return Servers(skipped=(f"mcp.json: more than {SERVERS_MAX} servers; none is used",))
    return _read_entries(entries, package)


def _read_entries(entries: dict[str, Any], package: str) -> Servers:
    servers: list[Server] = []
    skipped: list[str] = []
    warnings: list[str] = []
    for key, entry in entries.items():
        try:
            server, dropped = _read_entry(key, entry, package)
        except BadManifest as bad:
            skipped += [f"mcp.json: server {key!r}: {each}" for each in bad.violations]
            continue
        servers.append(server)
        warnings += [f"mcp.json: server {key!r}: {each}" for each in dropped]
    return Servers(servers=tuple(servers), skipped=tuple(skipped), warnings=tuple(warnings))


def _read_entry(key: str, entry: object, package: str) -> tuple[Server, list[str]]:
    if not isinstance(entry, dict):
        raise BadManifest("it is no object")
    if not key.strip() or len(key) > 128:
        raise BadManifest("its name is empty or has more than 128 characters")
    kind = entry.get("type", "stdio" if "command" in entry else "http")
    if kind in NOT_SUPPORTED:
        raise BadManifest(f"{kind} servers of packages are not started here")
    if kind not in HTTP_TYPES:
        raise BadManifest(f"type {kind!r} is not known")
    url = entry.get("url")
    if reason := _wrong_url(url):
        raise BadManifest(reason)
    headers, dropped = _headers(entry.get("headers", {}))
    return Server(id=server_id(package, key), key=key, url=str(url), headers=headers), dropped


def _wrong_url(url: object) -> str:
    if not isinstance(url, str) or not url.isascii() or any(each <= " " for each in url):
        return "url is missing, or holds blanks or letters that a URL cannot have"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  a wrong port is found when it is asked for
    except ValueError:
        return "url is none"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        return "url is neither https nor http"
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        return "url is http, and not of this machine"
    if parts.username is not None or parts.password is not None:
        return "url has a user name or password in it"
    return "url has a fragment" if parts.fragment else ""


def _headers(headers: object) -> tuple[dict[str, str], list[str]]:
    if not isinstance(headers, dict):
        raise BadManifest("headers is no object")
    taken: dict[str, str] = {}
    dropped: list[str] = []
    seen: set[str] = set()
    for name, value in headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise BadManifest(f"header name {name!r} is none")
        if not isinstance(value, str) or not value.isprintable():
            raise BadManifest(f"header {name!r} has a value that cannot be sent")
        if lower in _HOP_BY_HOP:
            raise BadManifest(f"header {name!r} may not come from a package")
        if lower in seen:
            raise BadManifest(f"header {name!r} is there twice")
        seen.add(lower)
        if lower in _OURS:
            dropped.append(f"header {name!r} is set by the client, and was left out")
        else:
            taken[name] = value
    return taken, dropped


def native_servers(found: dict[str, Any], root_name: str) -> tuple[bytes | None, list[str]]:
    """An `mcp.json` out of the servers of a foreign package; None where none can be used."""
    warnings: list[str] = []
    made: dict[str, Any] = {}
    for key, entry in found.items():
        kind = entry.get("type", "stdio" if "command" in entry else "http")
        if kind not in HTTP_TYPES:
            warnings.append(f"server {key!r}: {kind} servers of packages are not started here")
            continue
        kept = {name: entry[name] for name in ("url", "headers") if name in entry}
        made[key] = {"type": "streamable-http", **kept}
    if not made:
        return None, warnings
    table = {"$schema": SCHEMA, "mcpServers": made}
    return msgspec.json.format(msgspec.json.encode(table)) + b"\n", warnings
