"""What a turn and a session do about compaction, step by step."""

import pytest
from steps import A, B, DrivenSession, DrivenTurn, answer, call, opened, token, tool

from tenure.messages.base import Reply
from tenure.messages.bus import OwnerStopped
from tenure.messages.compaction import (
    Compact,
    Compacted,
    CompactionFailed,
    CompactionFound,
    CompactionMissing,
    CompactionReverted,
    CompactionStopped,
    CompactionView,
    DropPass,
    DropPasses,
    FindCompaction,
    GetCompaction,
    NothingToCompact,
    NothingToUncompact,
    PassesSettled,
    PassId,
    RunCompaction,
    SettlePasses,
    Uncompact,
    Uncompacted,
    WouldDrop,
)
from tenure.messages.content import Usage
from tenure.messages.session import (
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    NoSession,
    SeatBusy,
    SessionChanged,
    SessionNotFound,
    Stale,
    StartTurn,
)
from tenure.messages.tokens import EntryId, turn_id
from tenure.messages.transcripts import (
    AppendRecords,
    OpenTranscript,
    RecordsAppended,
    RecordsRefused,
    RecordsUncertain,
    SettleTranscript,
    TranscriptChanged,
    TranscriptNotOpened,
    TranscriptOpened,
    TranscriptSettled,
)
from tenure.messages.turn import DrainTurn, GetTurn, RunTurn, TurnDrained, TurnView
from tenure.messages.turn_effects import CallModel, TurnPrepared

PASS = PassId("p1")
NOTHING = NothingToCompact(reason="under_threshold", said="there is room")


def compacted(before: int = 1_000, after: int = 300) -> Compacted:
    return Compacted(
        pass_id=PASS,
        entry_id=EntryId("e"),
        tokens_before=before,
        tokens_after=after,
        messages=6,
        summariser="model",
        model="acme-1",
    )


def roomy(window: int = 1_000) -> DrivenTurn:
    """A turn whose prompt is being saved, of a model whose window is known."""
    turn = DrivenTurn()
    turn.run()
    turn.tell(
        TurnPrepared(
            turn_id=turn_id(A, 1), model="m", system="s", tools=(tool("read"),), window=window
        )
    )
    return turn


def calls(turn: DrivenTurn) -> int:
    return len(turn.wanted(CallModel))


# --- a turn asks for room ------------------------------------------------------------------------


def test_room_is_asked_for_once_the_prompt_is_durable_and_before_the_model_is_called() -> None:
    turn = roomy()
    assert turn.sent(RunCompaction) == []
    turn.saved()
    (need,) = turn.sent(RunCompaction)
    assert (need.trigger, need.turn_id, need.window, need.token) == (
        "threshold",
        turn_id(A, 1),
        1_000,
        token(),
    )
    assert calls(turn) == 0
    turn.answer(RunCompaction, NOTHING)
    assert calls(turn) == 1


def test_without_a_known_window_no_room_is_asked_for() -> None:
    turn = roomy(window=0)
    turn.saved()
    assert turn.sent(RunCompaction) == []
    assert calls(turn) == 1


@pytest.mark.witness("COMPACT-3")
@pytest.mark.parametrize(
    "reply",
    [
        NOTHING,
        compacted(),
        CompactionFailed(pass_id=PASS, reason="no"),
        CompactionStopped(pass_id=PASS),
        Stale(current=token(B)),
        OwnerStopped(begun=True),
    ],
    ids=lambda reply: type(reply).__name__,
)
def test_the_model_is_called_whatever_became_of_the_pass(reply: Reply) -> None:
    turn = roomy()
    turn.saved()
    turn.answer(RunCompaction, reply)
    assert calls(turn) == 1
    assert turn.ended == []


def again(turn: DrivenTurn, number: int) -> None:
    """The model calls a tool, whose result is saved."""
    turn.says(answer("", call(f"c{number}")))
    turn.saved()
    turn.allows(f"c{number}")
    turn.runs(f"c{number}")
    turn.saved()


@pytest.mark.parametrize(
    ("reply", "asks"),
    [
        (NOTHING, 2),
        (compacted(1_000, 300), 2),
        (compacted(1_000, 900), 1),
        (NothingToCompact(reason="no_gain", said=""), 1),
        (CompactionFailed(pass_id=PASS, reason="no"), 1),
    ],
)
def test_room_is_asked_for_between_two_calls_unless_asking_did_not_help(
    reply: Reply, asks: int
) -> None:
    turn = roomy()
    turn.saved()
    turn.answer(RunCompaction, reply)
    again(turn, 1)
    assert len(turn.sent(RunCompaction)) == asks


