"""What the librarian can do next: say something, or call tools."""

from typing import Any

import msgspec


class Say(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    calls: tuple[tuple[str, dict[str, Any]], ...]
    """Tools with their arguments; they run side by side where the tools allow it."""


def call(tool: str, **arguments: Any) -> Calls:
    return Calls(calls=((tool, arguments),))
