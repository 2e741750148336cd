"""What the commands about the policy and the audit do."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tenure.messages.audit import AUDIT, AuditRecord
from tenure.messages.settings import Mode, Policy, Rule
from tenure.runtime.cli.hosting import SaidNo, session_of
from tenure.runtime.cli.looking import refused
from tenure.runtime.cli.screen import print_json, print_note, print_text, screen_of
from tenure.runtime.cli.turns import EXIT_DONE, EXIT_REFUSED
from tenure.runtime.doors.transcripts import SessionSnapshot
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host, HostSettings


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, and when it was written."""

    at: str
    """As the transcript has it: ISO 8601, UTC."""
    record: AuditRecord


async def show_policy(root: str, form: str) -> int:
    async with Host.open(root) as host:
        _print_policy((await host.settings.get()).policy, form)
    return EXIT_DONE


async def set_policy(root: str, rule_for: str, rule: str, form: str) -> int:
    async with Host.open(root) as host:
        try:
            settings = await _set(host.settings, rule_for, rule)
        except Refused as said:
            return refused(said.reply, screen_of(form))
        _print_policy(settings, form)
    return EXIT_DONE


async def _set(settings: HostSettings, rule_for: str, rule: str) -> Policy:
    """The command line has checked which rules there are."""
    match rule_for:
        case "mode":
            return (await settings.set_mode(cast(Mode, rule))).policy
        case "changes":
            return (await settings.set_change_rule(cast(Rule, rule))).policy
        case _:
            return (await settings.set_tool_policy(rule_for, cast(Rule, rule))).policy


async def remove_policy(root: str, rule_for: str, form: str) -> int:
    async with Host.open(root) as host:
        try:
            settings = await host.settings.remove_tool_policy(rule_for)
        except Refused as said:
            return refused(said.reply, screen_of(form))
        _print_policy(settings.policy, form)
    return EXIT_DONE


def _print_policy(policy: Policy, form: str) -> None:
    if form == "json":
        print_json(policy)
        return
    print_text("".join(f"{line}\n" for line in policy_lines(policy)))


def policy_lines(policy: Policy) -> list[str]:
    """The policy as people read it."""
    lines = [f"mode     {policy.mode}", f"changes  {policy.mutating}"]
    lines += [f"{rule:7}  {key}" for key, rule in sorted(policy.tools.items())]
    lines += [f"asks outside  {folder}" for folder in policy.working_dirs]
    if policy.expires_s:
        lines.append(f"a request expires after {policy.expires_s} s")
    return lines


async def list_audit(root: str, text: str, form: str) -> int:
    async with Host.open(root) as host:
        newest = await host.sessions.list()
        if not text and not newest:
            print_note("there is no session yet")
            return EXIT_DONE
        try:
            path = (await session_of(host, text)).path if text else newest[0].path
        except SaidNo as said:
            screen_of(form).refusal(said.no)
            return EXIT_REFUSED
        decisions = list(decisions_in(await host.sessions.read(path)))
    for each in decisions:
        if form == "json":
            print_json(each)
        else:
            print_text(f"{line_of(each)}\n")
    if not decisions:
        print_note("no tool of this session has asked for anything yet")
    return EXIT_DONE


def decisions_in(snapshot: SessionSnapshot) -> Iterator[Decided]:
    """The decisions of a session, in the order of its file; what cannot be read is left out."""
    for view in snapshot.entries:
        if view.type != "custom" or AUDIT not in view.text:
            continue
        try:
            fields: dict[str, Any] = msgspec.json.decode(view.text)
            record = msgspec.convert(fields.get("data"), AuditRecord)
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue
        if fields.get("customType") == AUDIT:
            yield Decided(at=view.timestamp, record=record)


def line_of(decided: Decided) -> str:
    """A decision as people read it."""
    record = decided.record
    about = " ".join(record.paths) or record.digest[:12]
    rule = f" ({record.rule})" if record.rule else ""
    why = f": {record.reason}" if record.reason else ""
    return f"{decided.at}  {record.decision} by {record.by}{rule}  {record.tool} {about}{why}"
