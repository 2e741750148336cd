"""Rules with a pattern: what they fit, what must not slip through them, and what is no rule."""

from typing import Any

import pytest
from steps import tool

from tenure.actors.approval_commands import commands_of
from tenure.actors.approval_gate import Verdict, ruling_of, verdict_of
from tenure.messages.patterns import PatternProblem, RulePattern, parse_rule
from tenure.messages.settings import Mode, Policy, Rule

BASH = tool("bash")
WRITE = tool("write", path_arguments=("path",))
READ = tool("read", mutating=False, path_arguments=("path",))
RENAME = tool("rename", path_arguments=("path", "newPath"))
FETCH = tool("fetch")


def policy(tools: dict[str, Rule], mode: Mode = "safe", **fields: Any) -> Policy:
    return Policy(version="1", mode=mode, tools=tools, **fields)


def of_line(tools: dict[str, Rule], command: str, granted: Verdict | None = None) -> Verdict:
    return verdict_of(policy(tools), BASH, {"command": command}, granted)


# --- command lines ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["git status", "git", "git  log   -1", "git commit -m 'a; b && c'", 'git commit -m "x | y"',
     "git add a && git commit", "git log | git shortlog", "git a; git b", "git a &"],
)  # fmt: skip
def test_pattern_that_allows_a_command_fits_it_and_lines_made_of_it_alone(line: str) -> None:
    assert of_line({"bash:git *": "allow"}, line) == "allow"


@pytest.mark.parametrize(
    "line",
    ["git status; rm -rf x", "git status && rm x", "git a || rm x", "git a | sh", "git a & rm x",
     "git a\nrm x", "git $(rm x)", "git `rm x`", "git log > x", "git log < x", "git $X",
     'git "$(rm x)"', 'git "`rm x`"', "(rm x)", "git {a,b}", "X=1 git a", "gitx", "git-x a",
     "/tmp/git a", "git 'a", 'git "a', "git a \\\nrm x", "g* status", "sudo git a", ""],
)  # fmt: skip
def test_nothing_else_slips_through_a_pattern_that_allows_a_command(line: str) -> None:
    assert of_line({"bash:git *": "allow"}, line) == "ask"


@pytest.mark.parametrize(
    "line",
    ["rm -rf x", "rm", "ls; rm x", "ls && rm x", "ls | xargs rm x", "sudo rm x", "/bin/rm x",
     "r'm' x", '"rm" x', "X=1 rm x", "sh -c 'rm x'", "env A=1 rm x", "RM x", "ls\nrm x",
     "bash -c 'ls; rm x'"],
)  # fmt: skip
def test_pattern_that_denies_a_command_finds_it_in_a_line(line: str) -> None:
    assert of_line({"bash": "allow", "bash:rm *": "deny"}, line) == "deny"


@pytest.mark.parametrize("line", ["$(echo rm) x", "`echo rm` x", "r${X}m x", "/bin/r? x", "ls > x"])
@pytest.mark.parametrize("rule", ["ask", "deny"])
def test_line_that_could_run_anything_is_asked_for_where_a_pattern_restricts(
    line: str, rule: Rule
) -> None:
    assert of_line({"bash": "allow", "bash:rm *": rule}, line) == "ask"
    assert of_line({"bash": "allow"}, line) == "allow"
    assert of_line({"bash": "deny", "bash:rm *": rule}, line) == "deny"


def test_each_command_of_a_line_may_be_allowed_by_a_rule_of_its_own() -> None:
    rules: dict[str, Rule] = {"bash:git *": "allow", "bash:ls *": "allow"}
    assert of_line(rules, "git status && ls -l") == "allow"
    assert of_line(rules, "git status && cat x") == "ask"


