"""A handover, step by step: drain, flush, forget, let go; and what holds it up."""

import pytest
from steps import A, B, DrivenSession, DrivenTurn, call, texts_in, token, tool

from tenure.actors.session_state import Parked, Vacant
from tenure.messages.approval import EndSessionGrants
from tenure.messages.bus import Answered, OwnerStopped
from tenure.messages.content import Usage
from tenure.messages.handover import (
    DetachSession,
    ForgetSeat,
    HandedOver,
    HandoverPending,
    HandOverSession,
    SessionHandedOver,
)
from tenure.messages.session import (
    Appended,
    GetSession,
    NoSession,
    OpenSession,
    SessionOpened,
    SessionView,
    Stale,
    StartTurn,
)
from tenure.messages.tokens import CallId, SessionId, turn_id
from tenure.messages.transcripts import CloseTranscript, TranscriptClosed
from tenure.messages.turn import (
    AttachSession,
    DrainTurn,
    GetTurn,
    TurnEnded,
    TurnView,
)

HAND_OVER = HandOverSession(session_id=A)


def looked(session: DrivenSession, *calls: str) -> None:
    """The turn owner says which tools still run."""
    view = TurnView(
        state="StoppingTools",
        turn_id=turn_id(A, 1),
        queued=(),
        usage=Usage(),
        calls=tuple(CallId(each) for each in calls),
    )
    session.answer(GetTurn, view)


def closed(session: DrivenSession, session_id: SessionId = A) -> None:
    session.tell(TranscriptClosed(session_id=session_id))


@pytest.mark.witness("SESSION-5")
def test_session_is_let_go_of_only_when_the_turn_has_ended_and_its_last_entry_is_durable() -> None:
    session = DrivenSession()
    asker = session.ask(HAND_OVER)
    assert session.sent(DrainTurn) == [DrainTurn(cause="handover")]
    last = session.append("the last words")
    session.drained()
    assert session.wanted(CloseTranscript) == [], "its last entry is not durable"
    session.written()
    assert isinstance(session.reply_to(last), Appended)
    assert session.effects[-2:] == [ForgetSeat(), CloseTranscript(session_id=A)]
    assert session.reply_to(asker) is None, "the claim is not free"
    closed(session)
    assert session.reply_to(asker) == HandedOver(token=token())
    assert isinstance(session.state, Vacant)


def test_seat_is_empty_after_a_handover_and_says_why() -> None:
    session = DrivenSession()
    session.ask(HAND_OVER)
    session.drained("waited")
    closed(session)
    refused = session.reply_to(session.ask(StartTurn(text="go")))
    assert isinstance(refused, NoSession)
    assert "handed over" in refused.remedy
    assert session.said(SessionHandedOver) == [
        SessionHandedOver(token=token(), dropped=("waited",))
    ]
    assert session.sent(DetachSession) == [DetachSession()]
    assert session.sent(EndSessionGrants) == [EndSessionGrants(session_id=A)]


def test_texts_that_waited_are_given_back_to_who_asked() -> None:
    session = DrivenSession()
    asker = session.ask(HAND_OVER)
    session.drained("one", "two")
    closed(session)
    assert session.reply_to(asker) == HandedOver(token=token(), dropped=("one", "two"))


def test_asker_is_told_at_once_which_tools_hold_the_handover_up() -> None:
    session = DrivenSession()
    first = session.ask(HAND_OVER)
    looked(session, "c1", "c2")
    pending = session.reply_to(first)
    assert pending == HandoverPending(session_id=A, calls=(CallId("c1"), CallId("c2")))
    second = session.ask(HAND_OVER)
    assert session.reply_to(second) is None
    looked(session, "c2")
    assert session.reply_to(second) == HandoverPending(session_id=A, calls=(CallId("c2"),))


def test_pending_handover_goes_on_by_itself_when_the_tool_ends() -> None:
    session = DrivenSession()
    session.ask(HAND_OVER)
    looked(session, "c1")
    session.drained()
    later = session.ask(HAND_OVER)
    closed(session)
    assert session.reply_to(later) == HandedOver(token=token())


def test_handover_waits_where_no_tool_runs_for_a_model_that_says_its_last_words() -> None:
    session = DrivenSession()
    asker = session.ask(HAND_OVER)
    looked(session)
    assert session.reply_to(asker) is None
    session.drained()
    closed(session)
    assert isinstance(session.reply_to(asker), HandedOver)


def test_late_look_at_the_tools_changes_nothing_after_the_drain() -> None:
    session = DrivenSession()
    asker = session.ask(HAND_OVER)
    _, re = session.waiting_for(GetTurn)
    session.drained()
    view = TurnView(state="Drained", turn_id=None, queued=(), usage=Usage(), calls=(CallId("c1"),))
    session.tell(Answered(re=re, reply=view))
    assert session.reply_to(asker) is None
    closed(session)
    assert isinstance(session.reply_to(asker), HandedOver)


