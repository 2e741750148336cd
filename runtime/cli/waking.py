"""What `tenure wake`, `tenure ack` and `tenure recover` do."""

import sys
from typing import Any

from tenure.messages.handoff import (
    AcknowledgeBrief,
    Brief,
    BriefAcknowledged,
    BriefItem,
    BuildBrief,
    GetRecovery,
    Recovery,
)
from tenure.runtime.cli.continuity import EXIT_DIED
from tenure.runtime.cli.handing import show_view
from tenure.runtime.cli.vaulting import Desk, note, say, say_items, say_json

HEADINGS = {
    "notice": "Died",
    "gap": "Not covered by a handoff",
    "working_on": "Worked on",
    "blocked": "Blocked",
    "next_step": "Next",
    "decision": "Decided",
    "question": "Open questions",
    "feeling": "Feeling",
    "project": "Active projects",
    "commitment": "Open commitments",
    "lesson": "Lessons",
    "observation": "Observations",
}


def run_wake(given: dict[str, Any]) -> None:
    """Deliver the brief; that a session died is no error."""
    desk = Desk(given)
    reply = desk.ask(
        BuildBrief(
            handoffs_max=given["handoffs"],
            chars_max=given["budget"],
            detail="full" if given["full"] else "brief",
        )
    )
    assert isinstance(reply, Brief)
    if desk.as_json:
        say_json(reply)
    else:
        show_brief(reply)
    if given["exit_code"] and reply.died:
        sys.exit(EXIT_DIED)


def show_brief(brief: Brief) -> None:
    """The brief for people: by kind, one item a line."""
    say(f"You were working on: {brief.summary}")
    by_kind: dict[str, list[BriefItem]] = {}
    for item in brief.items:
        by_kind.setdefault(item.kind, []).append(item)
    for kind, heading in HEADINGS.items():
        items = by_kind.get(kind, [])
        say_items(f"\n{heading}:", (f"- {item.text}  [{item.id}]" for item in items))
    say_items(
        "\nLeft out:",
        (f"{each.count} of {HEADINGS[each.kind]}: {each.fetch}" for each in brief.omitted),
    )
    say_items(
        "\nOther briefs that nobody acknowledged:",
        (f"{each.brief_id}, delivered {each.delivered} times" for each in brief.open),
    )
    for problem in brief.problems:
        note(problem)
    if brief.brief_id:
        again = f", delivered {brief.delivered} times" if brief.delivered > 1 else ""
        say(f"\nbrief {brief.brief_id}{again}; once it is taken in: tenure ack {brief.brief_id}")


def run_ack(given: dict[str, Any]) -> None:
    """Acknowledge; a second time is no error."""
    desk = Desk(given)
    reply = desk.ask(AcknowledgeBrief(brief_id=given["brief_id"]))
    assert isinstance(reply, BriefAcknowledged)
    if desk.as_json:
        say_json(reply)
        return
    already = " before" if reply.outcome == "already" else ""
    say(f"brief {reply.brief_id} was acknowledged{already}")
    say_items("cleared:", reply.cleared)
    say_items("changed since, and comes again:", reply.kept)


def run_recover(given: dict[str, Any]) -> None:
    """Show what there is to go on from."""
    desk = Desk(given)
    reply = desk.ask(GetRecovery())
    assert isinstance(reply, Recovery)
    if desk.as_json:
        say_json(reply)
        return
    say("a session died" if reply.died else "no session died")
    for notice in reply.notices:
        say_items(f"{notice.kind} {notice.id}:", (f"since {notice.since}", notice.warning))
    if reply.checkpoint is not None:
        found = reply.checkpoint
        told = (found.at, found.working_on, found.focus, found.blocked)
        say_items(f"newest checkpoint, {found.id}:", (each for each in told if each))
    if reply.handoff is not None:
        show_view(reply.handoff)
    for each in (*reply.skipped, *reply.warnings):
        note(each)
