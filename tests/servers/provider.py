"""A provider that a test talks to over real sockets: it answers by the name of the model.

Run as a process of its own; it writes `port N` on its standard output, and ends when
its standard input does.  It speaks enough of three interfaces:

    POST /v1/chat/completions   models in `openai_chat.MODELS`
    POST /v1/responses          models in `openai_responses.MODELS`
    POST /v1/messages           models in `anthropic_messages.MODELS`
    GET  /seen                  the requests so far, as JSON
    GET  /asked/MODEL           answers once that model was asked something
    GET  /gone/MODEL            answers once a client of that model has closed its connection
"""

import json
import select
import socket
import struct
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic_messages
import openai_chat
import openai_responses

WAIT_S = 20.0

ROUTES: dict[str, dict[str, Callable[["Talk"], None]]] = {
    "/v1/chat/completions": openai_chat.MODELS,
    "/v1/responses": openai_responses.MODELS,
    "/v1/messages": anthropic_messages.MODELS,
}

SEEN: list[dict[str, Any]] = []
ASKED: defaultdict[str, threading.Event] = defaultdict(threading.Event)
GONE: defaultdict[str, threading.Event] = defaultdict(threading.Event)


class Talk(BaseHTTPRequestHandler):
    """One request, and the ways of answering it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/seen":
            self.answer(200, SEEN)
        elif self.path.startswith("/asked/"):
            asked = ASKED[self.path.removeprefix("/asked/")].wait(WAIT_S)
            self.answer(200 if asked else 504, {"asked": asked})
        elif self.path.startswith("/gone/"):
            gone = GONE[self.path.removeprefix("/gone/")].wait(WAIT_S)
            self.answer(200 if gone else 504, {"gone": gone})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        self.body: dict[str, Any] = json.loads(self.rfile.read(size))
        self.model = str(self.body.get("model"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        SEEN.append({"path": self.path, "headers": headers, "body": self.body})
        ASKED[self.model].set()
        models = ROUTES.get(self.path, {})
        if self.model in models:
            models[self.model](self)
        else:
            self.answer(404, {"error": {"message": f"no model {self.model}", "code": "unknown"}})

    def answer(self, status: int, body: object, **headers: str) -> None:
        """A whole answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def start(self) -> None:
        """Begin a stream that ends with its connection, or with `end`."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def raw(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def event(self, data: object, name: str = "") -> None:
        head = f"event: {name}\n" if name else ""
        self.raw(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def cut(self) -> None:
        """Drop the connection in the middle, with a reset."""
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def wait_until_gone(self) -> None:
        """Say no more until the client closes the connection, and note that it did."""
        ready, _, _ = select.select([self.connection], [], [], WAIT_S)
        if ready and _closed(self.connection):
            GONE[self.model].set()
        self.close_connection = True

    def in_seconds(self, seconds: int) -> str:
        """A time as an HTTP header has it."""
        import time

        return formatdate(time.time() + seconds, usegmt=True)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written where the port is read."""


def _closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except ConnectionError:
        return True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that closes in the middle is what some tests want."""


def main() -> None:
    server = Server(("127.0.0.1", 0), Talk)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"port {server.server_address[1]}", flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
