"""Rules for calls: a tool, or a tool and a pattern of what the call works on.

    write                 every call of the tool
    mcp__github__*        every tool whose name begins so
    write:notes/**        calls whose files all lie below notes/
    bash:git *            command lines that run nothing but git

Before the first colon stands the tool's name, in which `*` stands for any
characters.  Behind it stands the pattern.  For a call that names files it is
compared with each path, relative to the root and with every link followed: `*`
and `?` stay within one segment, `**` is any number of segments, and a pattern
that names a folder holds what is below it only with `/**`.  For a call with a
command line it is compared with each command in it: `*` is any characters, and
a last ` *` also fits a command without arguments.  Everything else is compared
with the text of the arguments.
"""

import msgspec

PATTERN_CHARS_MAX = 1_000
_SHELL = ("&&", "||", ";", "`", "$(")
_NAME_CHARS = frozenset("_.-*/@")


class RulePattern(msgspec.Struct, frozen=True, kw_only=True):
    """The key of a rule, read."""

    tool: str
    subject: str
    """What the call must work on; empty for every call of the tool."""


class PatternProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a text is the key of no rule."""

    reason: str


def parse_rule(key: str) -> RulePattern | PatternProblem:
    """Read the key of a rule, `TOOL` or `TOOL:PATTERN`."""
    tool, colon, subject = key.partition(":")
    problem = _tool_problem(tool) or (_subject_problem(subject) if colon else "")
    if problem:
        return PatternProblem(reason=f"{key!r} is no rule: {problem}")
    return RulePattern(tool=tool, subject=subject)


def _tool_problem(tool: str) -> str:
    if not tool:
        return "the name of a tool comes first, as in write:notes/**"
    strange = [char for char in tool if not (char.isalnum() or char in _NAME_CHARS)]
    if strange:
        return f"no tool has {strange[0]!r} in its name"
    return ""


def _subject_problem(subject: str) -> str:
    if not subject:
        return "nothing stands behind the colon; leave it away for every call of the tool"
    if subject != subject.strip():
        return "the pattern begins or ends with a blank"
    if len(subject) > PATTERN_CHARS_MAX:
        return f"the pattern is longer than {PATTERN_CHARS_MAX} characters"
    if any(ord(char) < 32 or ord(char) == 127 for char in subject):
        return "the pattern has a control character"
    found = next((mark for mark in _SHELL if mark in subject), "")
    if found:
        return f"a pattern names one command, without {found!r}; write a rule for each"
    if any("**" in part and part != "**" for part in subject.split("/")) and "/" in subject:
        return "** stands for whole folders, between slashes"
    return ""
