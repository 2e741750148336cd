"""Which addresses may be asked, and which two are the same place.

https, or http on this machine; no user names, no fragments; never an address that
only machines of a data centre answer on.  Names are not looked up here: a name
that leads to a private address is not seen.
"""

import ipaddress
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

URL_CHARS_MAX = 2_048
PORTS = {"https": 443, "http": 80}


class UrlRefused(ValueError):
    """This address is not asked; the text says why."""


def checked(url: str) -> str:
    """The same URL.  Raises `UrlRefused`."""
    parts = _parts(url)
    host = (parts.hostname or "").lower()
    if not host:
        raise UrlRefused(f"{shown(url)}: there is no host in this URL")
    if parts.username is not None or parts.password is not None:
        raise UrlRefused(f"{shown(url)}: a URL must not hold a user name")
    if parts.fragment:
        raise UrlRefused(f"{shown(url)}: a URL must not hold a fragment")
    if parts.scheme == "http" and not _is_loopback(host):
        raise UrlRefused(f"{shown(url)}: use https; http is for this machine only")
    if parts.scheme not in PORTS:
        raise UrlRefused(f"{shown(url)}: only https is possible, and http on this machine")
    if _is_forbidden(host):
        raise UrlRefused(f"{shown(url)}: nothing is ever asked at this address")
    return url


def checked_from(url: str, teller: str) -> str:
    """As `checked`, for an address that was named by whoever answers at `teller`.

    A machine elsewhere must not send us to services of this one.
    """
    checked(url)
    if is_loopback(url) and not is_loopback(teller):
        raise UrlRefused(f"{shown(url)}: {origin(teller)} sends us to this machine")
    return url


def is_loopback(url: str) -> bool:
    return _is_loopback((_parts(url).hostname or "").lower())


def origin(url: str) -> str:
    """Scheme, host and port; two URLs with the same are one place."""
    parts = _parts(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    plain = port is None or port == PORTS.get(parts.scheme)
    return f"{parts.scheme}://{host}" if plain else f"{parts.scheme}://{host}:{port}"


def canonical(url: str) -> str:
    """One spelling for one endpoint: origin, path without its last slash, query."""
    parts = _parts(url)
    path = parts.path.rstrip("/")
    return f"{origin(url)}{path}?{parts.query}" if parts.query else f"{origin(url)}{path}"


def resource_of(url: str) -> str:
    """How a server is named as a resource: without query, fragment and last slash."""
    return canonical(url).partition("?")[0]


def covers(resource: str, url: str) -> bool:
    """Whether a resource is this server, or the part of it that the server lies in."""
    if origin(resource) != origin(url):
        return False
    inside, whole = _path(url), _path(resource)
    return not whole or inside == whole or inside.startswith(f"{whole}/")


def well_known(url: str, name: str) -> str:
    """The well-known document of a URL with a path: inserted before it."""
    parts = _parts(url)
    path = parts.path.rstrip("/")
    return f"{origin(url)}/.well-known/{name}{path}"


def path_of(url: str) -> str:
    return _path(url)


def with_query(url: str, query: str) -> str:
    """The URL with more behind its question mark."""
    parts = _parts(url)
    both = f"{parts.query}&{query}" if parts.query else query
    return urlunsplit((parts.scheme, parts.netloc, parts.path, both, ""))


def shown(url: str) -> str:
    """A URL for people: without its query, which may hold what nobody should read."""
    text = url.partition("?")[0].partition("#")[0]
    _, at, behind = text.rpartition("@")
    return quote((behind if at else text)[:200], safe=":/[]%.-_~@")


def _path(url: str) -> str:
    return _parts(url).path.rstrip("/")


def _parts(url: str) -> SplitResult:
    if len(url) > URL_CHARS_MAX:
        raise UrlRefused(f"a URL has {URL_CHARS_MAX} characters at most")
    if any(each <= " " or each == "\x7f" or each == "\\" for each in url):
        raise UrlRefused("a URL must not hold spaces or control characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UrlRefused(f"{shown(url)}: this is no URL") from None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _is_forbidden(host: str) -> bool:
    address = _address(host)
    return address is not None and (
        address.is_unspecified or address.is_link_local or address.is_multicast
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if mapped is not None else address