def test_a_stop_while_room_is_made_drops_the_pass_and_ends_the_turn_when_that_is_over() -> None:
    turn = roomy()
    turn.saved()
    turn.stop()
    assert turn.sent(DropPass) == [DropPass(turn_id=turn_id(A, 1))]
    assert turn.ended == []
    turn.answer(RunCompaction, CompactionStopped(pass_id=PASS))
    turn.saved()  # that it was stopped
    assert [(each.stop_reason, each.cause) for each in turn.ended] == [("stopped", "user")]
    assert calls(turn) == 0


def test_a_drain_while_room_is_made_is_answered_when_the_pass_is_over() -> None:
    turn = roomy()
    turn.saved()
    drainer = turn.ask(DrainTurn())
    assert turn.reply_to(drainer) is None
    turn.answer(RunCompaction, CompactionStopped(pass_id=PASS))
    assert turn.reply_to(drainer) == TurnDrained()


# --- the provider says that it is too long -------------------------------------------------------


def test_a_call_that_was_too_long_is_made_again_once_there_is_room() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("context_exceeded")
    (need,) = turn.sent(RunCompaction)
    assert need.trigger == "context_exceeded"
    turn.answer(RunCompaction, compacted())
    assert calls(turn) == 2
    turn.says(answer("done"))
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["end_turn"]


def test_a_call_that_stays_too_long_ends_the_turn() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("context_exceeded")
    turn.answer(RunCompaction, compacted())
    turn.fails("context_exceeded")
    turn.saved()
    assert len(turn.sent(RunCompaction)) == 1
    assert [each.error for each in turn.ended] == ["context_exceeded: no"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (NothingToCompact(reason="no_cut", said="one turn"), "nothing to compact: one turn"),
        (compacted(1_000, 1_000), "compacting it did not make it shorter"),
    ],
)
def test_a_pass_that_did_not_help_ends_the_turn_and_says_why(reply: Reply, why: str) -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("context_exceeded")
    turn.answer(RunCompaction, reply)
    turn.saved()
    assert [each.error for each in turn.ended] == [f"context_exceeded: no ({why})"]
    assert calls(turn) == 1


def test_each_call_of_a_turn_may_be_too_long_once() -> None:
    turn = DrivenTurn(tool("read")).to_calling()
    for number in (1, 2):
        turn.fails("context_exceeded")
        turn.answer(RunCompaction, compacted())
        turn.says(answer("", call(f"c{number}")))
        turn.saved()
        turn.allows(f"c{number}")
        turn.runs(f"c{number}")
        turn.saved()
    assert len(turn.sent(RunCompaction)) == 2
    assert turn.ended == []


# --- the session ---------------------------------------------------------------------------------

IDLE_TURN = TurnView(state="Idle", turn_id=None, queued=(), usage=Usage())
IDLE = CompactionView(state="Idle", pass_id=None, waiting=0)
FOUND = CompactionFound(
    session_id=A, entry_id=EntryId("c"), parent_id=EntryId("before"), messages_after=0
)


@pytest.mark.witness("COMPACT-2")
def test_a_wish_is_handed_on_with_the_current_token_and_a_stale_one_is_refused() -> None:
    session = DrivenSession()
    asker = session.ask(Compact(instructions="keep X", token=token(), when_busy="queue"))
    ((run, whose),) = session.forwarded(RunCompaction)
    assert whose == asker
    assert (run.token, run.trigger, run.instructions, run.when_busy) == (
        token(),
        "manual",
        "keep X",
        "queue",
    )
    late = session.ask(Compact(token=token(A, 0)))
    assert session.reply_to(late) == Stale(current=token())
    back = session.ask(Uncompact(token=token(A, 0)))
    assert session.reply_to(back) == Stale(current=token())
    assert len(session.forwarded(RunCompaction)) == 1
    assert session.sent(GetTurn) == []


def test_passes_are_told_when_the_session_changes_hands() -> None:
    session = DrivenSession()
    session.swap_to(B)
    assert session.sent(DropPasses) == [DropPasses()]