def test_commands_are_read_as_a_shell_reads_them() -> None:
    assert commands_of("a 'b c' \"d e\" f\\ g") == (("a", "b c", "d e", "f g"),)
    assert commands_of('a "x\\"y" "\\n"') == (("a", 'x"y', "\\n"),)
    assert commands_of("a;;b") == (("a",), ("b",))
    assert commands_of("a ''") == (("a", ""),)


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/x/y/a.py", True),
        ("src/**", "src", False),
        ("src/**", "srcs/a.py", False),
        ("src/*", "src/a.py", True),
        ("src/*", "src/x/a.py", False),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("**/*.md", "x/a.txt", False),
        ("a?.md", "ab.md", True),
        ("a?.md", "a/.md", False),
        ("a.md", "a.md", True),
        ("a.md", "axmd", False),
        ("[a].md", "[a].md", True),
        ("src/**", "src/../other/a.py", False),
        ("src/**", "/src/a.py", False),
        ("src/**", "../src/a.py", False),
        ("**", "any/thing", True),
    ],
)
def test_pattern_of_files_goes_by_segments(pattern: str, path: str, fits: bool) -> None:
    rules: dict[str, Rule] = {f"write:{pattern}": "allow"}
    assert verdict_of(policy(rules), WRITE, {"path": path}, None) == ("allow" if fits else "ask")


def test_pattern_is_compared_with_where_the_links_lead() -> None:
    allow = policy({"write:src/**": "allow"})
    assert verdict_of(allow, WRITE, {"path": "src/link/a"}, None, ("secret/a",)) == "ask"
    assert verdict_of(allow, WRITE, {"path": "link/a"}, None, ("src/a",)) == "allow"
    deny = policy({"read:secret/**": "deny"})
    assert verdict_of(deny, READ, {"path": "open/a"}, None, ("secret/a",)) == "deny"
    assert verdict_of(deny, READ, {"path": "secret/a"}, None, ("open/a",)) == "deny"
    assert verdict_of(deny, READ, {"path": "SECRET/a"}, None) == "deny"


def test_every_file_of_a_call_must_be_allowed_and_any_may_be_denied() -> None:
    inside = {"path": "src/a", "newPath": "src/b"}
    out = {"path": "src/a", "newPath": "out/b"}
    assert verdict_of(policy({"rename:src/**": "allow"}), RENAME, inside, None) == "allow"
    assert verdict_of(policy({"rename:src/**": "allow"}), RENAME, out, None) == "ask"
    assert verdict_of(policy({"rename:out/**": "deny"}), RENAME, out, None) == "deny"
    both: dict[str, Rule] = {"rename:src/**": "allow", "rename:out/**": "allow"}
    assert verdict_of(policy(both), RENAME, out, None) == "allow"


# --- order -----------------------------------------------------------------------------------


def test_denial_wins_over_every_other_rule_and_asking_over_allowing() -> None:
    here = {"path": "src/a"}
    deny: dict[str, Rule] = {"write": "allow", "write:**": "allow", "write:src/*": "deny"}
    assert verdict_of(policy(deny), WRITE, here, "allow") == "deny"
    plain: dict[str, Rule] = {"write": "deny", "write:src/*": "allow"}
    assert verdict_of(policy(plain), WRITE, here, None) == "deny"
    ask: dict[str, Rule] = {"write": "allow", "write:**": "allow", "write:src/*": "ask"}
    assert verdict_of(policy(ask), WRITE, here, None) == "ask"
    assert verdict_of(policy(ask), WRITE, {"path": "b"}, None) == "allow"


def test_grant_for_a_session_does_not_lift_a_pattern_that_asks() -> None:
    rules: dict[str, Rule] = {"bash:rm *": "ask"}
    assert of_line(rules, "ls", "allow") == "allow"
    assert of_line(rules, "rm x", "allow") == "ask"
    assert of_line({"bash:rm *": "deny"}, "rm x", "allow") == "deny"


def test_pattern_that_asks_or_denies_holds_in_working_dirs_and_in_yolo() -> None:
    rules: dict[str, Rule] = {"write:notes/secret/**": "ask", "write:notes/x": "deny"}
    within = policy(rules, working_dirs=("notes",))
    assert verdict_of(within, WRITE, {"path": "notes/a"}, None) == "allow"
    assert verdict_of(within, WRITE, {"path": "notes/secret/a"}, None) == "ask"
    assert verdict_of(within, WRITE, {"path": "notes/x"}, None) == "deny"
    free = policy(rules, mode="yolo")
    assert verdict_of(free, WRITE, {"path": "notes/secret/a"}, None) == "ask"
    assert verdict_of(free, WRITE, {"path": "notes/x"}, None) == "deny"


