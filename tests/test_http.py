"""The HTTP door: one library in the process, the one that authlib builds on, within bounds."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec

import pytest

from tenure.runtime.doors import http

pytestmark = pytest.mark.real

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def test_the_successor_is_taken_where_it_is_installed() -> None:
    expected = "httpx2" if find_spec("httpx2") else "httpx"
    assert http.httpx.__name__ == expected


def test_sign_in_clients_are_clients_of_the_library_that_we_took() -> None:
    """Else neither would know the other's exceptions."""
    with warnings.catch_warnings(record=True):  # it warns of httpx, which is what we took
        from authlib.integrations.httpx_client import AsyncOAuth2Client

    assert issubclass(AsyncOAuth2Client, http.httpx.AsyncClient)


def test_trust_settings_are_read_once() -> None:
    assert http.ssl_context() is http.ssl_context()


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
    await writer.drain()


async def _says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@asynccontextmanager
async def _serving(handle: Handle) -> AsyncIterator[str]:
    """A server for one connection; the test goes on when that is closed on both sides."""
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handle(reader, writer)
        writer.close()
        await writer.wait_closed()
        closed.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await closed.wait()


def _get(handle: Handle, read_s_max: float) -> str:
    async def get() -> str:
        async with _serving(handle) as url:
            try:
                async with http.client(read_s_max=read_s_max) as client:
                    return str((await client.get(url)).text)
            except http.httpx.ReadTimeout:
                return "timeout"

    return asyncio.run(get())


def test_client_reaches_a_server() -> None:
    assert _get(_answers, http.READ_S_MAX) == "ok"


def test_server_that_stays_silent_is_given_up_as_a_timeout() -> None:
    assert _get(_says_nothing, 0.05) == "timeout"


def test_client_has_a_bound_for_connecting_and_for_silence() -> None:
    client = http.client()
    assert (client.timeout.connect, client.timeout.read) == (http.CONNECT_S_MAX, http.READ_S_MAX)
