"""Unified diffs of bounded size, made in bounded time."""

import difflib
from collections.abc import Iterable

from tenure.runtime.doors.tools.text import shown

CONTEXT_LINES = 3
COMPARED_LINES_MAX = 1_000
"""Where more lines differ on either side, they are shown as replaced as a whole."""
DIFF_CHARS_MAX = 30_000

Span = tuple[str, int, int, int, int]
"""As difflib: a tag, and from where to where in the old and the new lines."""

_NO_NEWLINE = "\\ No newline at end of file"


def unified_diff(before: str | None, after: str | None, path: str) -> str:
    """The change from one text to another; None is a file that is not there.

    Empty where nothing changes.  What is beyond `DIFF_CHARS_MAX` is left out,
    and a last line says how much.
    """
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after or "")
    path = shown(path)
    rows = [
        f"--- {'/dev/null' if before is None else 'a/' + path}",
        f"+++ {'/dev/null' if after is None else 'b/' + path}",
    ]
    for hunk in _hunks(_spans(old, new)):
        rows.append(_header(hunk))
        for tag, old_from, old_to, new_from, new_to in hunk:
            if tag == "equal":
                rows.extend(_marked(" ", old[old_from:old_to]))
            else:
                rows.extend(_marked("-", old[old_from:old_to]))
                rows.extend(_marked("+", new[new_from:new_to]))
    return _capped(rows)


def _lines(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends one."""
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _spans(old: list[str], new: list[str]) -> list[Span]:
    """What is equal and what is replaced, the equal ends first, because they cost nothing."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail_max = shorter - head
    tail = next((i for i in range(tail_max) if old[-1 - i] != new[-1 - i]), tail_max)
    old_end, new_end = len(old) - tail, len(new) - tail
    spans: list[Span] = [("equal", 0, head, 0, head)] if head else []
    if max(old_end, new_end) - head > COMPARED_LINES_MAX:
        spans.append(("replace", head, old_end, head, new_end))
    else:
        matcher = difflib.SequenceMatcher(None, old[head:old_end], new[head:new_end])
        spans += [
            (tag, a + head, b + head, c + head, d + head)
            for tag, a, b, c, d in matcher.get_opcodes()
        ]
    if tail:
        spans.append(("equal", old_end, len(old), new_end, len(new)))
    return spans


def _hunks(spans: list[Span]) -> list[list[Span]]:
    """The changes with their context; those that lie close together share a hunk."""
    hunks: list[list[Span]] = []
    current: list[Span] = []
    for index, (tag, a, b, c, d) in enumerate(spans):
        if tag != "equal":
            current.append((tag, a, b, c, d))
            continue
        size = b - a
        last = index == len(spans) - 1
        if current and not last and size <= 2 * CONTEXT_LINES:
            current.append((tag, a, b, c, d))
            continue
        if current:
            after = min(size, CONTEXT_LINES)
            hunks.append([*current, (tag, a, a + after, c, c + after)])
            current = []
        if not last:
            before = min(size, CONTEXT_LINES)
            current = [(tag, b - before, b, d - before, d)]
    if any(span[0] != "equal" for span in current):
        hunks.append(current)
    return hunks


def _header(hunk: list[Span]) -> str:
    old = _range(hunk[0][1], hunk[-1][2])
    new = _range(hunk[0][3], hunk[-1][4])
    return f"@@ -{old} +{new} @@"


def _range(start: int, end: int) -> str:
    count = end - start
    # An empty range names the line before it.
    return f"{start + 1 if count else start}" + ("" if count == 1 else f",{count}")


def _marked(mark: str, lines: Iterable[str]) -> list[str]:
    rows: list[str] = []
    for line in lines:
        rows.append(mark + line.removesuffix("\n").replace("\r", "\\r"))
        if not line.endswith("\n"):
            rows.append(_NO_NEWLINE)
    return rows


def _capped(rows: list[str]) -> str:
    room = DIFF_CHARS_MAX
    for index, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            kept = rows[:index]
            if not any(line[:1] in "+-" for line in kept[2:]):
                kept.append(row[: DIFF_CHARS_MAX // 2] + "…")
            return "\n".join((*kept, f"[{len(rows) - index:,} more lines of the diff left out]\n"))
    return "\n".join(rows) + "\n"
