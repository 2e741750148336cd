"""Between processes: what a host's local socket says, one JSON object a line.

The host speaks first:

    {"type": "Hello", "version": 1, "host_id": ..., "root": ..., "pid": ..., "seats": [...]}

A client then asks, and every line of the answer bears the number of its request:

    {"id": 1, "seat": "main", "ask": {"type": "GetTurn"}}
    {"id": 1, "reply": {"type": "TurnView", ...}}

    {"id": 2, "events": {"after": null, "seat": ""}}
    {"id": 2, "published": {...}} ...
    {"id": 2, "end": true}                    from either side: the stream is over

    {"id": null, "error": {"type": "BadRequest", ...}}
"""

from typing import Literal

import msgspec

from tenure.messages.base import Refusal
from tenure.messages.tokens import SessionId

PROTOCOL_VERSION = 1

LINE_TO_HOST_BYTES_MAX = 4 * 1024 * 1024
"""A line that is longer ends the connection."""
LINE_TO_CLIENT_BYTES_MAX = 64 * 1024 * 1024
"""A reply that is longer is refused, and an event is missed."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The first line of every connection."""

    version: int
    """Of this protocol; a client speaks one, and goes where it is another."""
    host_id: str
    root: str
    """The workspace, an absolute path with its links followed."""
    pid: int
    seats: tuple[str, ...]
    """The seats that are open now."""


class EventsWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read events, as `Host.events` does."""

    after: int | None = None
    """Those after this sequence number; None for those from now on."""
    seat: str = ""
    """Only of this seat; empty for all."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line to the host: one of `ask`, `events` and `end`."""

    id: int
    """The client's own number: of a new request, or of the stream that shall end."""
    seat: str = ""
    """Of the owner that is asked; empty for an owner of the host."""
    ask: msgspec.Raw = msgspec.Raw(b"")
    """A command, as an object with its `type`."""
    events: EventsWanted | None = None
    end: Literal[True] | None = None


# --- refusals --------------------------------------------------------------------------


class BadRequest(Refusal, frozen=True, kw_only=True):
    """A line that the host cannot make sense of; nothing was done."""

    reason: str

    @property
    def remedy(self) -> str:
        return f"the host does not understand: {self.reason}"


class TooManyClients(Refusal, frozen=True, kw_only=True):
    """The host serves as many clients as it can."""

    clients_max: int

    @property
    def remedy(self) -> str:
        return f"the host has {self.clients_max} clients already; end one of them, or try again"


class NoHost(Refusal, frozen=True, kw_only=True):
    """No host runs here, or none has this session."""

    root: str
    session_id: SessionId | None = None

    @property
    def remedy(self) -> str:
        if self.session_id is not None:
            return f"no process has session {self.session_id} open; `tenure chat` opens it"
        return f"no host runs in {self.root}; `tenure run` and `tenure chat` start one"


class SeveralHosts(Refusal, frozen=True, kw_only=True):
    """More than one host runs here, and nothing says which is meant."""

    root: str
    pids: tuple[int, ...]

    @property
    def remedy(self) -> str:
        pids = ", ".join(map(str, self.pids))
        return f"several hosts run in {self.root} (processes {pids}); name a session"


class HostSilent(Refusal, frozen=True, kw_only=True):
    """The process is there and does not answer: it is stopped, or cannot be reached."""

    pid: int
    reason: str

    @property
    def remedy(self) -> str:
        return f"process {self.pid} does not answer: {self.reason}; nothing was done"
