"""Front matter: YAML between two lines `---`, read as plain text values, never as code.

Only a first line that is exactly `---` opens it, so a language tag behind it (which other
programs run) makes it part of the note's words.  Every scalar is read as the text that
stands there: `title: 2026-01-01` is that text and no date, `status: no` is no boolean,
and no tag makes anything.
"""

import json
import re
from typing import Any

import msgspec

FRONT_BYTES_MAX = 65_536
NESTED = "(a nested value)"

_FENCE = "---"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A Markdown file, parted."""

    fields: dict[str, Any]
    """Texts, lists and tables of the front matter; empty where there is none."""
    body: str
    """All that follows; the whole file where the front matter cannot be read."""
    problem: str = ""
    """Why the front matter cannot be read."""

    def text(self, name: str) -> str:
        """A field as one text; empty where it is missing."""
        return as_text(self.fields.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A field as texts: a list as it is, a single value as a list of one."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return tuple(text for each in value if (text := as_text(each)))
        single = as_text(value)
        return (single,) if single else ()


def as_text(value: object) -> str:
    """A value of the front matter as text; what is nested deeper says only that it is."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return NESTED if isinstance(value, list | dict) else str(value)


def parse_note(data: bytes) -> Note:
    """Part a file into front matter and body.  Nothing in it can raise."""
    text = data.decode("utf-8-sig", "replace")
    front, body = split_front(text)
    if front is None:
        return Note(fields={}, body=body)
    if len(front.encode("utf-8", "replace")) > FRONT_BYTES_MAX:
        problem = f"its front matter has more than {FRONT_BYTES_MAX:,} bytes"
        return Note(fields={}, body=text, problem=problem)
    try:
        fields = _load(front)
    except (ValueError, RecursionError) as error:
        return Note(fields={}, body=text, problem=f"its front matter is no YAML: {error}")
    if fields is None or fields == "":
        return Note(fields={}, body=body)
    if not isinstance(fields, dict):
        return Note(fields={}, body=text, problem="its front matter is no table of fields")
    return Note(fields={as_text(name): value for name, value in fields.items()}, body=body)


def split_front(text: str) -> tuple[str | None, str]:
    """Front matter and body; None where the text has no front matter, or no end of it."""
    first, newline, rest = text.partition("\n")
    if first.rstrip() != _FENCE or not newline:  # guard: HANDOFF-8
        return None, text
    front: list[str] = []
    at = 0
    while at < len(rest):
        end = rest.find("\n", at)
        line = rest[at:] if end < 0 else rest[at:end]
        at = len(rest) if end < 0 else end + 1
        if line.rstrip() == _FENCE:
            return "".join(front), rest[at:]
        front.append(f"{line}\n")
    return None, text


def _load(front: str) -> Any:
    """Raises `ValueError`."""
    import yaml  # only where somebody else's note is read

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        # The base loader knows texts, lists and tables, and constructs nothing else.
        return yaml.load(front, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 2}: " if mark is not None else ""
        why = getattr(error, "problem", None) or "it cannot be read"
        raise ValueError(f"{where}{why}") from None


def front_matter(fields: dict[str, str | int | tuple[str, ...]]) -> str:
    """Front matter with its two lines `---`: texts are quoted, so that nothing in them counts."""
    lines = [_FENCE]
    for name, value in fields.items():
        if isinstance(value, tuple):
            lines.append(f"{name}:" if value else f"{name}: []")
            lines += [f"  - {quoted(each)}" for each in value]
        else:
            lines.append(f"{name}: {value if isinstance(value, int) else quoted(value)}")
    return "\n".join([*lines, _FENCE, ""])


def quoted(text: str) -> str:
    """A YAML double-quoted text: what a JSON string is, with odd characters escaped."""
    return _CONTROL.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return "\\uFFFD" if 0xD800 <= code < 0xE000 else f"\\u{code:04X}"