@pytest.mark.witness("COMPACT-7")
def test_passes_are_settled_behind_what_was_sent_before_in_the_session_itself() -> None:
    session = DrivenSession()
    session.append("the last word of the dead owner")
    asker = session.ask(SettlePasses())
    assert session.wanted(SettleTranscript) == []
    session.written()
    (settle,) = session.wanted(SettleTranscript)
    assert (settle.owed, settle.token) == ("passes", token())
    session.tell(TranscriptSettled(opened=opened(A, seq=3, settled=1)))
    assert session.reply_to(asker) == PassesSettled(token=token(), settled=1)


def unwinding() -> tuple[DrivenSession, object]:
    session = DrivenSession()
    asker = session.ask(Uncompact())
    session.answer(GetTurn, IDLE_TURN)
    session.answer(GetCompaction, IDLE)
    assert session.wanted(FindCompaction) == [FindCompaction(session_id=A)]
    return session, asker


def test_a_compaction_is_taken_back_by_a_record_that_hangs_on_what_was_before() -> None:
    session, asker = unwinding()
    session.tell(FOUND)
    (append,) = session.wanted(AppendRecords)
    assert [record.parent_id for record in append.records] == ["before"]
    start = session.ask(StartTurn(text="meanwhile"))
    session.tell(RecordsAppended(session_id=A))
    assert session.reply_to(asker) is None
    assert len(session.wanted(OpenTranscript)) == 1
    session.tell(TranscriptOpened(opened=opened(A, 2, leaf="rewind", seq=9)))
    assert session.reply_to(asker) == Uncompacted(token=token(A, 2), entry_id=EntryId("c"))
    assert session.said(CompactionReverted)[0].token == token(A, 2)
    assert session.said(SessionChanged)[0].token == token(A, 2)
    ((run, whose),) = session.forwarded(RunTurn)
    assert (run.token, whose) == (token(A, 2), start)


def test_what_follows_a_compaction_is_never_dropped() -> None:
    session, asker = unwinding()
    session.tell(
        CompactionFound(
            session_id=A, entry_id=EntryId("c"), parent_id=EntryId("before"), messages_after=2
        )
    )
    assert session.reply_to(asker) == WouldDrop(count=2, fork_from=EntryId("before"))
    assert session.wanted(AppendRecords) == []
    assert session.name == "Live"


def test_nothing_is_taken_back_where_there_is_none() -> None:
    session, asker = unwinding()
    session.tell(CompactionMissing(session_id=A))
    assert session.reply_to(asker) == NothingToUncompact()
    assert session.name == "Live"


@pytest.mark.parametrize("busy", ["turn", "compaction", "append"])
def test_a_seat_at_work_takes_nothing_back(busy: str) -> None:
    session = DrivenSession()
    if busy == "append":
        session.append()
        assert session.reply_to(session.ask(Uncompact())) == SeatBusy()
        return
    asker = session.ask(Uncompact())
    if busy == "turn":
        view = TurnView(state="Calling", turn_id=turn_id(A, 1), queued=(), usage=Usage())
        session.answer(GetTurn, view)
    else:
        session.answer(GetTurn, IDLE_TURN)
        running = CompactionView(state="Summarising", pass_id=PASS, waiting=0)
        session.answer(GetCompaction, running)
    assert session.reply_to(asker) == SeatBusy()
    assert session.name == "Live"


@pytest.mark.parametrize(
    ("outcome", "kind", "state"),
    [
        (RecordsRefused(session_id=A, reason="full"), AppendFailed, "Live"),
        (RecordsUncertain(session_id=A, reason="eio"), AppendUnknown, "Live"),
        (TranscriptChanged(session_id=A, path="p"), ChangedOutside, "Reopening"),
    ],
)
def test_a_record_that_could_not_be_written_moves_no_leaf(
    outcome: object, kind: type[Reply], state: str
) -> None:
    session, asker = unwinding()
    session.tell(FOUND)
    session.tell(outcome)
    assert isinstance(session.reply_to(asker), kind)
    assert session.name == state
    assert session.said(CompactionReverted) == []


def test_a_session_that_cannot_be_opened_behind_the_record_is_lost_and_its_asker_told() -> None:
    session, asker = unwinding()
    session.tell(FOUND)
    session.tell(RecordsAppended(session_id=A))
    refusal = SessionNotFound(session_id=A, searched="/work")
    session.tell(TranscriptNotOpened(refusal=refusal))
    assert session.reply_to(asker) == refusal
    assert isinstance(session.reply_to(session.ask(Compact())), NoSession)
