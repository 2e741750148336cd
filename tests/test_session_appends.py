"""Appends of one session: the token first, one batch in flight, a receipt for what is durable."""

import pytest
from steps import A, B, Driven, DrivenSession, opened, said, token

from tenure.actors.session import session_step
from tenure.actors.session_state import Vacant
from tenure.messages.base import Message, Reply
from tenure.messages.session import (
    Appended,
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    CallsSettled,
    CancelTurn,
    ChangedOutside,
    ContinueSession,
    EntriesAppended,
    GetSession,
    NoSession,
    OpenSession,
    SessionOpened,
    SessionView,
    SettleCalls,
    Stale,
    StartTurn,
)
from tenure.messages.tokens import EntryId, turn_id
from tenure.messages.transcripts import (
    AppendRecords,
    OpenTranscript,
    RecordsRefused,
    RecordsUncertain,
    SettleTranscript,
    TranscriptChanged,
    TranscriptSettled,
)
from tenure.messages.turn import RunTurn, StopActiveTurn

OLD = token(epoch=0)
ELSEWHERE = token(B)


# --- tokens ----------------------------------------------------------------------------------


@pytest.mark.witness("SESSION-2")
@pytest.mark.parametrize("stale", [OLD, ELSEWHERE, token(epoch=2)])
def test_append_with_another_token_is_refused_with_the_current_one(stale: object) -> None:
    session = DrivenSession()
    asker = session.append(of=stale)
    assert session.reply_to(asker) == Stale(current=token())
    assert session.wanted(AppendRecords) == []


@pytest.mark.witness("SESSION-2")
def test_cancel_with_another_token_stops_nothing() -> None:
    session = DrivenSession()
    asker = session.ask(CancelTurn(token=OLD))
    assert session.reply_to(asker) == Stale(current=token())
    assert session.sent(StopActiveTurn) == []


@pytest.mark.witness("TURN-6")
@pytest.mark.parametrize("stale", [OLD, ELSEWHERE])
def test_start_with_another_token_starts_nothing(stale: object) -> None:
    session = DrivenSession()
    asker = session.ask(StartTurn(text="go", token=stale))  # type: ignore[arg-type]
    assert session.reply_to(asker) == Stale(current=token())
    assert session.sent(RunTurn) == []


def test_start_is_handed_on_with_the_next_turn_number_and_its_asker() -> None:
    session = DrivenSession()
    first = session.ask(StartTurn(text="one"))
    second = session.ask(StartTurn(text="two", token=token(), model="m", when_busy="queue"))
    (run_one, asker_one), (run_two, asker_two) = session.forwarded(RunTurn)
    assert (run_one.turn_id, asker_one) == (turn_id(A, 1), first)
    assert (run_two.turn_id, run_two.token, asker_two) == (turn_id(A, 2), token(), second)
    assert (run_two.text, run_two.model, run_two.when_busy) == ("two", "m", "queue")


def test_cancel_without_a_token_goes_the_way_of_the_starts() -> None:
    session = DrivenSession()
    session.ask(StartTurn(text="one"))
    asker = session.ask(CancelTurn())
    assert [type(mail.message) for mail in session.mail] == [RunTurn, StopActiveTurn]
    assert session.forwarded(StopActiveTurn)[0][1] == asker


def test_seat_without_a_session_says_so_and_why() -> None:
    session = Driven(session_step, Vacant("its file is gone"))
    commands: tuple[Message, ...] = (
        AppendEntries(token=token(), entries=(said("x"),)),
        StartTurn(text="go"),
        CancelTurn(),
        SettleCalls(),
        GetSession(),
    )
    for command in commands:
        assert session.reply_to(session.ask(command)) == NoSession(reason="its file is gone")


# --- batches ---------------------------------------------------------------------------------


