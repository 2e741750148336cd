"""The strings of one line of JSON, each with its place in the text and in the value.

So a string can be replaced while every other byte of the line stays as it is.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Path = tuple[str | int, ...]
"""Keys and indices from the outermost value: `("message", "content", 0, "text")`."""

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]')


class StringToken(msgspec.Struct, frozen=True):
    """One string of the line."""

    start: int
    """Where its opening quote stands, in characters."""
    end: int
    """Behind its closing quote."""
    path: Path
    """Of the value; for a key that of the value behind it."""
    kind: Literal["key", "value"]
    text: str


class _Container:
    """An object or an array that is not closed yet."""

    __slots__ = ("at", "expects_key", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.at: str | int = "" if kind == "{" else 0
        self.expects_key = kind == "{"


def string_tokens(line: str) -> Iterator[StringToken]:
    """Every string of a line that is valid JSON, in order."""
    open_ones: list[_Container] = []
    for found in _TOKENS.finditer(line):
        token = found.group()
        inner = open_ones[-1] if open_ones else None
        match token:
            case "{" | "[":
                open_ones.append(_Container(token))
            case "}" | "]":
                open_ones.pop()
            case ",":
                if inner is not None and isinstance(inner.at, int):
                    inner.at += 1
                elif inner is not None:
                    inner.expects_key = True
            case ":":
                pass
            case _:
                text: str = json.loads(token, strict=False)
                is_key = inner is not None and inner.expects_key
                if inner is not None and is_key:
                    inner.at, inner.expects_key = text, False
                path = tuple(each.at for each in open_ones)
                yield StringToken(
                    found.start(), found.end(), path, "key" if is_key else "value", text
                )


def value_at(value: Any, path: Path) -> Any:
    """What stands at a path of a decoded line; None where nothing does."""
    for step in path:
        match value, step:
            case dict(), str():
                value = value.get(step)
            case list(), int():
                value = value[step] if step < len(value) else None
            case _:
                return None
    return value
