"""A server on loopback that answers as a simulated one does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from tenure.messages.tokens import ProcessName
from tenure.runtime.testing.web_faults import WebRequest, WebResponse, WebServer


@asynccontextmanager
async def on_loopback(server: WebServer) -> AsyncIterator[str]:
    """Its URL.  One request a connection; what is open at the end is cut."""
    clients: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        clients.add(task)
        try:
            request = await _request(reader, port)
            await _write(writer, await server(request))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            clients.discard(task)

    listening = await asyncio.start_server(take, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listening.close()
        for each in list(clients):
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, port: int) -> WebRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return WebRequest(
        process=ProcessName(pid=0, started=""),
        number=0,
        method=method,
        url=f"http://127.0.0.1:{port}{target}",
        headers=headers,
        body=body,
    )


async def _write(writer: asyncio.StreamWriter, answer: WebResponse) -> None:
    body = answer.body
    headers = {"connection": "close", **answer.headers}
    if isinstance(body, bytes):
        headers.setdefault("content-length", str(len(body)))
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    if isinstance(body, bytes):
        writer.write(body)
    else:
        async for piece in body:
            writer.write(piece)
            await writer.drain()
    await writer.drain()
