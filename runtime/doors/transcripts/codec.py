"""One line of a transcript: how a record becomes bytes, and how bytes show that they are whole.

A line of ours is an entry of the pi v3 dialect with one more field, the last:

    {"type":"message","id":"..","parentId":"..","timestamp":"..", <body>,
     "tenure":{"epoch":3,"seq":17,"turn":2,"key":"k","sum":"1a2b3c4d"}}

`sum` is the last member and 8 lower-case hexadecimal digits: the CRC-32 of every
byte of the line before `,"sum":`, so it also covers epoch, seq, turn and key.
`turn` is left out where it is 0, `key` where it is empty.

A line is strict UTF-8 without a byte 0x0A: a lone surrogate becomes U+FFFD.
Numbers are written as JavaScript writes them (`0`, not `0.0`), so that another
program which parses a line and writes it anew mostly gives back the same bytes.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zlib import crc32

import msgspec

from tenure.messages.content import AssistantMessage, Cost
from tenure.messages.entries import EntryBody, MessageEntry, Record
from tenure.messages.tokens import SessionId

DIALECT_VERSION = 3
SEAL_BYTES = 19
"""The length of `,"sum":"1a2b3c4d"}}`."""

_SEAL = b',"sum":"%08x"}}'
_SEAL_FORM = re.compile(rb',"sum":"[0-9a-f]{8}"\}\}')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE_FLOAT = (b".0,", b".0}", b".0]")
_EXACT_INTEGER_MAX = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_encode = msgspec.json.Encoder().encode


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a transcript."""

    id: str
    version: int
    timestamp: str = ""
    cwd: str = ""


def encode_header(
    session_id: SessionId, timestamp_ms: int, cwd: str, parent_session: str = ""
) -> bytes:
    """The first line, with its newline.  Its key order is what pi's probe of 512 bytes reads.

    Args:
        parent_session: the path of the transcript that this one was forked from.
    """
    fields: dict[str, str | int] = {
        "type": "session",
        "version": DIALECT_VERSION,
        "id": session_id,
        "timestamp": iso_time(timestamp_ms),
        "cwd": cwd,
    }
    if parent_session:
        fields["parentSession"] = parent_session
    return encode_value(fields) + b"\n"


def encode_record(record: Record, epoch: int) -> bytes:
    """One line with its newline.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError: it holds what JSON cannot.
    """
    body = _encode_body(record.body)
    # The type stands first in every body; the place in the tree comes behind it.
    type_end = body.index(b",") + 1
    parent = b"null" if record.parent_id is None else encode_value(record.parent_id)
    line = b'%b"id":%b,"parentId":%b,"timestamp":"%b",%b,"tenure":{"epoch":%d,"seq":%d' % (
        body[:type_end],
        encode_value(record.id),
        parent,
        iso_time(record.timestamp_ms).encode("ascii"),
        body[type_end:-1],
        epoch,
        record.seq,
    )
    if record.turn:
        line += b',"turn":%d' % record.turn
    if record.key:
        line += b',"key":%b' % encode_value(record.key)
    return b"%b%b\n" % (line, _SEAL % crc32(line))


def is_sealed(line: bytes) -> bool:
    """Whether the line (without its newline) ends in the sum of its own bytes."""
    return line.endswith(_SEAL % crc32(line[:-SEAL_BYTES]))


def has_seal_form(line: bytes) -> bool:
    """Whether the line ends as only we write it, be the sum right or wrong."""
    return _SEAL_FORM.fullmatch(line, max(0, len(line) - SEAL_BYTES)) is not None


@lru_cache(maxsize=64)
def iso_time(timestamp_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def parse_time(text: str) -> int:
    """Milliseconds since the epoch of an ISO time; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def encode_value(value: Any) -> bytes:
    """JSON in strict UTF-8, with lone surrogates replaced."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(portable(msgspec.to_builtins(value)))


def portable(value: Any) -> Any:
    """The same JSON value as every program reads and writes it.

    Lone surrogates become U+FFFD, halves that form a pair are joined, and whole
    floats that a double holds exactly become integers.
    """
    match value:
        case str():
            return clean_text(value)
        case float() if value.is_integer() and abs(value) < _EXACT_INTEGER_MAX:
            return int(value)
        case dict():
            return {portable(name): portable(held) for name, held in value.items()}
        case list() | tuple():
            return [portable(held) for held in value]
        case _:
            return value


def clean_text(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD."""
    if _LONE_SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _encode_body(body: EntryBody) -> bytes:
    try:
        encoded = _encode(_with_whole_cost(body))
    except UnicodeEncodeError:
        return _encode(portable(msgspec.to_builtins(body)))
    if any(pattern in encoded for pattern in _WHOLE_FLOAT):
        return _encode(portable(msgspec.json.decode(encoded)))
    return encoded


def _with_whole_cost(body: EntryBody) -> EntryBody:
    """The same body with whole costs as integers: nearly every assistant message has one."""
    if not isinstance(body, MessageEntry) or not isinstance(body.message, AssistantMessage):
        return body
    usage = body.message.usage
    cost = usage.cost
    whole = Cost(
        input=_whole(cost.input),
        output=_whole(cost.output),
        cache_read=_whole(cost.cache_read),
        cache_write=_whole(cost.cache_write),
        total=_whole(cost.total),
    )
    replace = msgspec.structs.replace
    return MessageEntry(message=replace(body.message, usage=replace(usage, cost=whole)))


def _whole(amount: float) -> float:
    return int(amount) if float(amount).is_integer() else amount
