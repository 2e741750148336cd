"""What `tenure sleep` and `tenure checkpoint` do."""

import os
import sys
from typing import Any

import click
import msgspec

from tenure.messages.base import Event
from tenure.messages.handoff import (
    CheckpointSaved,
    HandoffReceipted,
    HandoffSaved,
    HandoffStageDone,
    HandoffText,
    SaveCheckpoint,
    SaveHandoff,
    StageName,
)
from tenure.runtime.cli.vaulting import EXIT_PARTLY, Desk, note, say, say_json

STDIN_CHARS_MAX = 1_048_576
TRANSCRIPT_VARIABLES = (
    "CLAWVAULT_SESSION_TRANSCRIPT",
    "OPENCLAW_SESSION_FILE",
    "OPENCLAW_SESSION_TRANSCRIPT",
)
LISTS = {
    "summary": "working_on",
    "next": "next_steps",
    "blocked": "blocked",
    "decisions": "decisions",
    "questions": "questions",
    "feelings": "feelings",
}


def run_sleep(given: dict[str, Any]) -> None:
    """Save, print the receipt at once, then each stage as it ends."""
    text = _text(given)
    stages, declined = _stages(given)
    transcript = _transcript(given)
    if transcript:
        stages = (*stages, "transcript", "observe")
    wish = SaveHandoff(
        text=text,
        session=given["session"],
        idempotency_key=given["key"],
        transcript=transcript,
        stages=stages,
        declined=declined,
        policy="next_or_blocked" if given["require_next"] else "any",
    )
    said = Told(given["as_json"], waits=bool(stages))
    reply = Desk(given, said.tell).ask(wish)
    assert isinstance(reply, HandoffSaved)
    said.end(reply)
    if reply.failed:
        sys.exit(EXIT_PARTLY)


class Told:
    """Prints a handoff as it comes to be."""

    def __init__(self, as_json: bool, *, waits: bool) -> None:
        self._as_json = as_json
        self._waits = waits
        """Whether anything follows: else the reply is the receipt, and comes at once."""
        self._is_told = False

    def tell(self, event: Event) -> None:
        """Print an event when it happens: a later failure cannot hide it."""
        if self._as_json:
            if self._waits:
                say_json(event)
            return
        match event:
            case HandoffReceipted(seq=seq, path=path, id=handoff_id):
                self._is_told = True
                say(f"handoff {seq} saved\n  id    {handoff_id}\n  file  {path}")
            case HandoffStageDone(stage=stage, result=result):
                say(f"  {stage}: {result.status}{_because(result.detail)}")

    def end(self, reply: HandoffSaved) -> None:
        """Print what is left to say."""
        if self._as_json:
            say_json(reply)
            return
        if not self._is_told:
            say(f"handoff {reply.seq} was saved before\n  id    {reply.id}\n  file  {reply.path}")
        for name, result in reply.stages.items():
            if result.status == "failed" and name == "file":
                say(f"  file: failed{_because(result.detail)}")
            if result.detail == "declined":
                say(f"  {name}: skipped (declined)")
        for warning in reply.warnings:
            note(warning)


def run_checkpoint(given: dict[str, Any]) -> None:
    """Durable before it says so."""
    wish = SaveCheckpoint(
        working_on=given["working_on"],
        focus=given["focus"],
        blocked=given["blocked"],
        urgency="urgent" if given["urgent"] else "normal",
        session=given["session"],
        idempotency_key=given["key"],
    )
    desk = Desk(given)
    reply = desk.ask(wish)
    assert isinstance(reply, CheckpointSaved)
    if desk.as_json:
        say_json(reply)
    else:
        say(f"checkpoint {reply.seq} saved\n  id    {reply.id}\n  file  {reply.path}")


def _text(given: dict[str, Any]) -> HandoffText:
    if given["input_json"]:
        return _from_json(given)
    summary = tuple(_stdin() if item == "-" else item for item in given["summary"])
    lists = {name: given[name] for name in ("next", "blocked")}
    if _at_terminal(given):
        for name, question in (("next", "Next step"), ("blocked", "Blocked by")):
            lists[name] = lists[name] or _prompted(question)
    return HandoffText(
        working_on=summary,
        next_steps=lists["next"],
        blocked=lists["blocked"],
        decisions=given["decision"],
        questions=given["question"],
        feelings=given["feeling"],
    )


def _from_json(given: dict[str, Any]) -> HandoffText:
    """An object of texts and lists of texts; what is given on the line is added to it."""
    try:
        found = msgspec.json.decode(_stdin(), type=dict[str, str | tuple[str, ...]])
    except msgspec.DecodeError as error:
        raise click.UsageError(f"stdin: {error}") from None
    unknown = sorted(set(found) - set(LISTS))
    if unknown:
        known = ", ".join(LISTS)
        raise click.UsageError(f"stdin: there is no field {unknown[0]!r}; there are {known}")
    lists: dict[str, tuple[str, ...]] = {}
    for name, field in LISTS.items():
        value = found.get(name, ())
        on_line = given[name.removesuffix("s") if name.endswith("s") else name]
        lists[field] = ((value,) if isinstance(value, str) else value) + on_line
    return HandoffText(**lists)


def _stdin() -> str:
    text = sys.stdin.read(STDIN_CHARS_MAX + 1)
    if len(text) > STDIN_CHARS_MAX:
        raise click.UsageError(f"stdin: more than {STDIN_CHARS_MAX:,} characters")
    return text.strip()


def _prompted(question: str) -> tuple[str, ...]:
    answer = click.prompt(question, default="", show_default=False)
    return (answer,) if answer.strip() else ()


def _stages(given: dict[str, Any]) -> tuple[tuple[StageName, ...], tuple[StageName, ...]]:
    """What is to follow, and what the user was asked about and did not want."""
    wanted: list[StageName] = []
    offered: tuple[StageName, ...] = ("index", "observe", "reflect")
    wanted += (name for name in offered if given[name])
    if given["git"] is None and _at_terminal(given):
        if click.confirm("Commit the handoff with git, where the vault is in a repository?"):
            wanted.append("git")
            return tuple(wanted), ()
        return tuple(wanted), ("git",)
    if given["git"]:
        wanted.append("git")
    return tuple(wanted), ()


def _transcript(given: dict[str, Any]) -> str:
    """The one that was named, else the first of those in the environment that is there."""
    if given["transcript"]:
        return os.path.abspath(str(given["transcript"]))
    for name in TRANSCRIPT_VARIABLES:
        path = os.environ.get(name, "")
        if path and os.path.isfile(path):
            return os.path.abspath(path)
    return ""


def _at_terminal(given: dict[str, Any]) -> bool:
    return not given["as_json"] and sys.stdin.isatty() and sys.stdout.isatty()


def _because(detail: str) -> str:
    return f" ({' '.join(detail.split())})" if detail else ""
