"""One download: https, or http of this machine; bounded, with its redirects looked at."""

from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from tenure.runtime.doors.packages.tree import Limits, Rejected
from tenure.runtime.doors.web import Web

if TYPE_CHECKING:
    from tenure.runtime.doors.http import httpx

READ_S_MAX = 60.0
PROGRESS_BYTES = 262_144
"""How much comes between two reports."""
_AS_IT_IS = {"accept-encoding": "identity"}
"""An archive is compressed already, and its digest is of the bytes that lie there."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

Progress = Callable[[int, int], None]
"""Received bytes, and how many are expected (0 where nobody says)."""


class Download:
    """Gets what lies at an address.

    Args:
        web: the network.
    """

    def __init__(self, web: Web) -> None:
        self._web = web

    async def __call__(self, url: str, limits: Limits, progress: Progress) -> bytes:
        """The body at an address.

        Raises:
            Rejected: the address is not allowed, the server refuses, the body is empty or
                larger than it may be, or there are too many redirects.
        """
        from tenure.runtime.doors.http import httpx

        at = checked_url(url)
        try:
            async with self._web.client(read_s_max=READ_S_MAX) as http:
                for _ in range(limits.redirects + 1):
                    async with http.stream("GET", at, headers=_AS_IT_IS) as answer:
                        if answer.status_code in _REDIRECTS and "location" in answer.headers:
                            at = checked_redirect(at, answer.headers["location"])
                            continue
                        return await _body(at, answer, limits, progress)
        except httpx.InvalidURL as wrong:
            raise Rejected(f"{at}: {wrong}") from None
        except httpx.HTTPError as failed:
            raise Rejected(f"{at}: {failed or type(failed).__name__}") from None
        raise Rejected(f"{url}: more than {limits.redirects} redirects")


async def _body(at: str, answer: "httpx.Response", limits: Limits, progress: Progress) -> bytes:
    if answer.status_code // 100 != 2:
        raise Rejected(f"{at}: the server answers {answer.status_code} {answer.reason_phrase}")
    declared = answer.headers.get("content-length", "")
    expected = int(declared) if declared.isascii() and declared.isdigit() else 0
    return await bounded_body(at, answer.aiter_raw(), expected, limits, progress)


async def bounded_body(
    at: str, chunks: AsyncIterator[bytes], expected: int, limits: Limits, progress: Progress
) -> bytes:
    """The chunks together, counted as they come."""
    too_large = Rejected(f"{at}: more than {limits.download_bytes:,} bytes")
    if expected > limits.download_bytes:
        raise too_large
    parts: list[bytes] = []
    received = reported = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > limits.download_bytes:  # guard: INSTALL-7
            raise too_large
        parts.append(chunk)
        if received - reported >= PROGRESS_BYTES:
            reported = received
            progress(received, expected)
    if not received:
        raise Rejected(f"{at}: the answer is empty")
    if expected and received != expected:
        raise Rejected(f"{at}: the answer was cut off after {received:,} of {expected:,} bytes")
    progress(received, expected)
    return b"".join(parts)


def checked_url(url: str) -> str:
    """The address.  Raises `Rejected` where it may not be asked."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise Rejected(f"{url}: this is no address") from None
    if not host or parts.username is not None:
        raise Rejected(f"{parts.scheme}://{host}: an address has a host, and no user name in it")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return url
    raise Rejected(f"{url}: only https, or http of this machine")


def checked_redirect(before: str, location: str) -> str:
    """Where a redirect leads.  Raises `Rejected` where it may not be followed."""
    there = checked_url(urljoin(before, location))
    was, now = urlsplit(before), urlsplit(there)
    if was.scheme == "https" and now.scheme != "https":
        raise Rejected(f"{before}: it redirects from https to {now.scheme}")
    # A server elsewhere must not make us ask what only this machine can reach.
    if is_private(now.hostname or "") and not is_private(was.hostname or ""):
        raise Rejected(f"{before}: it redirects to {now.hostname}, an address inside")
    return there


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Whether the host is one of this machine or network, as far as its name tells."""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False
