"""Asking strangers: bounded requests, and answers that are what they should be.

What comes back is small, plain and soon here, or it is refused: no compressed
answers (they can be bombs), no body over the bound, no redirect to another place.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.runtime.doors.mcp.urls import UrlRefused, checked, origin, shown
from tenure.runtime.doors.web import Web

if TYPE_CHECKING:
    from tenure.runtime.doors.http import httpx

BODY_BYTES_MAX = 262_144
REQUEST_S_MAX = 30.0
REDIRECTS_MAX = 3
SAID_CHARS_MAX = 200


class FetchFailed(Exception):
    """No answer that could be used; the text says why, for people."""


class NotFound(FetchFailed):
    """There is nothing at this address: look at the next one."""


class TooLarge(Exception):
    """The answer has more bytes than anybody needs."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with its body, whole."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; several of one name joined with commas."""
    body: bytes


class Fetching:
    """Requests that carry no token."""

    def __init__(self, web: Web) -> None:
        self._web = web

    async def document(self, url: str) -> dict[str, Any]:
        """The JSON object at an address, by GET.

        Raises:
            NotFound: there is none.
            FetchFailed: it cannot be had now, or is no object.
        """
        answer = await self._following(url)
        if answer.status in (404, 405, 410):
            raise NotFound(f"{shown(url)}: there is nothing (status {answer.status})")
        if answer.status != 200:
            raise FetchFailed(f"{shown(url)}: status {answer.status}")
        return object_in(answer.body, url)

    async def post_json(self, url: str, body: object) -> Answer:
        """One POST of JSON.  Raises `FetchFailed`."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return await self._once("POST", url, headers, msgspec.json.encode(body))

    async def probe(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One POST whose answer's head is what counts.  Raises `FetchFailed`."""
        return await self._once("POST", url, headers, body)

    async def _following(self, url: str) -> Answer:
        at = url
        for _ in range(REDIRECTS_MAX + 1):
            answer = await self._once("GET", at, {"Accept": "application/json"}, b"")
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            at = _target(at, answer.headers.get("location", ""))
        raise FetchFailed(f"{shown(url)}: it redirects again and again")

    async def _once(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        from tenure.runtime.doors.http import httpx, timeouts

        try:
            checked(url)
            async with (
                asyncio.timeout(REQUEST_S_MAX),
                httpx.AsyncClient(
                    transport=bounded(self._web), timeout=timeouts(REQUEST_S_MAX)
                ) as http,
            ):
                answer = await http.request(method, url, headers=dict(headers), content=body)
                return answer_of(answer)
        except UrlRefused as refused:
            raise FetchFailed(str(refused)) from None
        except TimeoutError:
            raise FetchFailed(f"{shown(url)}: no answer within {REQUEST_S_MAX:g} s") from None
        except TooLarge as error:
            raise FetchFailed(f"{shown(url)}: {error}") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise FetchFailed(f"{shown(url)}: no answer ({type(error).__name__})") from None


def answer_of(answer: "httpx.Response") -> Answer:
    """What was answered, free of the library."""
    return Answer(
        status=answer.status_code,
        headers={name.lower(): value for name, value in answer.headers.items()},
        body=answer.content,
    )


def object_in(body: bytes, url: str) -> dict[str, Any]:
    """The JSON object in a body.  Raises `FetchFailed`."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FetchFailed(f"{shown(url)}: this is no JSON") from None
    if not isinstance(found, dict):
        raise FetchFailed(f"{shown(url)}: this is no JSON object")
    return found


def said(text: object) -> str:
    """What a stranger said, fit to be shown: one short line of printable characters."""
    if not isinstance(text, str):
        return ""
    line = "".join(each if each.isprintable() else " " for each in text[:SAID_CHARS_MAX])
    return " ".join(line.split())


def _target(source: str, location: str) -> str:
    """Where a redirect leads: only within the same place."""
    from urllib.parse import urljoin

    try:
        target = checked(urljoin(source, location))
    except (UrlRefused, ValueError):
        raise FetchFailed(f"{shown(source)}: it redirects to what is no address") from None
    if origin(target) != origin(source):
        raise FetchFailed(f"{shown(source)}: it redirects to {origin(target)}, another place")
    return target


def bounded(web: Web) -> "httpx.AsyncBaseTransport":
    """A transport whose answers are uncompressed and have `BODY_BYTES_MAX` bytes at most."""
    from tenure.runtime.doors.http import httpx

    inner = web.transport()

    class _Body(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise TooLarge(f"the answer has more than {BODY_BYTES_MAX:,} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    class _Bounded(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            request.headers["Accept-Encoding"] = "identity"
            answer = await inner.handle_async_request(request)
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                await answer.aclose()
                raise TooLarge("the answer is compressed although we asked that it is not")
            assert isinstance(answer.stream, httpx.AsyncByteStream)
            return httpx.Response(
                answer.status_code,
                headers=answer.headers,
                stream=_Body(answer.stream),
                extensions=answer.extensions,
                request=request,
            )

        async def aclose(self) -> None:
            await inner.aclose()

    return _Bounded()
