"""`tenure policy`: what tools may do unasked.  `tenure audit`: what was decided."""

from typing import get_args

import click

from tenure.messages.settings import Mode, Rule
from tenure.runtime.cli.options import json_option, root_option, workspace


@click.group("policy")
def policy() -> None:
    """Show and change what tools may do unasked in a workspace."""


@policy.command("ls")
@root_option
@json_option
def list_rules(root: str | None, as_json: bool) -> None:
    """Show the mode, the rules, and the folders in which safe mode does not ask."""
    from tenure.runtime.cli.governing import show_policy
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: show_policy(workspace(root), "json" if as_json else "text"))


@policy.command("set")
@click.argument("rule_for", metavar="TOOL[:PATTERN]|mode|changes")
@click.argument("rule", type=click.Choice([*get_args(Rule), *get_args(Mode)]))
@root_option
@json_option
def set_rule(rule_for: str, rule: str, root: str | None, as_json: bool) -> None:
    """Give a tool a rule: allow, ask or deny.

    `TOOL:PATTERN` is a rule for calls of the tool that fit (`bash:git *`, `write:src/**`).
    `mode` takes safe, yolo or plan; `changes` is the rule for tools that change something
    and have none of their own.

    \b
    Exit codes
      0  the rule holds
      2  this rule cannot be given to it
      3  refused: the pattern cannot be read, another process writes the settings, ...
    """
    rules = get_args(Mode) if rule_for == "mode" else get_args(Rule)
    if rule not in rules:
        raise click.BadParameter(f"{rule_for} takes one of: {', '.join(rules)}")
    from tenure.runtime.cli.governing import set_policy
    from tenure.runtime.cli.hosting import launch

    form = "json" if as_json else "text"
    launch(lambda interrupts: set_policy(workspace(root), rule_for, rule, form))


@policy.command("rm")
@click.argument("rule_for", metavar="TOOL[:PATTERN]")
@root_option
@json_option
def remove_rule(rule_for: str, root: str | None, as_json: bool) -> None:
    """Forget the rule of a tool, or of a pattern; the rule for all holds again."""
    from tenure.runtime.cli.governing import remove_policy
    from tenure.runtime.cli.hosting import launch

    launch(
        lambda interrupts: remove_policy(workspace(root), rule_for, "json" if as_json else "text")
    )


@click.group("audit")
def audit() -> None:
    """Show what was decided about the calls of tools, and by whom."""


@audit.command("ls")
@click.argument("session", metavar="[ID]", default="")
@root_option
@json_option
def list_decisions(session: str, root: str | None, as_json: bool) -> None:
    """List the decisions of a session, the oldest first; without ID of the newest one.

    Nothing is written, and no lock is taken.  With --json one object a decision.
    """
    from tenure.runtime.cli.governing import list_audit
    from tenure.runtime.cli.hosting import launch

    launch(lambda interrupts: list_audit(workspace(root), session, "json" if as_json else "text"))