@pytest.mark.witness("SESSION-3")
def test_receipt_comes_when_the_entries_are_durable_and_names_them() -> None:
    session = DrivenSession()
    asker = session.append("a", turn_id=turn_id(A, 1))
    assert session.reply_to(asker) is None
    (record,) = session.wanted(AppendRecords)[0].records
    session.written()
    assert session.reply_to(asker) == Appended(token=token(), entry_ids=(record.id,), seq=1)
    (event,) = session.said(EntriesAppended)
    assert (event.entry_ids, event.turn_id) == ((record.id,), turn_id(A, 1))
    assert (record.turn, record.parent_id) == (1, None)


@pytest.mark.witness("SESSION-6")
def test_appends_that_come_during_a_write_form_the_next_batch_as_one_chain() -> None:
    session = DrivenSession()
    first = session.append("a")
    rest = [session.append(text) for text in ("b", "c", "d")]
    assert len(session.wanted(AppendRecords)) == 1
    session.written()
    assert session.reply_to(first) is not None
    assert session.batch() == ["b", "c", "d"]
    session.written()
    assert len({session.reply_to(asker).seq for asker in rest}) == 3  # type: ignore[union-attr]
    records = [record for append in session.wanted(AppendRecords) for record in append.records]
    assert [record.parent_id for record in records[1:]] == [record.id for record in records[:-1]]
    assert [record.seq for record in records] == [1, 2, 3, 4]
    assert len({record.id for record in records}) == 4
    assert [append.after for append in session.wanted(AppendRecords)] == [None, records[0].id]


@pytest.mark.witness("SESSION-3")
def test_failed_batch_leaves_no_gap_in_the_chain_and_tells_all_of_it() -> None:
    session = DrivenSession()
    session.append("a")
    session.written()
    leaf = session.state.session.leaf
    lost = [session.append("b"), session.append("c")]
    session.tell(RecordsRefused(session_id=A, reason="no space left"))
    assert session.reply_to(lost[0]) == AppendFailed(reason="no space left")
    # What waited behind it goes on from the last durable entry.
    assert session.batch() == ["c"]
    assert session.wanted(AppendRecords)[-1].after == leaf
    assert session.wanted(AppendRecords)[-1].records[0].seq == 2
    session.written()
    assert isinstance(session.reply_to(lost[1]), Appended)


def test_append_of_nothing_is_answered_with_where_the_session_stands() -> None:
    session = DrivenSession()
    asker = session.ask(AppendEntries(token=token(), entries=()))
    assert session.reply_to(asker) == Appended(token=token(), entry_ids=(), seq=0)
    assert session.wanted(AppendRecords) == []


# --- the disk that nobody can vouch for ------------------------------------------------------


@pytest.mark.witness("SESSION-3")
def test_write_that_nobody_can_vouch_for_closes_the_session_for_writing() -> None:
    session = DrivenSession()
    askers = [session.append("a"), session.append("b"), session.ask(SettleCalls())]
    session.tell(RecordsUncertain(session_id=A, reason="the sync failed"))
    unknown = AppendUnknown(reason="the sync failed")
    assert [session.reply_to(asker) for asker in askers] == [unknown] * 3
    later = (session.append("c"), session.ask(StartTurn(text="go")), session.ask(SettleCalls()))
    assert [session.reply_to(asker) for asker in later] == [unknown] * 3
    assert len(session.wanted(AppendRecords)) == 1
    view = session.reply_to(session.ask(GetSession()))
    assert isinstance(view, SessionView)
    assert view.state == "closed_for_writing"


def test_session_that_is_closed_for_writing_heals_when_it_is_opened_again() -> None:
    session = DrivenSession()
    session.append("a")
    session.tell(RecordsUncertain(session_id=A, reason="the sync failed"))
    asker = session.ask(ContinueSession())
    session.load(session_id=A, epoch=2, last_turn=1, leaf="a", seq=1)
    session.drained()
    session.noted()
    opened_reply = session.reply_to(asker)
    assert isinstance(opened_reply, SessionOpened)
    assert opened_reply.token == token(epoch=2)
    again = session.append("b", of=token(epoch=2))
    session.written()
    assert isinstance(session.reply_to(again), Appended)


