"""JSON lines between processes: reading them in bounded memory, writing what is no JSON."""

from collections.abc import AsyncIterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

import msgspec

import tenure.messages
from tenure.messages.base import Message
from tenure.runtime.doors.sockets import Connection
from tenure.runtime.doors.transcripts.codec import portable

M = TypeVar("M", bound=Message)

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a line that is no message of ours raises when it is decoded."""


class LineTooLong(Exception):
    """A line has more bytes than it may; nothing behind it can be read."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"a line has more than {bytes_max:,} bytes")


class NotJson(Exception):
    """A value that cannot be written as JSON."""


async def lines_of(connection: Connection, bytes_max: int) -> AsyncIterator[bytes]:
    """The whole lines that come, without their ends; half a line at the end is none.

    Raises:
        LineTooLong: what has come is forgotten.
    """
    begun = bytearray()
    while data := await connection.read():
        *whole, rest = data.split(b"\n")
        for piece in whole:
            if len(begun) + len(piece) > bytes_max:
                raise LineTooLong(bytes_max)
            yield bytes(begun + piece)
            begun.clear()
        begun += rest
        if len(begun) > bytes_max:
            raise LineTooLong(bytes_max)


def line_of(value: Mapping[str, Any]) -> bytes:
    """A line with its end; half surrogates become U+FFFD.

    Raises:
        NotJson: it holds something that JSON has no word for.
    """
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(portable(msgspec.to_builtins(value))) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotJson(str(error)) from error


class Tagged(msgspec.Struct, frozen=True, kw_only=True):
    """Only the name of a message."""

    type: str


@cache
def vocabulary(kind: type[M]) -> Mapping[str, type[M]]:
    """All messages of this kind in `messages/`, by their names."""
    for module in iter_modules(tenure.messages.__path__, "tenure.messages."):
        import_module(module.name)
    return {each.__name__: each for each in _below(kind) if _is_ours(each)}


def message_of(raw: msgspec.Raw, kind: type[M]) -> M:
    """The message that a JSON object is.

    Raises:
        LookupError: no message of this kind has its name, which is the argument.
        msgspec.MsgspecError, UnicodeDecodeError, RecursionError: it is not as its name says.
    """
    name = msgspec.json.decode(raw, type=Tagged).type
    found = vocabulary(kind).get(name)
    if found is None:
        raise LookupError(name)
    message: M = msgspec.json.decode(raw, type=found)
    return message


def _below(kind: type[M]) -> list[type[M]]:
    found = []
    for each in kind.__subclasses__():
        found += [each, *_below(each)]
    return found


def _is_ours(message: type[Message]) -> bool:
    return message.__module__.startswith("tenure.messages.") and (
        message.__module__ != "tenure.messages.base"
    )
