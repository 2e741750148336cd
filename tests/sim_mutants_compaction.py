"""Ways to break compaction on purpose; see `sim_mutants`."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace
from sim_mutants import Mutant, mutated, stepping

from tenure.actors.compaction import CompactionActor
from tenure.actors.compaction_state import Idle
from tenure.actors.session import SessionActor
from tenure.actors.turn import TurnActor
from tenure.messages.bus import OwnerStarted
from tenure.messages.compaction import (
    Compacted,
    CompactionBusy,
    CompactionEnded,
    DropPasses,
    RunCompaction,
)
from tenure.messages.entries import CompactionEntry
from tenure.messages.session import AppendEntries, SessionChanged
from tenure.messages.tokens import EntryId, SessionToken
from tenure.messages.turn import RunTurn
from tenure.runtime.doors.summaries import planning
from tenure.runtime.doors.transcripts import live
from tenure.runtime.step import Ask, Step
from tenure.runtime.testing.loop import PROCESS

WORKLOAD = "compaction"


def summary_in(mail: object) -> AppendEntries | None:
    """The append of a summary, where this mail is one."""
    message = mail.message if isinstance(mail, Ask) else None
    if not isinstance(message, AppendEntries):
        return None
    return message if isinstance(message.entries[0], CompactionEntry) else None


@mutated(CompactionActor)
def a_pass_is_done_before_its_summary_is_written(own, state, message, taken):
    step = own(state, message, taken)
    for mail in step.mail:
        append = summary_in(mail)
        if append is not None:
            compacted = Compacted(
                pass_id=step.state.run.pass_id,
                entry_id=EntryId("of-tomorrow"),
                tokens_before=2,
                tokens_after=1,
                messages=1,
                summariser="model",
                model="",
            )
            early = CompactionEnded(
                pass_id=compacted.pass_id,
                token=append.token,
                status="compacted",
                compacted=compacted,
            )
            return step.emit(early)
    return step


@contextmanager
def a_summary_takes_the_token_of_now() -> Iterator[None]:
    current: dict[Any, SessionToken] = {}

    def session(own, state, message, taken):
        step = own(state, message, taken)
        for event in step.events:
            if isinstance(event, SessionChanged):
                current[PROCESS.get()] = event.token
        return step

    def compaction(own, state, message, taken):
        if isinstance(message, DropPasses):
            return Step(state)
        step = own(state, message, taken)
        mail = tuple(
            replace(each, message=replace(append, token=current[PROCESS.get()]))
            if (append := summary_in(each)) is not None
            else each
            for each in step.mail
        )
        return replace(step, mail=mail)

    with stepping(SessionActor, session), stepping(CompactionActor, compaction):
        yield


@mutated(TurnActor)
def room_is_made_before_the_prompt_is_saved(own, state, message, taken):
    step = own(state, message, taken)
    if isinstance(message, RunTurn) and type(step.state).__name__ == "SavingPrompt":
        early = RunCompaction(token=message.token, trigger="threshold", turn_id=message.turn_id)
        return step.tell("compaction", early)
    return step


@mutated(CompactionActor)
def a_refused_wish_keeps_its_instructions(own, state, message, taken):
    step = own(state, message, taken)
    replies = tuple(
        (asker, replace(reply, instructions="") if isinstance(reply, CompactionBusy) else reply)
        for asker, reply in step.replies
    )
    return replace(step, replies=replies)


def no_pass_is_settled() -> AbstractContextManager[object]:
    return patch.object(live, "missing_ends", lambda tree: [])


def a_cut_goes_anywhere() -> AbstractContextManager[object]:
    own = planning.places_of

    def places(shown: Any) -> Any:
        found = list(own(shown))
        for index in range(1, len(shown)):
            if type(shown[index].message).__name__ == "ToolResultMessage":
                found.insert(0, planning.Place(index, "before_prompt", 0))
                break
        return found

    return patch.object(planning, "places_of", places)


@mutated(CompactionActor)
def a_restarted_owner_settles_nothing(own, state, message, taken):
    if isinstance(message, OwnerStarted) and message.incarnation > 1:
        return Step(Idle())
    return own(state, message, taken)


MUTANTS: dict[str, tuple[str, Mutant, int]] = {
    mutant.__name__: (invariant, mutant, seeds_max)
    for invariant, mutant, seeds_max in (
        ("COMPACT-1", a_pass_is_done_before_its_summary_is_written, 60),
        ("COMPACT-2", a_summary_takes_the_token_of_now, 200),
        ("COMPACT-3", room_is_made_before_the_prompt_is_saved, 60),
        ("COMPACT-4", a_refused_wish_keeps_its_instructions, 400),
        ("COMPACT-5", no_pass_is_settled, 200),
        ("COMPACT-6", a_cut_goes_anywhere, 200),
        ("COMPACT-7", a_restarted_owner_settles_nothing, 100),
    )
}
