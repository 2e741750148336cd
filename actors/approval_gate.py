"""The gate: what the policy says of a call, before anybody is asked.  Pure.

Order: the plan mode's denial wins over everything; then a denial of this tool, by
rule or for this session; then what the user granted for this session, the rule
for this tool, the rule for tools that change something; then, in safe mode, the
working directories, which a grant was given in the sight of.
"""

import posixpath
from typing import Any, Literal

from tenure.messages.models import ToolSpec
from tenure.messages.settings import Policy

Verdict = Literal["allow", "ask", "deny"]

PLAN_REASON = "the seat is in plan mode: only reading is allowed"
POLICY_REASON = "the policy denies this tool"


def verdict_of(
    policy: Policy, tool: ToolSpec, arguments: dict[str, Any], granted: Verdict | None
) -> Verdict:
    """Allow, ask or deny, from the policy alone.

    Args:
        granted: what the user said of this tool for the whole session, if anything.
    """
    if policy.mode == "plan" and tool.mutating:
        return "deny"
    own = policy.tools.get(tool.name)
    if own == "deny" or granted == "deny":
        return "deny"
    if granted is not None:
        return granted
    if own is not None:
        verdict: Verdict = own
    elif not tool.mutating or policy.mode == "yolo":
        verdict = "allow"
    else:
        verdict = policy.mutating
    if policy.mode == "safe" and policy.working_dirs:
        return _bounded(verdict, policy.working_dirs, tool, arguments)
    return verdict


def _bounded(
    verdict: Verdict, working_dirs: tuple[str, ...], tool: ToolSpec, arguments: dict[str, Any]
) -> Verdict:
    """Inside the working directories allow, outside ask; what is denied stays denied."""
    if verdict == "deny":
        return "deny"
    named = [arguments.get(name) for name in tool.path_arguments]
    targets = [target for target in named if isinstance(target, str) and target]
    if not targets:
        return "ask"
    inside = all(any(_within(target, folder) for folder in working_dirs) for target in targets)
    return "allow" if inside else "ask"


def _within(target: str, folder: str) -> bool:
    """By segments: `notes` holds `notes/a.md`, and not `notes-old/a.md`."""
    path = posixpath.normpath(target.replace("\\", "/"))
    base = posixpath.normpath(folder.replace("\\", "/") or ".")
    if path.startswith(("/", "../")) or path == "..":
        return False
    return base == "." or path == base or path.startswith(base + "/")


def deny_reason(policy: Policy, tool: ToolSpec) -> str:
    if policy.mode == "plan" and tool.mutating:
        return PLAN_REASON
    return POLICY_REASON
