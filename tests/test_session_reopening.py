"""A seat and its own session: waking from a restart, opening it again, parking while idle."""

import pytest
from steps import A, B, DrivenSession, token

from tenure.actors.session_state import TURNS_PER_EPOCH_MAX, Waking
from tenure.messages.approval import EndSessionGrants
from tenure.messages.bus import DeadlinePassed, OwnerStarted
from tenure.messages.compaction import CompactionView, GetCompaction
from tenure.messages.content import Usage
from tenure.messages.session import (
    Appended,
    CancelTurn,
    ContinueSession,
    GetSession,
    NoSession,
    ParkSeat,
    SeatBusy,
    SeatParked,
    SessionChanged,
    SessionView,
    Stale,
    StartTurn,
)
from tenure.messages.tokens import turn_id
from tenure.messages.transcripts import (
    Again,
    CloseTranscript,
    OpenTranscript,
    ReadSeat,
    RecordsUncertain,
    SeatRemembered,
    SeatVacant,
    TranscriptChanged,
    TranscriptClosed,
)
from tenure.messages.turn import AttachSession, DrainTurn, GetTurn, RunTurn, TurnView

IDLE = TurnView(state="Idle", turn_id=None, queued=(), usage=Usage())


def woken() -> DrivenSession:
    session = DrivenSession(Waking())
    session.tell(OwnerStarted(incarnation=1))
    return session


def idle(session: DrivenSession) -> None:
    """Turn and compaction say that nothing is under way."""
    session.answer(GetTurn, IDLE)
    session.answer(GetCompaction, CompactionView(state="Idle", pass_id=None, waiting=0))


def parked() -> DrivenSession:
    session = DrivenSession()
    asker = session.ask(ParkSeat())
    idle(session)
    session.tell(TranscriptClosed(session_id=A))
    assert session.reply_to(asker) == SeatParked(token=token())
    return session


# --- waking ----------------------------------------------------------------------------------


def test_incarnation_first_reads_which_session_the_seat_had() -> None:
    session = woken()
    assert session.wanted(ReadSeat) == [ReadSeat()]
    waiting = session.append("a")
    assert session.reply_to(waiting) is None
    session.tell(SeatVacant(reason="its seat record is damaged"))
    assert session.reply_to(waiting) == NoSession(reason="its seat record is damaged")


def test_restarted_owner_opens_the_session_that_the_seat_had() -> None:
    session = woken()
    start = session.ask(StartTurn(text="go"))
    session.tell(SeatRemembered(session_id=A))
    assert session.wanted(OpenTranscript)[0].target == Again(session_id=A)
    session.load(session_id=A, epoch=2, last_turn=5)
    assert session.said(SessionChanged)[0].token == token(epoch=2)
    (attached,) = session.sent(AttachSession)
    run, asker = session.forwarded(RunTurn)[0]
    assert attached.last_turn >= 5
    assert (run.turn_id, asker) == (turn_id(A, attached.last_turn + 1), start)


def test_session_that_cannot_be_opened_again_leaves_the_seat_vacant_without_its_grants() -> None:
    session = woken()
    start = session.ask(StartTurn(text="go"))
    session.tell(SeatRemembered(session_id=A))
    refusal = session.not_loaded()
    assert session.reply_to(start) == NoSession(reason=refusal.remedy)
    assert session.sent(EndSessionGrants) == [EndSessionGrants(session_id=A)]
    # The next wish for a session is taken as in any vacant seat.
    session.ask(ContinueSession())
    session.load()
    session.noted()
    assert session.here == token(B)
    assert session.sent(DrainTurn) == []


# --- opening again -----------------------------------------------------------------------------


def test_turn_numbers_are_never_given_out_twice_in_a_seat() -> None:
    """A turn that was refused wrote nothing: the transcript does not know its number."""
    session = DrivenSession()
    for _ in range(3):
        session.ask(StartTurn(text="go"))
    session.append("a")
    session.tell(TranscriptChanged(session_id=A, path="a.jsonl"))
    session.load(session_id=A, last_turn=1)
    session.ask(StartTurn(text="go"))
    assert session.sent(RunTurn)[-1].turn_id == turn_id(A, 4)
    assert session.sent(AttachSession) == [AttachSession(token=token(A), last_turn=3)]


@pytest.mark.witness("TURN-2")
def test_turn_numbers_of_another_holder_are_never_given_out_again() -> None:
    """Of turns that wrote nothing the transcript knows no numbers, and late stops may name them."""
    session = woken()
    session.tell(SeatRemembered(session_id=A))
    session.load(session_id=A, epoch=3, last_turn=4)
    session.ask(StartTurn(text="go"))
    assert session.sent(RunTurn)[0].turn_id == turn_id(A, 2 * TURNS_PER_EPOCH_MAX + 1)
    assert session.sent(AttachSession)[0].last_turn == 2 * TURNS_PER_EPOCH_MAX


