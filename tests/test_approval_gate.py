"""The gate: what the policy says of a call before anybody is asked."""

from typing import Any

import pytest
from steps import tool

from tenure.actors.approval_gate import Verdict, deny_reason, ruling_of, verdict_of
from tenure.messages.models import ToolSpec
from tenure.messages.settings import Mode, Policy, Rule

READ = tool("read", mutating=False, path_arguments=("path",))
WRITE = tool("write", path_arguments=("path",))
RENAME = tool("rename", path_arguments=("path", "new_path"))
PING = tool("ping")


def policy(
    mode: Mode = "safe",
    mutating: Rule = "ask",
    tools: dict[str, Rule] | None = None,
    working_dirs: tuple[str, ...] = (),
) -> Policy:
    return Policy(
        version="1", mode=mode, mutating=mutating, tools=tools or {}, working_dirs=working_dirs
    )


def verdict(
    policy: Policy, tool: ToolSpec = WRITE, granted: Verdict | None = None, **arguments: Any
) -> Verdict:
    return verdict_of(policy, tool, arguments, granted)


# --- safe: rules -----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["allow", "ask", "deny"])
def test_tools_that_change_something_follow_the_rule_for_them_and_reads_are_free(
    rule: Rule,
) -> None:
    assert verdict(policy(mutating=rule), WRITE) == rule
    assert verdict(policy(mutating=rule), READ) == "allow"


@pytest.mark.parametrize("own", ["allow", "ask", "deny"])
@pytest.mark.parametrize("rule", ["allow", "ask", "deny"])
def test_rule_of_one_tool_wins_over_the_rule_for_all(own: Rule, rule: Rule) -> None:
    assert verdict(policy(mutating=rule, tools={"write": own}), WRITE) == own
    assert verdict(policy(mutating=rule, tools={"read": own}), READ) == own


# --- safe: working directories -----------------------------------------------------------------

IN_NOTES = policy(mutating="ask", working_dirs=("notes",))


@pytest.mark.parametrize(
    ("spec", "arguments", "expected"),
    [
        (READ, {"path": "notes/a.md"}, "allow"),
        (WRITE, {"path": "notes/a.md"}, "allow"),
        (WRITE, {"path": "notes"}, "allow"),
        (READ, {"path": "other/a.md"}, "ask"),
        (WRITE, {"path": "other/a.md"}, "ask"),
        (WRITE, {"path": "notes-old/a.md"}, "ask"),
        (WRITE, {"path": "notes/../other/a.md"}, "ask"),
        (WRITE, {"path": "other/../notes/a.md"}, "allow"),
        (WRITE, {"path": "../notes/a.md"}, "ask"),
        (WRITE, {"path": "/notes/a.md"}, "ask"),
        (WRITE, {"path": "notes\\a.md"}, "allow"),
        (WRITE, {"path": ""}, "ask"),
        (WRITE, {"path": 7}, "ask"),
        (WRITE, {}, "ask"),
        (PING, {}, "ask"),
        (RENAME, {"path": "notes/a.md", "new_path": "notes/b.md"}, "allow"),
        (RENAME, {"path": "notes/a.md", "new_path": "out/b.md"}, "ask"),
        (RENAME, {"path": "out/a.md", "new_path": "notes/b.md"}, "ask"),
    ],
)
def test_inside_the_working_directories_is_allowed_and_outside_is_asked(
    spec: ToolSpec, arguments: dict[str, Any], expected: Verdict
) -> None:
    assert verdict_of(IN_NOTES, spec, arguments, None) == expected


@pytest.mark.parametrize("root", [".", "", "./"])
def test_the_root_as_working_directory_holds_everything_in_it(root: str) -> None:
    assert verdict(policy(working_dirs=(root,)), WRITE, path="a/b.md") == "allow"
    assert verdict(policy(working_dirs=(root,)), WRITE, path="../b.md") == "ask"


def test_boundary_beats_what_the_rules_allow_and_never_what_they_deny() -> None:
    allowing = policy(mutating="allow", tools={"read": "allow"}, working_dirs=("notes",))
    assert verdict(allowing, WRITE, path="out/a.md") == "ask"
    assert verdict(allowing, READ, path="out/a.md") == "ask"
    denying = policy(mutating="deny", tools={"read": "deny"}, working_dirs=("notes",))
    assert verdict(denying, WRITE, path="notes/a.md") == "deny"
    assert verdict(denying, READ, path="notes/a.md") == "deny"


def test_several_working_directories_are_one_boundary() -> None:
    both = policy(working_dirs=("notes", "drafts/2026"))
    assert verdict(both, RENAME, path="notes/a.md", new_path="drafts/2026/a.md") == "allow"
    assert verdict(both, RENAME, path="notes/a.md", new_path="drafts/a.md") == "ask"


# --- yolo and plan -----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["allow", "ask", "deny"])
def test_yolo_lifts_the_rule_for_all_and_the_boundary(rule: Rule) -> None:
    free = policy(mode="yolo", mutating=rule, working_dirs=("notes",))
    assert verdict(free, WRITE, path="out/a.md") == "allow"
    assert verdict(free, PING) == "allow"


@pytest.mark.parametrize("own", ["ask", "deny"])
def test_yolo_never_lifts_the_rule_of_one_tool(own: Rule) -> None:
    assert verdict(policy(mode="yolo", tools={"write": own}), WRITE) == own


@pytest.mark.parametrize("own", ["allow", "ask", "deny", None])
@pytest.mark.parametrize("granted", ["allow", None])
def test_plan_denies_every_change_whatever_else_allows_it(
    own: Rule | None, granted: Verdict | None
) -> None:
    tools: dict[str, Rule] = {} if own is None else {"write": own}
    planning = policy(mode="plan", mutating="allow", tools=tools)
    assert verdict(planning, WRITE, granted) == "deny"


def test_plan_lets_read_and_keeps_the_denial_of_a_reading_tool() -> None:
    assert verdict(policy(mode="plan", working_dirs=("notes",)), READ, path="out/a") == "allow"
    assert verdict(policy(mode="plan", tools={"read": "deny"}), READ) == "deny"


def test_denial_says_whether_the_mode_or_the_policy_denies() -> None:
    def reason(of: Policy, spec: ToolSpec) -> str:
        return deny_reason(ruling_of(of, spec, {"path": "a"}, None))

    assert "plan mode" in reason(policy(mode="plan"), WRITE)
    assert "policy" in reason(policy(mode="plan", tools={"read": "deny"}), READ)
    assert "policy" in reason(policy(mutating="deny"), WRITE)
    assert "write:a" in reason(policy(tools={"write:a": "deny"}), WRITE)


# --- what was said for a session -----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["safe", "yolo"])
@pytest.mark.parametrize("own", ["allow", "ask", None])
def test_what_was_granted_for_the_session_is_not_asked_again(mode: Mode, own: Rule | None) -> None:
    """Also where a rule says ask: the answer to that question is the grant."""
    tools: dict[str, Rule] = {} if own is None else {"write": own}
    asking = policy(mode=mode, tools=tools, working_dirs=("notes",))
    assert verdict(asking, WRITE, "allow", path="out/a.md") == "allow"


@pytest.mark.parametrize("own", ["allow", "ask", "deny", None])
def test_what_was_denied_for_the_session_stays_denied(own: Rule | None) -> None:
    tools: dict[str, Rule] = {} if own is None else {"write": own}
    assert verdict(policy(mutating="allow", tools=tools), WRITE, "deny") == "deny"


def test_grant_never_lifts_a_denial_of_the_policy() -> None:
    assert verdict(policy(tools={"write": "deny"}), WRITE, "allow") == "deny"