def test_file_that_was_changed_outside_is_opened_again_and_its_writers_are_told() -> None:
    session = DrivenSession()
    askers = [session.append("a"), session.append("b")]
    session.tell(TranscriptChanged(session_id=A, path="a.jsonl"))
    changed = ChangedOutside(path="a.jsonl")
    assert [session.reply_to(asker) for asker in askers] == [changed, changed]
    assert (session.name, len(session.wanted(OpenTranscript))) == ("Reopening", 1)
    late = session.append("c")
    session.load(session_id=A, epoch=2)
    assert session.reply_to(late) == Stale(current=token(epoch=2))


# --- settling --------------------------------------------------------------------------------


def test_settling_keeps_its_place_among_the_appends() -> None:
    session = DrivenSession()
    session.append("a")
    settle = session.ask(SettleCalls())
    behind = session.append("b")
    session.written()
    assert len(session.wanted(SettleTranscript)) == 1
    assert len(session.wanted(AppendRecords)) == 1
    after = opened(leaf="s1", seq=2, entries=2, settled=1)
    session.tell(TranscriptSettled(opened=after))
    assert session.reply_to(settle) == CallsSettled(token=token(), settled=1, last_turn=0)
    assert session.wanted(AppendRecords)[-1].after == "s1"
    session.written()
    assert session.reply_to(behind).seq == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [
        (RecordsRefused(session_id=A, reason="full"), AppendFailed(reason="full")),
        (RecordsUncertain(session_id=A, reason="eio"), AppendUnknown(reason="eio")),
        (TranscriptChanged(session_id=A, path="p"), ChangedOutside(path="p")),
    ],
    ids=["refused", "uncertain", "changed"],
)
def test_settling_that_failed_says_how(outcome: Message, reply: Reply) -> None:
    session = DrivenSession()
    settle = session.ask(SettleCalls())
    session.tell(outcome)
    assert session.reply_to(settle) == reply


# --- idempotency -----------------------------------------------------------------------------


def test_repeat_of_a_key_gets_the_first_receipt_whenever_it_comes() -> None:
    session = DrivenSession()
    askers = [session.append("a", idempotency_key="k")]
    askers.append(session.append("a", idempotency_key="k"))
    session.append("b")
    askers.append(session.append("a", idempotency_key="k"))
    session.written()
    session.written()
    askers.append(session.append("a", idempotency_key="k"))
    first = session.reply_to(askers[0])
    assert isinstance(first, Appended)
    assert [session.reply_to(asker) for asker in askers] == [first] * 4
    texts = [record.body for append in session.wanted(AppendRecords) for record in append.records]
    assert len(texts) == 2


def test_repeats_that_wait_together_are_written_once() -> None:
    session = DrivenSession()
    session.append("a")
    twins = [session.append("b", idempotency_key="k") for _ in range(2)]
    session.written()
    session.written()
    assert len(session.wanted(AppendRecords)[-1].records) == 1
    assert session.reply_to(twins[0]) == session.reply_to(twins[1])


def test_repeat_of_a_key_whose_first_append_failed_is_written() -> None:
    session = DrivenSession()
    first = session.append("a", idempotency_key="k")
    second = session.append("a", idempotency_key="k")
    session.tell(RecordsRefused(session_id=A, reason="full"))
    session.written()
    assert session.reply_to(first) == AppendFailed(reason="full")
    assert isinstance(session.reply_to(second), Appended)


def test_keys_of_the_transcript_are_known_after_opening() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    session.load(keys=(("k", ("e9",), 9),), leaf="e9", seq=9)
    session.drained()
    session.noted()
    repeat = session.append("a", of=token(B), idempotency_key="k")
    first = Appended(token=token(B), entry_ids=(EntryId("e9"),), seq=9)
    assert session.reply_to(repeat) == first
