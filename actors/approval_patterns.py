"""Does a rule's pattern fit a call?  Pure, and the same for everybody who asks.

A rule that allows must fit everything that a call does; one that asks or denies
needs to fit any part of it.  Where it cannot be told what a command line does
(substitutions, redirections, variables, quotes that do not end), nothing that
allows fits it.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

from tenure.actors.approval_commands import commands_of, readings_of
from tenure.messages.models import ToolSpec
from tenure.messages.patterns import PatternProblem, RulePattern, parse_rule

# --- what a call works on ------------------------------------------------------------------


class Paths(msgspec.Struct, frozen=True):
    """Files."""

    resolved: tuple[str, ...]
    """Relative to the root with links followed; absolute where it is outside."""
    written: tuple[str, ...]
    """As the model wrote them, without `.` and `..`."""


class Commands(msgspec.Struct, frozen=True):
    """A command line."""

    parts: tuple[tuple[str, ...], ...]
    """The words of each command in it."""


class Opaque(msgspec.Struct, frozen=True):
    """A command line of which nobody can tell what it runs."""

    text: str


class Texts(msgspec.Struct, frozen=True):
    """Anything else: the texts among the arguments."""

    texts: tuple[str, ...]


Subject = Paths | Commands | Opaque | Texts


def subject_of(
    tool: ToolSpec, arguments: dict[str, Any], resolved: tuple[str, ...], written: tuple[str, ...]
) -> Subject:
    """What a call works on."""
    if tool.path_arguments:
        return Paths(resolved or written, written)
    command = arguments.get(tool.command_argument)
    if isinstance(command, str):
        parts = commands_of(command)
        return Opaque(command) if parts is None else Commands(parts)
    return Texts(tuple(value for value in arguments.values() if isinstance(value, str)))


# --- does it fit -----------------------------------------------------------------------------


def names_tool(rule: RulePattern, tool: str) -> bool:
    return _text_fits(rule.tool, tool)


def fits_all(rule: RulePattern, subject: Subject) -> bool:
    """For a rule that allows: does it speak of everything that the call does?"""
    pattern = rule.subject
    match subject:
        case Paths(resolved=paths):
            return bool(paths) and all(_path_fits(pattern, path) for path in paths)
        case Commands(parts=parts):
            return bool(parts) and all(_command_fits(pattern, " ".join(words)) for words in parts)
        case Opaque():
            return False
        case Texts(texts=texts):
            return bool(texts) and all(_text_fits(pattern, text) for text in texts)


def fits_any(rule: RulePattern, subject: Subject) -> bool:
    """For a rule that asks or denies: does it speak of anything that the call does?

    Upper and lower case are one here, as they are on some disks.
    """
    pattern = rule.subject.casefold()
    match subject:
        case Paths(resolved=resolved, written=written):
            return any(_path_fits(pattern, path.casefold()) for path in (*resolved, *written))
        case Commands(parts=parts):
            readings = [text for words in parts for text in readings_of(words)]
            return any(_command_fits(pattern, text.casefold()) for text in readings)
        case Opaque():
            # It may run anything: what must be asked for is asked for.
            return True
        case Texts(texts=texts):
            return any(_text_fits(pattern, text.casefold()) for text in texts)


def split_fits(rules: tuple[RulePattern, ...], subject: Subject) -> RulePattern | None:
    """The rules that allow, together: each part of a call may be allowed by its own.

    Gives the first of them where they allow the whole, else None.
    """
    if isinstance(subject, Commands):
        each: list[Subject] = [Commands((words,)) for words in subject.parts]
    elif isinstance(subject, Paths):
        each = [Paths((path,), ()) for path in subject.resolved]
    else:
        each = [subject]
    found = [next((rule for rule in rules if fits_all(rule, part)), None) for part in each]
    return found[0] if found and all(found) else None


@lru_cache(maxsize=1_024)
def rule_of(key: str) -> RulePattern | None:
    """A key of the policy, read; None for one that is no rule (the settings say so)."""
    parsed = parse_rule(key)
    return None if isinstance(parsed, PatternProblem) else parsed


# --- pure helpers ------------------------------------------------------------------------


def _path_fits(pattern: str, path: str) -> bool:
    return _path_regex(pattern).fullmatch(path) is not None


def _command_fits(pattern: str, text: str) -> bool:
    return _command_regex(pattern).fullmatch(text) is not None


def _text_fits(pattern: str, text: str) -> bool:
    return _text_regex(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1_024)
def _path_regex(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    segments = pattern.split("/")
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "**":
            parts.append(".*" if last else "(?:[^/]+/)*")
        else:
            parts.append(_glob(segment, "[^/]") + ("" if last else "/"))
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=1_024)
def _command_regex(pattern: str) -> re.Pattern[str]:
    begins, any_arguments, rest = pattern.rpartition(" *")
    if any_arguments and not rest:
        return re.compile(_glob(begins, ".") + "(?: .*)?", re.DOTALL)
    return _text_regex(pattern)


@lru_cache(maxsize=1_024)
def _text_regex(pattern: str) -> re.Pattern[str]:
    return re.compile(_glob(pattern, "."), re.DOTALL)


def _glob(pattern: str, char: str) -> str:
    marks = {"*": f"{char}*", "?": char}
    # Stars in a row say the same as one, and would make the match slow.
    return "".join(marks.get(each) or re.escape(each) for each in re.sub(r"\*+", "*", pattern))
