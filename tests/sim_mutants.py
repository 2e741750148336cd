"""Ways to break a host on purpose, each the opposite of one invariant, to check the checkers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from tenure.actors import turn_room, turn_tools
from tenure.actors.approval import ApprovalActor
from tenure.actors.session import SessionActor
from tenure.actors.session_state import Committing, Live, Loading
from tenure.actors.turn import TurnActor
from tenure.actors.turn_budget import Overrun
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    ApprovalRequested,
    CallDenied,
    CallStopped,
    Deny,
    RevokeApprovals,
    UserAnswered,
)
from tenure.messages.base import Message
from tenure.messages.bus import Answered
from tenure.messages.session import (
    Appended,
    AppendEntries,
    OpenSession,
    StartTurn,
)
from tenure.messages.settings import SetToolPolicy
from tenure.messages.tokens import RequestId, SessionToken
from tenure.messages.transcripts import (
    AppendRecords,
    ById,
    NoteSeat,
    OpenTranscript,
    TranscriptOpened,
)
from tenure.messages.turn import (
    DrainTurn,
    RunTurn,
    StopActiveTurn,
    StopTurn,
    TextDelta,
    TurnStarted,
    TurnStopping,
)
from tenure.messages.turn_effects import CallModel, ModelDelta, TurnNotPrepared, TurnPrepared
from tenure.runtime.bus import Bus
from tenure.runtime.doors.tools.workspace import Workspace
from tenure.runtime.doors.transcripts import opening, repair
from tenure.runtime.doors.transcripts.live import LiveTranscript
from tenure.runtime.owner import Owner
from tenure.runtime.step import Ask, Step, Taken
from tenure.runtime.supervisor import _Wanted
from tenure.runtime.testing import workload_clients
from tenure.runtime.testing.files import _MemoryFile
from tenure.runtime.testing.locks import MemoryLocks, _MemoryLock

Mutant = Callable[[], AbstractContextManager[object]]
StepFunction = Callable[[Any, Message, Taken], Step[Any]]


@contextmanager
def stepping(
    owner: type[Owner], change: Callable[[StepFunction, Any, Message, Taken], Step[Any]]
) -> Iterator[None]:
    """An owner whose step is changed."""
    own = owner.step
    owner.step = staticmethod(lambda state, message, taken: change(own, state, message, taken))
    try:
        yield
    finally:
        owner.step = staticmethod(own)


def mutated(owner: type[Owner]) -> Callable[[Callable[..., Step[Any]]], Mutant]:
    def made(change: Callable[..., Step[Any]]) -> Mutant:
        def mutant() -> AbstractContextManager[object]:
            return stepping(owner, change)

        mutant.__name__ = change.__name__
        return mutant

    return made


def names(step: Step[Any]) -> str:
    return type(step.state).__name__


# --- bus -------------------------------------------------------------------------------------


@mutated(SessionActor)
def an_append_is_never_answered(own, state, message, taken):
    step = own(state, message, taken)
    kept = tuple(each for each in step.replies if not isinstance(each[1], Appended))
    return replace(step, replies=kept)


@mutated(SessionActor)
def everybody_is_answered_twice(own, state, message, taken):
    step = own(state, message, taken)
    return replace(step, replies=step.replies + step.replies)


def a_drain_overtakes() -> AbstractContextManager[object]:
    own = Bus.post

    def post(self: Bus, address: str, delivery: Any) -> None:
        box = self.boxes.get(address)
        if isinstance(delivery.message, DrainTurn) and box is not None and not box.closed:
            box.mailbox.put_control(delivery)
            box.wake()
        else:
            own(self, address, delivery)

    return patch.object(Bus, "post", post)


def an_effect_ends_twice() -> AbstractContextManager[object]:
    own = _Wanted.end

    def end(self: Any, outcome: Any) -> None:
        own(self, outcome)
        own(self, outcome)

    return patch.object(_Wanted, "end", end)


@mutated(TurnActor)
def a_delta_makes_the_owner_raise(own, state, message, taken):
    if isinstance(message, ModelDelta):
        raise KeyError("delta")
    return own(state, message, taken)


# --- claims and the disk ---------------------------------------------------------------------


def a_sync_does_nothing() -> AbstractContextManager[object]:
    return patch.object(_MemoryFile, "datasync", lambda self: None)


def nobody_locks() -> AbstractContextManager[object]:
    def try_lock(self: MemoryLocks, path: str) -> _MemoryLock:
        place = self._disk.target(path)
        node = place.node or self._disk.add_file(place, mode=0o644)
        return _NoLock(self._disk, self._process, path, node)

    return patch.object(MemoryLocks, "try_lock", try_lock)


class _NoLock(_MemoryLock):
    def release(self) -> None:
        self._node = None


def a_lock_excludes_nobody() -> AbstractContextManager[object]:
    own = MemoryLocks.try_lock

    def try_lock(self: MemoryLocks, path: str) -> _MemoryLock:
        held = own(self, path)
        if held is not None:
            return held
        node = self._disk.file(path)
        self._disk.locks[node.number] = self._process
        return _NoLock(self._disk, self._process, path, node)

    return patch.object(MemoryLocks, "try_lock", try_lock)


def an_opening_keeps_the_epoch() -> AbstractContextManager[object]:
    def next_epoch(claim: Any, found: Any, mark: Any, rule: Any) -> int:
        return max(claim.record.epoch if claim.record else 1, found.epoch_max)

    return patch.object(opening, "_next_epoch", next_epoch)


# --- sessions --------------------------------------------------------------------------------


@mutated(SessionActor)
def two_swaps_go_on_at_once(own, state, message, taken):
    step = own(state, message, taken)
    if isinstance(state, Loading) and isinstance(message, OpenSession):
        return step.do(OpenTranscript(target=ById(session_id=message.session_id)))
    return step


@mutated(SessionActor)
def an_append_is_written_whatever_its_token(own, state, message, taken):
    if isinstance(message, AppendEntries) and isinstance(state, Live):
        message = replace(message, token=state.session.token)
    return own(state, message, taken)


@mutated(SessionActor)
def a_receipt_is_given_before_the_disk_has_it(own, state, message, taken):
    step = own(state, message, taken)
    for effect in step.effects:
        if isinstance(effect, AppendRecords) and isinstance(message, AppendEntries):
            ids = tuple(record.id for record in effect.records)
            receipt = Appended(token=effect.token, entry_ids=ids, seq=effect.records[-1].seq)
            return step.answer(taken.asker, receipt)
    return step


@mutated(SessionActor)
def a_swap_commits_before_the_drain(own, state, message, taken):
    if (
        isinstance(state, Loading)
        and isinstance(state.before, Live)
        and isinstance(message, TranscriptOpened)
    ):
        committing = Committing(state.before, message.opened, state.swap, (), state.held)
        return Step(committing).do(NoteSeat(session_id=message.opened.token.session_id))
    return own(state, message, taken)


@mutated(SessionActor)
def every_entry_hangs_on_the_root(own, state, message, taken):
    step = own(state, message, taken)
    effects = tuple(
        replace(effect, records=tuple(replace(each, parent_id=None) for each in effect.records))
        if isinstance(effect, AppendRecords)
        else effect
        for effect in step.effects
    )
    return replace(step, effects=effects)


def an_opening_cuts_the_last_entry() -> AbstractContextManager[object]:
    own = repair._mend

    def mend(file: Any, found: Any) -> None:
        own(file, found)
        if found.tail.state == "clean" and len(found.tree.lines) > 2:
            file._file.truncate(file.mark.size - len(found.tree.lines[-1]) - 1)
            file._file.sync()

    return patch.object(repair, "_mend", mend)


def a_reader_writes() -> AbstractContextManager[object]:
    own = workload_clients.list_sessions

    def listed(leaves: Any, root: str) -> Any:
        leaves.files.open(f"{root}/.tenure/seen", "create").close()
        return own(leaves, root)

    return patch.object(workload_clients, "list_sessions", listed)


# --- turns -----------------------------------------------------------------------------------


@mutated(TurnActor)
def a_second_turn_begins_beside_the_first(own, state, message, taken):
    step = own(state, message, taken)
    if isinstance(message, RunTurn) and type(state).__name__ == "Calling":
        return step.emit(TurnStarted(turn_id=message.turn_id, token=message.token, model=""))
    return step


@mutated(TurnActor)
def a_stop_hits_whatever_runs(own, state, message, taken):
    if isinstance(message, StopTurn) and hasattr(state, "run"):
        message = replace(message, turn_id=state.run.turn_id)
    return own(state, message, taken)


@mutated(TurnActor)
def a_stop_gives_nothing_back(own, state, message, taken):
    step = own(state, message, taken)
    replies = tuple(
        (asker, replace(reply, dropped=()) if isinstance(reply, TurnStopping) else reply)
        for asker, reply in step.replies
    )
    return replace(step, replies=replies)


@mutated(TurnActor)
def a_late_outcome_is_shown(own, state, message, taken):
    step = own(state, message, taken)
    if isinstance(message, TurnPrepared | TurnNotPrepared) and not hasattr(state, "run"):
        return step.emit(TextDelta(turn_id=message.turn_id, text="late"))
    return step


@mutated(SessionActor)
def a_stale_token_starts_a_turn(own, state, message, taken):
    if isinstance(message, StartTurn):
        message = replace(message, token=None)
    return own(state, message, taken)


def no_call_is_settled() -> AbstractContextManager[object]:
    return patch.object(LiveTranscript, "settling", lambda self, fresh, now_ms: [])


@mutated(TurnActor)
def the_model_is_called_before_the_prompt_is_saved(own, state, message, taken):
    step = own(state, message, taken)
    if names(step) == "SavingPrompt":
        run = step.state.run
        session = run.turn_id.rpartition("/")[0]
        return step.do(
            CallModel(
                turn_id=run.turn_id,
                call=99,
                session_id=session,
                model=run.model,
                system="",
                tools=(),
            )
        )
    return step


def a_stop_stops_every_seat() -> AbstractContextManager[object]:
    own = Bus.ask

    async def ask(self: Bus, address: str, command: Any, **options: Any) -> Any:
        if isinstance(command, StopTurn):
            for other in list(self.boxes):
                if other.endswith("/turn") and other != address:
                    self.tell(other, StopActiveTurn(cause=command.cause))
        return await own(self, address, command, **options)

    return patch.object(Bus, "ask", ask)


# --- approvals -------------------------------------------------------------------------------


@mutated(ApprovalActor)
def a_call_is_asked_for_twice(own, state, message, taken):
    step = own(state, message, taken)
    for event in step.events:
        if isinstance(event, ApprovalRequested):
            other = RequestId(f"{event.request.request_id}x")
            return step.emit(ApprovalRequested(request=replace(event.request, request_id=other)))
    return step


@mutated(ApprovalActor)
def a_denial_allows(own, state, message, taken):
    if isinstance(message, AnswerApproval | UserAnswered) and isinstance(message.choice, Deny):
        message = replace(message, choice=Allow())
    return own(state, message, taken)


@mutated(TurnActor)
def a_denial_stops_the_turn(own, state, message, taken):
    if isinstance(message, Answered) and isinstance(message.reply, CallDenied):
        stopped = CallStopped(call_id=message.reply.call_id, request_id=RequestId("none"))
        message = replace(message, reply=stopped)
    return own(state, message, taken)


def what_must_be_asked_is_allowed() -> AbstractContextManager[object]:
    from tenure.actors import approval

    own = approval.ruling_of

    def ruling(*args: Any) -> Any:
        found = own(*args)
        return replace(found, verdict="allow") if found.verdict == "ask" else found

    return patch.object(approval, "ruling_of", ruling)


@contextmanager
def a_grant_holds_in_every_session() -> Iterator[None]:
    from tenure.actors import approval, approval_consent

    said: dict[str, str] = {}
    own_with, own_granted = approval.with_grant, approval.granted

    def with_grant(gate: Any, call: Any, rule: str) -> Any:
        said[call.tool.name] = rule
        return own_with(gate, call, rule)

    def granted(gate: Any, call: Any) -> Any:
        return own_granted(gate, call) or said.get(call.tool.name)

    with (
        patch.object(approval, "with_grant", with_grant),
        patch.object(approval, "granted", granted),
        patch.object(approval_consent, "granted", granted),
    ):
        yield


@mutated(ApprovalActor)
def an_answer_is_remembered_before_it_took_effect(own, state, message, taken):
    step = own(state, message, taken)
    answered = isinstance(message, AnswerApproval | UserAnswered)
    if answered and getattr(message.choice, "scope", "") == "always":
        change = SetToolPolicy(tool="write", rule="allow")
        return replace(step, mail=(*step.mail, Ask("settings", change, _Early())))
    return step


class _Early(SessionToken, frozen=True, kw_only=True):
    """What was written on an ask that should not be."""

    session_id: str = ""
    epoch: int = 0


@mutated(ApprovalActor)
def a_request_outlives_its_turn(own, state, message, taken):
    if isinstance(message, RevokeApprovals):
        return Step(state)
    return own(state, message, taken)


def tools_go_everywhere() -> AbstractContextManager[object]:
    return patch.object(Workspace, "_outside", lambda self, real, path: "")


def every_tool_batch_is_a_loop() -> AbstractContextManager[Any]:
    return patch.object(turn_tools, "is_looping", lambda run: True)


def every_budget_is_used_up() -> AbstractContextManager[Any]:
    overrun = Overrun("turn", "requests", 1, 1)
    return patch.object(turn_room, "overrun_of", lambda run, now_ms: overrun)


MUTANTS: dict[str, tuple[str, Mutant, int]] = {}
"""Name to the invariant that it breaks, how, and in how many seeds that must show."""


def _mutant(invariant: str, mutant: Mutant, seeds_max: int = 60) -> None:
    MUTANTS[mutant.__name__] = (invariant, mutant, seeds_max)


_mutant("BUS-1", an_append_is_never_answered)
_mutant("BUS-1", everybody_is_answered_twice)
_mutant("BUS-2", a_drain_overtakes, 200)
_mutant("BUS-3", an_effect_ends_twice)
_mutant("SUP-1", a_delta_makes_the_owner_raise)
_mutant("CLAIM-1", nobody_locks)
_mutant("CLAIM-2", an_opening_keeps_the_epoch)
_mutant("SESSION-1", two_swaps_go_on_at_once, 200)
_mutant("SESSION-2", an_append_is_written_whatever_its_token)
_mutant("SESSION-3", a_receipt_is_given_before_the_disk_has_it)
_mutant("SESSION-3", a_sync_does_nothing, 200)
_mutant("SESSION-4", a_swap_commits_before_the_drain)
_mutant("SESSION-5", a_lock_excludes_nobody)
_mutant("SESSION-6", every_entry_hangs_on_the_root)
_mutant("SESSION-7", an_opening_cuts_the_last_entry)
_mutant("SESSION-8", a_reader_writes)
_mutant("TURN-1", a_second_turn_begins_beside_the_first)
_mutant("TURN-2", a_stop_hits_whatever_runs)
_mutant("TURN-3", a_stop_gives_nothing_back)
_mutant("TURN-4", a_late_outcome_is_shown, 200)
_mutant("TURN-6", a_stale_token_starts_a_turn)
_mutant("TURN-7", no_call_is_settled, 200)
_mutant("TURN-8", the_model_is_called_before_the_prompt_is_saved)
_mutant("TURN-9", a_stop_stops_every_seat)
_mutant("TURN-11", every_tool_batch_is_a_loop)
_mutant("TURN-12", every_budget_is_used_up)
_mutant("APPROVE-1", a_call_is_asked_for_twice)
_mutant("APPROVE-2", a_denial_allows)
_mutant("APPROVE-3", a_denial_stops_the_turn)
_mutant("APPROVE-4", what_must_be_asked_is_allowed)
_mutant("APPROVE-4", a_grant_holds_in_every_session, 200)
_mutant("APPROVE-5", an_answer_is_remembered_before_it_took_effect)
_mutant("APPROVE-6", a_request_outlives_its_turn)
_mutant("TOOL-1", tools_go_everywhere, 200)
