"""The gate: what the policy says of a call, before anybody is asked.  Pure.

Order: the plan mode's denial wins over everything; then a denial of this tool or
of what the call works on, by rule, by pattern or for this session; then a
pattern that asks, which no grant lifts; then what the user granted for this
session, a pattern that allows, the rule for this tool, the rule for tools that
change something; then, in safe mode, the working directories, which a grant was
given in the sight of.  Patterns: messages/patterns.py.
"""

import posixpath
from typing import Any, Literal

import msgspec

from tenure.actors.approval_patterns import (
    Opaque,
    Subject,
    fits_any,
    names_tool,
    rule_of,
    split_fits,
    subject_of,
)
from tenure.messages.approval import Ground
from tenure.messages.models import ToolSpec
from tenure.messages.patterns import RulePattern
from tenure.messages.settings import Policy, Rule

Verdict = Literal["allow", "ask", "deny"]

PLAN_REASON = "the seat is in plan mode: only reading is allowed"
POLICY_REASON = "the policy denies this tool"


class Ruling(msgspec.Struct, frozen=True):
    """A verdict, and what it rests on."""

    verdict: Verdict
    ground: Ground
    rule: str = ""
    """The rule that decided, as it stands in the policy; empty for none."""


def verdict_of(
    policy: Policy,
    tool: ToolSpec,
    arguments: dict[str, Any],
    granted: Verdict | None,
    resolved: tuple[str, ...] = (),
) -> Verdict:
    """As `ruling_of`, without the reason."""
    return ruling_of(policy, tool, arguments, granted, resolved).verdict


def ruling_of(
    policy: Policy,
    tool: ToolSpec,
    arguments: dict[str, Any],
    granted: Verdict | None,
    resolved: tuple[str, ...] = (),
) -> Ruling:
    """Allow, ask or deny, from the policy alone.

    Args:
        granted: what the user said of this tool for the whole session, if anything.
        resolved: the files of the call with every link followed, relative to the
            root, absolute where they are outside; empty takes them as written.
    """
    if policy.mode == "plan" and tool.mutating:
        return Ruling("deny", "mode", "plan")
    written = _written(tool, arguments)
    subject = subject_of(tool, arguments, resolved, written)
    ruling = _by_rules(policy, tool, subject, granted)
    if ruling.ground == "grant" or policy.mode != "safe" or not policy.working_dirs:
        return ruling
    if ruling.ground == "pattern" and not tool.path_arguments:
        return ruling  # the user allowed this very command, wherever it works
    return _bounded(ruling, policy.working_dirs, resolved or written)


def deny_reason(ruling: Ruling) -> str:
    """What the model is told of a denial that nobody was asked about."""
    match ruling.ground:
        case "mode":
            return PLAN_REASON
        case "pattern":
            return f"the policy denies this ({ruling.rule})"
        case "grant":
            return "the user denied this tool for the session"
        case _:
            return POLICY_REASON


# --- pure helpers ------------------------------------------------------------------------


def _by_rules(policy: Policy, tool: ToolSpec, subject: Subject, granted: Verdict | None) -> Ruling:
    plain, patterns = _rules_for(policy, tool.name)
    denies = _restricting(patterns, "deny", subject)
    if denies and not isinstance(subject, Opaque):
        return Ruling("deny", "pattern", denies)
    if plain is not None and plain.verdict == "deny":
        return plain
    if granted == "deny":
        return Ruling("deny", "grant")
    asks = denies or _restricting(patterns, "ask", subject)
    if asks:
        return Ruling("ask", "pattern", asks)
    if granted == "allow":
        return Ruling("allow", "grant")
    allows = tuple(rule for rule, _, said in patterns if said == "allow")
    fitting = split_fits(allows, subject)
    if fitting is not None:
        return Ruling("allow", "pattern", f"{fitting.tool}:{fitting.subject}")
    if plain is not None:
        return plain
    if not tool.mutating:
        return Ruling("allow", "default")
    if policy.mode == "yolo":
        return Ruling("allow", "mode", "yolo")
    return Ruling(policy.mutating, "default")


def _rules_for(
    policy: Policy, tool: str
) -> tuple[Ruling | None, list[tuple[RulePattern, str, Rule]]]:
    """The rule for the whole tool, and those with a pattern.

    Of several rules for the whole tool one that denies counts, else the one with
    its very name, else the one that asks.
    """
    plain: Ruling | None = None
    patterns: list[tuple[RulePattern, str, Rule]] = []
    for key, said in policy.tools.items():
        rule = rule_of(key)
        if rule is None or not names_tool(rule, tool):
            continue
        if rule.subject:
            patterns.append((rule, key, said))
        else:
            plain = _stricter(plain, Ruling(said, "rule", key), tool)
    return plain, patterns


def _stricter(one: Ruling | None, other: Ruling, tool: str) -> Ruling:
    if one is None:
        return other
    if "deny" in (one.verdict, other.verdict):
        return one if one.verdict == "deny" else other
    if tool in (one.rule, other.rule):
        return one if one.rule == tool else other
    return one if one.verdict == "ask" else other


def _restricting(
    patterns: list[tuple[RulePattern, str, Rule]], wanted: Rule, subject: Subject
) -> str:
    """The first pattern that says so of anything that the call does; empty for none."""
    return next(
        (key for rule, key, said in patterns if said == wanted and fits_any(rule, subject)), ""
    )


def _bounded(ruling: Ruling, working_dirs: tuple[str, ...], paths: tuple[str, ...]) -> Ruling:
    """Inside the working directories allow, outside ask; what is denied stays denied.

    A pattern that asks goes on asking inside them.
    """
    if ruling.verdict == "deny" or (ruling.verdict == "ask" and ruling.ground == "pattern"):
        return ruling
    inside = bool(paths) and all(
        any(_within(path, folder) for folder in working_dirs) for path in paths
    )
    return Ruling("allow" if inside else "ask", "working_dirs")


def _written(tool: ToolSpec, arguments: dict[str, Any]) -> tuple[str, ...]:
    """The files that a call names, as far as that can be told without the disk."""
    named = (arguments.get(name) for name in tool.path_arguments)
    return tuple(_plain(path) for path in named if isinstance(path, str) and path)


def _plain(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _within(path: str, folder: str) -> bool:
    """By segments: `notes` holds `notes/a.md`, and not `notes-old/a.md`."""
    base = _plain(folder or ".")
    if path.startswith(("/", "../")) or path == "..":
        return base.startswith("/") and (path == base or path.startswith(base + "/"))
    return base == "." or path == base or path.startswith(base + "/")
