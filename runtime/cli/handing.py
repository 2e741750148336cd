"""What `tenure handoffs` does."""

import sys
from typing import Any

from tenure.messages.handoff import (
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    HandoffCheck,
    HandoffList,
    HandoffView,
)
from tenure.runtime.cli.vaulting import EXIT_FAILED, Desk, note, say, say_items, say_json
from tenure.runtime.doors.vault.names import one_line


def run_list(given: dict[str, Any]) -> None:
    """One a line; with --json one object a handoff."""
    desk = Desk(given)
    reply = desk.ask(GetHandoffs())
    assert isinstance(reply, HandoffList)
    for row in reply.handoffs:
        if desk.as_json:
            say_json(row)
        else:
            say(f"{row.seq:5}  {row.created[:16]}  {row.id[:12]}  {one_line(row.summary)}")
    for problem in reply.problems:
        note(problem)


def run_show(given: dict[str, Any]) -> None:
    """One handoff as it stands."""
    desk = Desk(given)
    reply = desk.ask(GetHandoff(name=given["name"]))
    assert isinstance(reply, HandoffView)
    if desk.as_json:
        say_json(reply)
    else:
        show_view(reply)


def show_view(view: HandoffView) -> None:
    """Every item, one a line."""
    say(f"handoff {view.seq}  {view.created}  {one_line(view.path)}")
    text = view.text
    for heading, items in (
        ("worked on:", text.working_on),
        ("blocked:", text.blocked),
        ("next:", text.next_steps),
        ("decided:", text.decisions),
        ("open questions:", text.questions),
        ("feeling:", text.feelings),
    ):
        say_items(heading, items)
    if view.link is not None:
        say(f"session {view.link.session_id} up to entry {view.link.last_entry}")
    elif view.session:
        say(f"session {one_line(view.session)}")
    for name, result in view.stages.items():
        say(f"{name}: {result.status} {one_line(result.detail)}")
    if view.problem:
        note(view.problem)


def run_verify(given: dict[str, Any]) -> None:
    """Sound, or what is wrong."""
    desk = Desk(given)
    reply = desk.ask(GetHandoffCheck())
    assert isinstance(reply, HandoffCheck)
    if desk.as_json:
        say_json(reply)
    else:
        told = "sound" if reply.sound else f"{len(reply.problems)} problems"
        say(f"{one_line(reply.journal)}: {told}")
        say(f"  {reply.records} records, {reply.handoffs} handoffs, last number {reply.last_seq}")
        for problem in reply.problems:
            say(f"  {problem.kind}: {one_line(problem.where)}: {one_line(problem.text)}")
    if not reply.sound:
        sys.exit(EXIT_FAILED)
