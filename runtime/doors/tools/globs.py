"""The glob patterns that a model may filter files with.

`*.md` fits a name in any folder, `meetings/*.md` a path from the root, `**` any
number of folders, `{a,b}` either, a pattern that ends in `/` all that lies
below, and a leading `!` turns the pattern round.  Matching takes time in
proportion to the path, whatever the pattern: it comes from a model.
"""

import fnmatch
import re

from tenure.runtime.doors.tools.tool import ToolRefused

GLOB_CHARS_MAX = 500
ALTERNATIVES_MAX = 64

_ANY_FOLDERS = "**"


class Glob:
    """A compiled pattern; an empty one fits everything.

    Raises:
        ToolRefused: the pattern is too long, or has too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > GLOB_CHARS_MAX:
            raise ToolRefused(f"the glob is longer than {GLOB_CHARS_MAX} characters; shorten it")
        self._excludes = pattern.startswith("!")
        plain = pattern.removeprefix("!")
        self._ways = [_compiled(way) for way in _alternatives(plain)] if plain else []

    def fits(self, path: str) -> bool:
        """Whether a path relative to the root fits."""
        if not self._ways:
            return True
        parts = path.split("/")
        return any(_fits(way, parts) for way in self._ways) != self._excludes


def _compiled(pattern: str) -> list[re.Pattern[str] | None]:
    """One matcher for each part of a path; None for any number of folders."""
    anchored = pattern.startswith("/") or "/" in pattern.rstrip("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not anchored:
        parts.insert(0, _ANY_FOLDERS)
    if pattern.endswith("/"):
        parts.append(_ANY_FOLDERS)
    return [None if part == _ANY_FOLDERS else re.compile(fnmatch.translate(part)) for part in parts]


def _fits(way: list[re.Pattern[str] | None], parts: list[str]) -> bool:
    states = _with_skips(way, {0})
    for part in parts:
        reached: set[int] = set()
        for state in states:
            matcher = way[state] if state < len(way) else _END
            if matcher is None:
                reached.add(state)
            elif matcher.match(part):
                reached.add(state + 1)
        states = _with_skips(way, reached)
    return len(way) in states


_END = re.compile(r"(?!)")
"""Matches nothing: the pattern is used up and the path goes on."""


def _with_skips(way: list[re.Pattern[str] | None], states: set[int]) -> set[int]:
    """`**` may also stand for no folder at all."""
    found = set(states)
    for state in sorted(states):
        while state < len(way) and way[state] is None:
            state += 1
            found.add(state)
    return found


def _alternatives(pattern: str) -> list[str]:
    """The pattern without its braces, once for every choice."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        braces = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if braces is None:
            done.append(current)
        else:
            head, tail = current[: braces.start()], current[braces.end() :]
            waiting.extend(head + choice + tail for choice in braces.group(1).split(","))
        if len(done) + len(waiting) > ALTERNATIVES_MAX:
            raise ToolRefused(f"the glob has more than {ALTERNATIVES_MAX} alternatives")
    return done
