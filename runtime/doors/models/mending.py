"""Text from a model, made fit for JSON and UTF-8.

A model can give half of a surrogate pair: alone, which no file can hold, or the
two halves in two pieces, which belong together.
"""

from typing import Any

REPLACEMENT = "\ufffd"


def mended(text: str) -> str:
    """The text with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mended_value(value: Any) -> Any:
    """The same for every string in a value as JSON has them."""
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, dict):
        return {mended(str(key)): mended_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mended_value(item) for item in value]
    return value


class Mender:
    """Mends a text that comes in pieces: the first half of a pair waits for the second."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """What can be said of the text so far; may be empty."""
        if not self._half and piece.isascii():
            return piece
        if self._half:
            piece = self._half + piece
            self._half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self._half = piece[-1]
            piece = piece[:-1]
        return mended(piece)

    def end(self) -> str:
        """What waited in vain, as U+FFFD."""
        half, self._half = self._half, ""
        return REPLACEMENT if half else ""
