"""Taking text out of a transcript for ever, line by line.

Only the strings that must go are replaced: every other byte of a line stays, and
a record of ours gets a new sum.  Ids, types, roles and names of tools are structure
and stay; so what hangs on an entry still hangs on it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from zlib import crc32

import msgspec

from tenure.messages.session_ops import BadPattern, Redact
from tenure.runtime.doors.transcripts.codec import SEAL_BYTES, clean_text, is_sealed
from tenure.runtime.doors.transcripts.tokens import Path, StringToken, string_tokens, value_at

PATTERN_S_MAX = 5.0
"""How long one pattern may search one line."""

EMPTY_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5Erk"
    "Jggg=="
)
"""What stands in the place of a redacted image, so that the entry can still be sent."""

_ENTRY_STRUCTURE = frozenset(
    {
        "type", "id", "parentId", "timestamp", "tenure", "targetId", "firstKeptEntryId", "fromId",
        "customType", "provider", "modelId", "thinkingLevel",
    }
)  # fmt: skip
_MESSAGE_STRUCTURE = frozenset(
    {
        "role", "api", "provider", "model", "stopReason", "toolCallId", "toolName", "timestamp",
        "responseId",
    }
)  # fmt: skip
_SIGNATURES = frozenset({"thinkingSignature", "textSignature", "thoughtSignature"})

Pattern = Any  # the `regex` package has no types of its own


class Redacted(msgspec.Struct, frozen=True):
    """The lines of a file without what had to go."""

    lines: list[bytes]
    changed: int
    left_lines: tuple[int, ...]
    """From 1: where a pattern still matches something that is structure."""


def compiled(redact: Redact) -> tuple[Pattern, ...] | BadPattern:
    """The patterns, ready for use; or the first that cannot be used."""
    import regex

    patterns: list[Pattern] = []
    for text in redact.patterns:
        try:
            pattern = regex.compile(text)
            if pattern.search("", timeout=PATTERN_S_MAX):
                return BadPattern(pattern=text, reason="it matches the empty text")
        except (regex.error, TimeoutError) as error:
            return BadPattern(pattern=text, reason=str(error) or "it takes too long")
        patterns.append(pattern)
    return tuple(patterns)


def redacted(lines: Sequence[bytes], redact: Redact) -> Redacted | BadPattern:
    """The same lines, without their newlines, with the text gone; the header stays as it is."""
    patterns = compiled(redact)
    if isinstance(patterns, BadPattern):
        return patterns
    replacement = clean_text(redact.replacement)
    rule = _Rule(
        _Matches(patterns, replacement), frozenset(redact.entry_ids), _Everything(replacement)
    )
    result: list[bytes] = list(lines[:1])
    left: list[int] = []
    try:
        for number, line in enumerate(lines[1:], start=2):
            result.append(rule.applied(line))
            if rule.still_matches(result[-1]):
                left.append(number)
    except TimeoutError:
        slow = ", ".join(redact.patterns)
        return BadPattern(pattern=slow, reason="it takes too long to search a line")
    changed = sum(old != new for old, new in zip(lines, result, strict=True))
    return Redacted(result, changed, tuple(left))


class _Edit(Protocol):
    """What becomes of the strings of one entry."""

    def text(self, text: str) -> str: ...

    def image(self, data: str) -> str: ...


class _Matches:
    """What the patterns match goes."""

    def __init__(self, patterns: tuple[Pattern, ...], replacement: str) -> None:
        self._patterns = patterns
        self._replacement = replacement

    def found_in(self, text: str) -> bool:
        return any(pattern.search(text, timeout=PATTERN_S_MAX) for pattern in self._patterns)

    def text(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(lambda found: self._replacement, text, timeout=PATTERN_S_MAX)
        return text

    def image(self, data: str) -> str:
        return data


class _Everything:
    """Every text of the entry goes."""

    def __init__(self, replacement: str) -> None:
        self._replacement = replacement

    def text(self, text: str) -> str:
        return self._replacement if text else text

    def image(self, data: str) -> str:
        return EMPTY_PNG


class _Rule:
    """Which line is edited how."""

    def __init__(self, matches: _Matches, whole: frozenset[str], everything: _Everything) -> None:
        self._matches = matches
        self._whole = whole
        self._everything = everything

    def applied(self, line: bytes) -> bytes:
        """One line without what must go."""
        text = line.decode("utf-8", "surrogateescape")
        fields = _fields(text)
        if fields is None:
            # A damaged line: nothing tells text from structure.
            return self._matches.text(text).encode("utf-8", "surrogateescape")
        edit: _Edit = self._matches
        if fields.get("id") in self._whole:
            edit = self._everything
        elif "\\" not in text and not self._matches.found_in(text):
            return line
        new = _edited(text, fields, edit)
        if new == text:
            return line
        encoded = new.encode("utf-8", "surrogateescape")
        return resealed(encoded) if is_sealed(line) else encoded

    def still_matches(self, line: bytes) -> bool:
        text = line.decode("utf-8", "surrogateescape")
        if "\\" not in text and not self._matches.found_in(text):
            return False
        if _fields(text) is None:
            return self._matches.found_in(text)
        return any(self._matches.found_in(token.text) for token in string_tokens(text))


def resealed(line: bytes) -> bytes:
    """A record of ours whose bytes were changed, with the sum that fits them."""
    body = line[:-SEAL_BYTES]
    return b'%b,"sum":"%08x"}}' % (body, crc32(body))


def _fields(text: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _edited(text: str, fields: dict[str, Any], edit: _Edit) -> str:
    """The line with its texts edited, and the signatures of edited thoughts taken away."""
    tokens = list(string_tokens(text))
    replaced: dict[int, str] = {}
    touched: set[Path] = set()
    for at, token in enumerate(tokens):
        new = _new_text(token, fields, edit)
        if new != token.text:
            replaced[at] = new
            touched.add(token.path[:-1])
    for at, token in enumerate(tokens):
        signature = token.kind == "value" and token.path[-1] in _SIGNATURES
        if signature and token.path[:-1] in touched:
            replaced[at] = ""
    return "".join(_pieces(text, tokens, replaced))


def _pieces(text: str, tokens: list[StringToken], replaced: dict[int, str]) -> Iterator[str]:
    behind = 0
    for at in sorted(replaced):
        yield text[behind : tokens[at].start]
        yield msgspec.json.encode(clean_text(replaced[at])).decode()
        behind = tokens[at].end
    yield text[behind:]


def _new_text(token: StringToken, fields: dict[str, Any], edit: _Edit) -> str:
    path = token.path
    if token.kind == "key":
        # Keys of free values may hold anything; all others are structure.
        return edit.text(token.text) if _is_free(path[:-1]) else token.text
    block = value_at(fields, path[:-1])
    if isinstance(block, dict) and block.get("type") == "image":
        if path[-1] == "data":
            return edit.image(token.text)
        if path[-1] == "mimeType":
            return "image/png" if edit.image("") else token.text
    return token.text if _is_structure(path, fields) else edit.text(token.text)


def _is_free(path: Path) -> bool:
    """Whether what stands here is whatever a tool, a model or a program put there."""
    return path[:1] in (("details",), ("data",)) or "arguments" in path or "details" in path


def _is_structure(path: Path, fields: dict[str, Any]) -> bool:
    """Whether a string tells what an entry is or where it hangs, rather than what it says."""
    if path[-1] in _SIGNATURES and len(path) > 1:
        return True
    match path:
        case ("tenure", *_) | ("message", "usage", *_):
            return True
        case (str(key),):
            return key in _ENTRY_STRUCTURE
        case ("message", str(key)):
            return key in _MESSAGE_STRUCTURE
        case ("message", "content", int(), str(key)) | ("content", int(), str(key)):
            block = value_at(fields, path[:-1])
            call = isinstance(block, dict) and block.get("type") == "toolCall"
            return key == "type" or (call and key in ("id", "name"))
        case _:
            return False
