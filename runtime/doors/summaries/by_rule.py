"""The summary that needs no language model: what was asked, what was answered, which files.

It is the default, and it stands in where a model fails.  It is deterministic,
never longer than it may be, and says what it is.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    UserMessage,
    calls_of,
    text_of,
)
from tenure.runtime.doors.summaries.writing import cut_middle

HEAD = "(This summary was put together by rule, without a language model.)"
CHARS_MAX = 24_000
EARLIER_SHARE = 0.35
"""How much of the room the summary before this one may take."""
ASKED_CHARS_MAX = 600
ANSWERED_CHARS_MAX = 900
LINES_MATCHED_MAX = 12
LINE_CHARS_MAX = 300
WORD_CHARS_MIN = 4
"""Shorter words of the instructions find too much."""

_WORD = re.compile(r"\w+")
_RULE = re.compile(r"\b(always|never|must|do not|don't|only|prefer|should not)\b", re.IGNORECASE)


class Turn(msgspec.Struct, frozen=True):
    """One prompt, and what came of it."""

    asked: str
    answered: str
    tools: tuple[str, ...]
    """The names of the tools that were called, in order."""


def summary_by_rule(
    messages: Sequence[ChatMessage], *, earlier: str, instructions: str, chars_max: int
) -> str:
    """Summarise messages.

    Args:
        messages: those that are summarised, without an earlier summary.
        earlier: the text of the summary before this one; empty for none.
        instructions: what the user wants kept: lines with its words are quoted.
    """
    room = min(chars_max, CHARS_MAX)
    turns = _turns(messages)
    parts = [HEAD]
    if earlier:
        parts.append(f"## Earlier summary\n{cut_middle(earlier, int(room * EARLIER_SHARE))}")
    if turns and turns[0].asked:
        parts.append(f"## Goal\n{_short(turns[0].asked, ASKED_CHARS_MAX)}")
    parts += _section("Constraints & Preferences", _rules(messages))
    parts += _section("Critical Context", _matching(messages, instructions))
    size = sum(len(part) + 2 for part in parts)
    parts += _progress(turns, room - size)
    return cut_middle("\n\n".join(parts), room)


def _progress(turns: Sequence[Turn], room: int) -> list[str]:
    """As many of the last turns as there is room for, in order."""
    told: list[str] = []
    left = room - len("## Progress\n") - 80
    for turn in reversed(turns):
        text = _told(turn)
        if len(text) + 1 > left:
            break
        told.append(text)
        left -= len(text) + 1
    if not told:
        return []
    missing = len(turns) - len(told)
    lines = [f"- ({missing} earlier turns are left out)"] if missing else []
    return ["\n".join(["## Progress", *lines, *reversed(told)])]


def _told(turn: Turn) -> str:
    lines = [f"- Asked: {_short(turn.asked, ASKED_CHARS_MAX)}" if turn.asked else "- (went on)"]
    if turn.tools:
        counts = dict.fromkeys(turn.tools, 0)
        for name in turn.tools:
            counts[name] += 1
        lines.append("  Tools: " + ", ".join(f"{name} ({n})" for name, n in counts.items()))
    if turn.answered:
        lines.append(f"  Answered: {_short(turn.answered, ANSWERED_CHARS_MAX)}")
    return "\n".join(lines)


def _turns(messages: Iterable[ChatMessage]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        if isinstance(message, UserMessage):
            turns.append(Turn(text_of(message), "", ()))
            continue
        if not isinstance(message, AssistantMessage):
            continue
        turn = turns.pop() if turns else Turn("", "", ())
        tools = turn.tools + tuple(call.name for call in calls_of(message))
        turns.append(Turn(turn.asked, text_of(message) or turn.answered, tools))
    return turns


def _rules(messages: Iterable[ChatMessage]) -> list[str]:
    """Lines of the user that say how things are to be done."""
    lines = (
        line
        for message in messages
        if isinstance(message, UserMessage)
        for line in text_of(message).split("\n")
        if _RULE.search(line)
    )
    return _distinct(lines)


def _matching(messages: Iterable[ChatMessage], instructions: str) -> list[str]:
    """Lines that have a word of the instructions in them."""
    words = {w.lower() for w in _WORD.findall(instructions) if len(w) >= WORD_CHARS_MIN}
    if not words:
        return []
    lines = (
        line
        for message in messages
        for line in text_of(message).split("\n")
        if words & {each.lower() for each in _WORD.findall(line)}
    )
    return _distinct(lines)


def _distinct(lines: Iterable[str]) -> list[str]:
    """The last lines, each once."""
    short = [_short(line, LINE_CHARS_MAX) for line in lines if line.strip()]
    return list(dict.fromkeys(reversed(short)))[:LINES_MATCHED_MAX][::-1]


def _section(name: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([f"## {name}", *(f"- {line}" for line in lines)])] if lines else []


def _short(text: str, chars_max: int) -> str:
    """On one line, with its end cut off where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"
