"""Conformance of the web port: HTTP clients, by what a known server sees and answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenure.runtime.doors.web import Web
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same
from tenure.runtime.testing.web_faults import WebRequest, WebResponse

if TYPE_CHECKING:
    from tenure.runtime.doors.http import httpx

ANSWER_S_MAX = 20.0
SHORT_S = 0.2
"""A patience that the server's silence outlasts."""
PIECES = (b"one,", b"two,", b"three")


async def web_server(request: WebRequest) -> WebResponse:
    """The server that the checks speak to; serve it where the subject's `url` leads."""
    match request.path.rpartition("/")[2]:
        case "echo":
            return WebResponse(headers={"content-type": "application/json"}, body=_echo(request))
        case "pieces":
            return WebResponse(body=_pieces())
        case "silent":
            await asyncio.Event().wait()
        case "stops":
            return WebResponse(body=_stops())
        case "cut":
            return WebResponse(headers={"content-length": "100"}, body=b"half")
        case "redirect":
            return WebResponse(status=302, headers={"location": "/echo"})
        case "busy":
            return WebResponse(status=503, headers={"retry-after": "7"}, body=b"later")
        case _:
            pass
    return WebResponse(status=404)


def _echo(request: WebRequest) -> bytes:
    facts = {
        "method": request.method,
        "query": request.query,
        "said": request.headers.get("x-said", ""),
        "body": request.body.decode("latin-1"),
    }
    return json.dumps(facts).encode()


async def _pieces() -> AsyncIterator[bytes]:
    for piece in PIECES:
        yield piece


async def _stops() -> AsyncIterator[bytes]:
    yield PIECES[0]
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebUnderTest:
    """A web, and where in it `web_server` answers."""

    web: Web
    url: str
    """Without a slash at its end: `http://127.0.0.1:8123`."""
    nowhere: str
    """A URL where nobody listens."""


WEB: Kit[WebUnderTest] = Kit("web")
_check = WEB.check


def _library() -> Any:
    from tenure.runtime.doors.http import httpx

    return httpx


async def _fails(work: Any, kind: type[Exception], what: str) -> None:
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            got = await work
    except kind:
        return
    except Exception as error:
        fail(f"{what}: raised {type(error).__name__}, expected {kind.__name__}")
    fail(f"{what}: gave {got!r}, expected {kind.__name__}")


@_check
async def a_request_comes_whole(at: WebUnderTest) -> None:
    """Method, query, headers and every byte of the body."""
    body = bytes(range(256)) * 300
    async with at.web.client() as client:
        headers = {"X-Said": "hello"}
        answer = await client.put(f"{at.url}/echo?a=1&b=", content=body, headers=headers)
    facts = answer.json()
    same("method", facts["method"], "PUT")
    same("query", facts["query"], {"a": "1", "b": ""})
    same("header", facts["said"], "hello")
    holds(facts["body"].encode("latin-1") == body, "the body arrived changed")


@_check
async def an_error_of_the_server_is_an_answer(at: WebUnderTest) -> None:
    """Its status, headers and body are for the caller to judge."""
    async with at.web.client() as client:
        answer = await client.get(f"{at.url}/busy")
    same("status", answer.status_code, 503)
    same("retry-after", answer.headers.get("Retry-After"), "7")
    same("body", answer.content, b"later")


@_check
async def a_redirect_is_an_answer_and_is_not_followed(at: WebUnderTest) -> None:
    """A key in a header of its own would be sent along."""
    async with at.web.client() as client:
        answer = await client.get(f"{at.url}/redirect")
    same("status", answer.status_code, 302)
    same("location", answer.headers.get("location"), "/echo")


@_check
async def a_stream_comes_piece_by_piece(at: WebUnderTest) -> None:
    """The first piece is there while the server is still silent about the next."""
    async with at.web.client() as client, asyncio.timeout(ANSWER_S_MAX):
        async with client.stream("GET", f"{at.url}/stops") as answer:
            same("first piece", await anext(answer.aiter_bytes()), PIECES[0])
        async with client.stream("GET", f"{at.url}/pieces") as answer:
            whole = b"".join([piece async for piece in answer.aiter_bytes()])
    same("all pieces", whole, b"".join(PIECES))


@_check
async def where_nobody_listens_is_a_connect_error(at: WebUnderTest) -> None:
    """Nothing was sent: the caller may try again."""
    async with at.web.client() as client:
        await _fails(client.get(at.nowhere), _library().ConnectError, "nobody listens")


@_check
async def silence_ends_in_a_read_timeout(at: WebUnderTest) -> None:
    """Before an answer, and in the middle of one."""
    library = _library()
    async with at.web.client(read_s_max=SHORT_S) as client:
        await _fails(client.get(f"{at.url}/silent"), library.ReadTimeout, "no answer")
        await _fails(client.get(f"{at.url}/stops"), library.ReadTimeout, "half an answer")


@_check
async def an_answer_that_was_cut_is_never_taken_for_a_whole_one(at: WebUnderTest) -> None:
    """Half a token, half an archive."""
    async with at.web.client() as client:
        await _fails(client.get(f"{at.url}/cut"), _library().RemoteProtocolError, "half a body")


@_check
async def a_request_that_was_cancelled_leaves_the_client_usable(at: WebUnderTest) -> None:
    """Stop is pressed while a server thinks."""
    async with at.web.client() as client:
        asking = asyncio.ensure_future(client.get(f"{at.url}/silent"))
        done, _ = await asyncio.wait({asking}, timeout=SHORT_S)
        holds(not done, "a server that says nothing was answered")
        asking.cancel()
        await asyncio.wait({asking}, timeout=ANSWER_S_MAX)
        holds(asking.cancelled(), "a cancelled request goes on")
        same("the next answer", (await client.get(f"{at.url}/busy")).status_code, 503)


@_check
async def requests_at_once_keep_their_own_answers(at: WebUnderTest) -> None:
    """Many callers, one client."""

    async def ask(number: int) -> "httpx.Response":
        return await client.post(f"{at.url}/echo?n={number}", content=str(number))

    async with at.web.client() as client:
        answers = await asyncio.gather(*(ask(number) for number in range(20)))
    for number, answer in enumerate(answers):
        facts = answer.json()
        same(f"answer {number}", (facts["query"]["n"], facts["body"]), (str(number),) * 2)


@_check
async def a_client_of_ones_own_goes_through_the_transport(at: WebUnderTest) -> None:
    """As those that libraries make by themselves."""
    async with _library().AsyncClient(transport=at.web.transport()) as client:
        same("status", (await client.get(f"{at.url}/busy")).status_code, 503)