def test_commands_wait_in_order_while_the_session_is_opened_again() -> None:
    session = DrivenSession()
    session.append("a")
    session.tell(TranscriptChanged(session_id=A, path="a.jsonl"))
    stale = session.ask(StartTurn(text="bound", token=token()))
    free = session.ask(StartTurn(text="free"))
    session.ask(CancelTurn())
    assert session.reply_to(session.ask(GetSession())) == NoSession(reason="it is being opened")
    session.load(session_id=A, epoch=2)
    assert session.reply_to(stale) == Stale(current=token(epoch=2))
    assert session.forwarded(RunTurn)[0][1] == free
    assert [type(mail.message).__name__ for mail in session.mail] == [
        "AttachSession",
        "DropPasses",
        "RunTurn",
        "StopActiveTurn",
    ]


# --- parking -----------------------------------------------------------------------------------


def test_idle_seat_lets_its_session_go_and_its_next_command_opens_it_again() -> None:
    session = parked()
    assert session.wanted(CloseTranscript) == [CloseTranscript(session_id=A)]
    view = session.reply_to(session.ask(GetSession()))
    assert isinstance(view, SessionView)
    assert (view.state, view.token) == ("parked", token())
    append = session.append("a")
    assert session.wanted(OpenTranscript)[0].target == Again(session_id=A, epoch=1)
    session.load(session_id=A)
    session.written()
    assert isinstance(session.reply_to(append), Appended)


def test_parking_a_parked_seat_changes_nothing() -> None:
    session = parked()
    asker = session.ask(ParkSeat())
    assert session.reply_to(asker) == SeatParked(token=token())
    assert session.wanted(OpenTranscript) == []


@pytest.mark.parametrize(
    "view",
    [
        TurnView(state="Calling", turn_id=turn_id(A, 1), queued=(), usage=Usage()),
        TurnView(state="Drained", turn_id=None, queued=("waits",), usage=Usage()),
        DeadlinePassed(begun=False),
    ],
    ids=["running", "queued", "silent"],
)
def test_seat_that_works_is_not_parked(view: TurnView | DeadlinePassed) -> None:
    session = DrivenSession()
    asker = session.ask(ParkSeat())
    start = session.ask(StartTurn(text="go"))
    session.answer(GetTurn, view)
    assert session.reply_to(asker) == SeatBusy()
    assert session.forwarded(RunTurn)[0][1] == start
    assert session.wanted(CloseTranscript) == []


def test_seat_that_writes_is_not_parked() -> None:
    session = DrivenSession()
    session.append("a")
    assert session.reply_to(session.ask(ParkSeat())) == SeatBusy()


def test_seat_whose_session_is_closed_for_writing_may_park_and_heals_by_it() -> None:
    session = DrivenSession()
    session.append("a")
    session.tell(RecordsUncertain(session_id=A, reason="eio"))
    asker = session.ask(ParkSeat())
    idle(session)
    session.tell(TranscriptClosed(session_id=A))
    assert session.reply_to(asker) == SeatParked(token=token())
    session.ask(StartTurn(text="go"))
    session.load(session_id=A, epoch=2)
    assert session.sent(RunTurn)[0].token == token(epoch=2)


def test_start_that_came_while_the_seat_was_parking_opens_it_again() -> None:
    session = DrivenSession()
    session.ask(ParkSeat())
    idle(session)
    start = session.ask(StartTurn(text="go"))
    session.tell(TranscriptClosed(session_id=A))
    assert session.name == "Reopening"
    session.load(session_id=A)
    assert session.forwarded(RunTurn)[0][1] == start


def test_seat_is_parked_only_when_its_own_session_has_been_let_go() -> None:
    """The end of an earlier swap's letting go may come while the seat parks."""
    session = DrivenSession()
    session.swap_to(B)
    asker = session.ask(ParkSeat())
    idle(session)
    session.tell(TranscriptClosed(session_id=A))
    assert session.reply_to(asker) is None
    session.tell(TranscriptClosed(session_id=B))
    assert session.reply_to(asker) == SeatParked(token=token(B))


def test_parked_seat_that_another_process_has_taken_over_says_so() -> None:
    session = parked()
    start = session.ask(StartTurn(text="go"))
    refusal = session.not_loaded()
    assert session.reply_to(start) == NoSession(reason=refusal.remedy)


def test_turn_numbers_survive_a_park() -> None:
    session = DrivenSession()
    session.ask(StartTurn(text="go"))
    session.ask(ParkSeat())
    idle(session)
    session.tell(TranscriptClosed(session_id=A))
    session.ask(StartTurn(text="go"))
    session.load(session_id=A, last_turn=0)
    assert session.sent(RunTurn)[-1].turn_id == turn_id(A, 2)