def test_pattern_never_lifts_the_boundary_for_files_and_needs_none_for_commands() -> None:
    rules: dict[str, Rule] = {"write:out/**": "allow", "bash:git *": "allow"}
    within = policy(rules, working_dirs=("notes",))
    assert verdict_of(within, WRITE, {"path": "out/a"}, None) == "ask"
    assert verdict_of(within, BASH, {"command": "git status"}, None) == "allow"
    assert verdict_of(within, BASH, {"command": "ls"}, None) == "ask"


def test_boundary_is_compared_with_where_the_links_lead() -> None:
    within = policy({}, working_dirs=("notes",))
    assert verdict_of(within, WRITE, {"path": "notes/link/a"}, None, ("/outside/a",)) == "ask"
    assert verdict_of(within, WRITE, {"path": "notes/link/a"}, None, ("other/a",)) == "ask"
    assert verdict_of(within, READ, {"path": "link/a"}, None, ("notes/a",)) == "allow"


def test_name_of_a_tool_may_stand_for_many() -> None:
    server = tool("mcp__hub__search")
    assert verdict_of(policy({"mcp__hub__*": "allow"}), server, {}, None) == "allow"
    own: dict[str, Rule] = {"mcp__hub__*": "allow", "mcp__hub__search": "ask"}
    assert verdict_of(policy(own), server, {}, None) == "ask"
    closed: dict[str, Rule] = {"mcp__hub__*": "deny", "mcp__hub__search": "allow"}
    assert verdict_of(policy(closed), server, {}, None) == "deny"
    strict: dict[str, Rule] = {"mcp__*": "ask", "mcp__hub__*": "allow"}
    assert verdict_of(policy(strict), server, {}, None) == "ask"


def test_what_is_neither_file_nor_command_is_compared_by_its_texts() -> None:
    rules: dict[str, Rule] = {"fetch:https://docs.example/*": "allow"}
    assert verdict_of(policy(rules), FETCH, {"url": "https://docs.example/a"}, None) == "allow"
    assert verdict_of(policy(rules), FETCH, {"url": "https://evil.example/"}, None) == "ask"
    two = {"url": "https://docs.example/a", "proxy": "https://evil.example/"}
    assert verdict_of(policy(rules), FETCH, two, None) == "ask"


def test_ruling_names_what_it_rests_on() -> None:
    here = {"path": "src/a"}
    said = ruling_of(policy({"write:src/**": "deny"}), WRITE, here, None)
    assert (said.ground, said.rule) == ("pattern", "write:src/**")
    assert ruling_of(policy({"write": "allow"}), WRITE, here, None).ground == "rule"
    assert ruling_of(policy({}), WRITE, here, None).ground == "default"
    assert ruling_of(policy({}), WRITE, here, "allow").ground == "grant"
    assert ruling_of(policy({}, mode="plan"), WRITE, here, None).ground == "mode"
    bounded = policy({}, working_dirs=("src",))
    assert ruling_of(bounded, WRITE, here, None).ground == "working_dirs"


# --- what is a rule --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("write", RulePattern(tool="write", subject="")),
        ("write:a/**", RulePattern(tool="write", subject="a/**")),
        ("bash:git log *", RulePattern(tool="bash", subject="git log *")),
        ("fetch:https://x.example/*", RulePattern(tool="fetch", subject="https://x.example/*")),
    ],
)
def test_key_of_a_rule_is_a_tool_or_a_tool_and_a_pattern(key: str, rule: RulePattern) -> None:
    assert parse_rule(key) == rule


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("", "name of a tool"),
        (":x", "name of a tool"),
        ("write:", "behind the colon"),
        ("wri te:x", "' '"),
        ("write: x", "blank"),
        ("write:x\ty", "control"),
        ("bash:git a && git b", "'&&'"),
        ("bash:git $(x)", "'$('"),
        ("bash:a; b", "';'"),
        ("write:src/a**/b", "whole folders"),
        ("write:" + "x" * 1001, "1000"),
    ],
)
def test_what_is_no_rule_says_why(key: str, says: str) -> None:
    problem = parse_rule(key)
    assert isinstance(problem, PatternProblem)
    assert says in problem.reason
