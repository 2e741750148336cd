"""The names that messages carry.  Only one of them tells old from new: `SessionToken`."""

from typing import Literal, NewType

import msgspec

SessionId = NewType("SessionId", str)
"""Names a session for ever: the uuid in its transcript's header."""

TurnId = NewType("TurnId", str)
"""Names one turn: `<session id>/<n>`.

n grows by one from turn to turn, from 1, and by a leap at each new epoch: a number
that was ever given out never comes again.
"""

RequestId = NewType("RequestId", str)
"""Names one open question to the user."""

CallId = NewType("CallId", str)
"""Names one tool call, as the model named it; unique within its turn."""

QueueItemId = NewType("QueueItemId", str)
"""Names one prompt that waits; it keeps its name however often it is edited or moved."""

EntryId = NewType("EntryId", str)
"""Names one entry of a transcript."""

ServerId = NewType("ServerId", str)
"""Names an MCP server in the settings of its root; it stays when the server is loaded anew."""

Role = Literal[
    "session",
    "turn",
    "compaction",
    "approval",
    "settings",
    "handoff",
    "index_writer",
    "installer",
    "mcp_auth",
]
"""Which owner: the first four are of one seat, the others are of the host."""

SEAT_ROLES: tuple[Role, ...] = ("session", "turn", "compaction", "approval")
HOST_ROLES: tuple[Role, ...] = ("settings", "handoff", "index_writer", "installer", "mcp_auth")


class SessionToken(msgspec.Struct, frozen=True, kw_only=True):
    """The one staleness token: which session, and since which change of hands.

    `epoch` grows for ever, also across processes and restarts.  Only
    `actors/session.py` compares it.
    """

    session_id: SessionId
    epoch: int


class ProcessName(msgspec.Struct, frozen=True, kw_only=True):
    """A process, told apart from a later one with the same pid by its start time."""

    pid: int
    started: str
    """What the kernel says of the start (clock ticks since boot); opaque."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a claim."""

    host_id: str
    process: ProcessName
    since_ms: int
    """Wall-clock milliseconds since the epoch; for people only."""


def turn_id(session_id: SessionId, number: int) -> TurnId:
    return TurnId(f"{session_id}/{number}")


def turn_number(turn: TurnId) -> int:
    """The counter at the end of a turn id; 0 where there is none."""
    tail = turn.rpartition("/")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0


def turn_session(turn: TurnId) -> SessionId:
    return SessionId(turn.rpartition("/")[0])