def test_turn_owner_that_died_does_not_hold_the_handover_up() -> None:
    session = DrivenSession()
    asker = session.ask(HAND_OVER)
    session.answer(DrainTurn, OwnerStopped(begun=True))
    session.answer(GetTurn, OwnerStopped(begun=True))
    closed(session)
    assert isinstance(session.reply_to(asker), HandedOver)


def test_everybody_who_asked_is_answered_once() -> None:
    session = DrivenSession()
    askers = [session.ask(HAND_OVER)]
    askers.append(session.ask(HAND_OVER))
    session.append("x")
    session.drained()
    askers.append(session.ask(HAND_OVER))  # while the last entry is written
    session.written()
    askers.append(session.ask(HAND_OVER))  # while the claim is let go of
    closed(session)
    assert [session.reply_to(each) for each in askers] == [HandedOver(token=token())] * 4


@pytest.mark.parametrize("moment", ["draining", "flushing", "releasing"])
def test_command_that_comes_during_a_handover_waits_for_its_end(moment: str) -> None:
    session = DrivenSession()
    session.ask(HAND_OVER)
    if moment != "draining":
        session.append("x")
        session.drained()
    if moment == "releasing":
        session.written()
    start, swap = session.ask(StartTurn(text="go")), session.ask(OpenSession(session_id=B))
    assert (session.reply_to(start), session.reply_to(swap)) == (None, None)
    if moment == "draining":
        session.drained()
    elif moment == "flushing":
        session.written()
    closed(session)
    assert isinstance(session.reply_to(start), NoSession)
    session.load(session_id=B)
    session.noted()
    assert isinstance(session.reply_to(swap), SessionOpened)


def test_late_append_is_refused_once_the_claim_is_being_let_go_of() -> None:
    session = DrivenSession()
    session.ask(HAND_OVER)
    session.drained()
    late = session.append("too late")
    closed(session)
    assert isinstance(session.reply_to(late), NoSession)


def test_another_session_than_the_seats_is_not_handed_over() -> None:
    session = DrivenSession()
    asker = session.ask(HandOverSession(session_id=B))
    assert session.reply_to(asker) == Stale(current=token())
    assert session.mail == []


def test_handover_asked_for_during_a_swap_gets_what_the_seat_has_after_it() -> None:
    session = DrivenSession()
    session.ask(OpenSession(session_id=B))
    asker = session.ask(HAND_OVER)
    session.load(session_id=B)
    session.drained()
    session.noted()
    assert session.reply_to(asker) == Stale(current=token(B)), "the swap has let go of it"


def test_parked_seat_hands_over_without_opening_its_session_again() -> None:
    session = DrivenSession()
    session = DrivenSession(Parked(session.state.session))
    asker = session.ask(HAND_OVER)
    assert session.effects == [ForgetSeat(), CloseTranscript(session_id=A)]
    closed(session)
    assert session.reply_to(asker) == HandedOver(token=token())


def test_parked_seat_does_not_hand_over_what_it_does_not_have() -> None:
    session = DrivenSession()
    session = DrivenSession(Parked(session.state.session))
    asker = session.ask(HandOverSession(session_id=B))
    assert session.reply_to(asker) == Stale(current=token())
    assert isinstance(session.state, Parked)


def test_seat_says_that_it_hands_its_session_over() -> None:
    session = DrivenSession()
    session.ask(HAND_OVER)
    view = session.reply_to(session.ask(GetSession()))
    assert isinstance(view, SessionView)
    assert view.state == "handing_over"


# --- the turn --------------------------------------------------------------------------------


def test_handover_stops_the_turn_with_its_own_cause_and_ends_what_waited() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("later")
    asker = turn.ask(DrainTurn(cause="handover"))
    turn.fails("cancelled")
    turn.saved()
    assert texts_in(turn.reply_to(asker)) == ("later",)
    assert [ended.cause for ended in turn.ended] == ["handover"]
    turn.tell(DetachSession())
    assert [(ended.turn_id, ended.cause) for ended in turn.said(TurnEnded)] == [
        (turn_id(A, 1), "handover"),
        (turn_id(A, 2), "handover"),
    ]
    assert turn.name == "Idle"


def test_turn_view_names_the_calls_that_run() -> None:
    turn = DrivenTurn(tool("read")).to_acting(call("c1"), call("c2"))
    turn.allows("c1")
    turn.allows("c2")
    turn.runs("c2")
    view = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(view, TurnView)
    assert view.calls == (CallId("c1"),)


def test_seat_that_closes_stays_closed_when_its_session_is_handed_over() -> None:
    turn = DrivenTurn()
    turn.ask(DrainTurn(cause="shutdown"))
    turn.tell(DetachSession())
    assert turn.name == "Drained"
    turn.tell(AttachSession(token=token(B), last_turn=0))
    assert turn.name == "Drained"
