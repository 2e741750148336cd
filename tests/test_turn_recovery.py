"""A restarted TurnActor: what the dead one left is settled, and what came meanwhile waits."""

import pytest
from steps import A, Driven, DrivenTurn, answer, call, token, tool

from tenure.actors.turn import turn_step
from tenure.actors.turn_state import Idle
from tenure.messages.approval import RevokeSeatApprovals
from tenure.messages.base import Message, Reply
from tenure.messages.bus import OwnerStarted, OwnerStopped
from tenure.messages.session import AppendFailed, CallsSettled, NoSession, SettleCalls
from tenure.messages.tokens import turn_id
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    RunTurn,
    StopActiveTurn,
    StopTurn,
    TurnDrained,
    TurnNotRunning,
    TurnNotStarted,
    TurnStopping,
    TurnView,
)
from tenure.messages.turn_effects import ModelCallDone, PrepareTurn

SETTLED = CallsSettled(token=token(), settled=1, last_turn=4)


def run(number: int) -> RunTurn:
    return RunTurn(
        turn_id=turn_id(A, number),
        token=token(),
        text=f"prompt {number}",
        images=(),
        model="",
        when_busy="queue",
    )


def restarted() -> DrivenTurn:
    turn = DrivenTurn()
    turn.state = Idle()
    turn.tell(OwnerStarted(incarnation=2))
    return turn


def test_first_incarnation_has_nothing_to_mend() -> None:
    turn = Driven(turn_step, Idle())
    turn.tell(OwnerStarted(incarnation=1))
    assert (turn.state, turn.mail) == (Idle(), [])


@pytest.mark.witness("APPROVE-6")
def test_restarted_owner_has_open_calls_settled_and_every_request_revoked() -> None:
    turn = restarted()
    assert len(turn.open_asks(SettleCalls)) == 1
    assert turn.sent(RevokeSeatApprovals) == [RevokeSeatApprovals()]


def test_start_waits_until_the_calls_of_the_dead_turn_have_their_results() -> None:
    turn = restarted()
    asker = turn.ask(run(5))
    assert turn.wanted(PrepareTurn) == []
    turn.answer(SettleCalls, SETTLED)
    assert turn.wanted(PrepareTurn)[0].turn_id == turn_id(A, 5)
    assert turn.reply_to(asker) is None


@pytest.mark.parametrize(
    "reply",
    [NoSession(), AppendFailed(reason="full"), OwnerStopped(begun=True)],
    ids=lambda reply: type(reply).__name__,
)
def test_start_is_not_held_for_ever_where_nothing_can_be_settled(reply: Reply) -> None:
    turn = restarted()
    turn.ask(run(5))
    turn.answer(SettleCalls, reply)
    assert turn.name == "Preparing"


def test_messages_that_waited_are_taken_in_their_order() -> None:
    turn = restarted()
    five, six = turn.ask(run(5)), turn.ask(run(6))
    stop = turn.ask(StopTurn(turn_id=turn_id(A, 6)))
    cancel = turn.ask(StopActiveTurn(cause="user"))
    drain = turn.ask(DrainTurn())
    turn.answer(SettleCalls, SETTLED)
    assert turn.reply_to(stop) == TurnStopping(turn_id=turn_id(A, 6), dropped=("prompt 6",))
    assert turn.reply_to(cancel) == TurnStopping(turn_id=turn_id(A, 5))
    assert turn.reply_to(five) == TurnNotStarted(turn_id=turn_id(A, 5), cause="user")
    assert turn.reply_to(six) is not None
    assert turn.reply_to(drain) == TurnDrained()


@pytest.mark.witness("TURN-2")
def test_stop_that_overtook_its_start_during_a_restart_answers_it() -> None:
    turn = restarted()
    stop = turn.ask(StopTurn(turn_id=turn_id(A, 5)))
    start = turn.ask(run(5))
    turn.answer(SettleCalls, SETTLED)
    assert turn.reply_to(stop) == TurnStopping(turn_id=turn_id(A, 5))
    assert turn.reply_to(start) == TurnNotStarted(turn_id=turn_id(A, 5), cause="user")


def test_stop_for_the_turn_that_died_comes_too_late() -> None:
    turn = restarted()
    stop = turn.ask(StopTurn(turn_id=turn_id(A, 4)))
    turn.answer(SettleCalls, SETTLED)
    assert turn.reply_to(stop) == TurnNotRunning(turn_id=None)


@pytest.mark.parametrize(
    "message",
    [AttachSession(token=token(A), last_turn=4), AbandonDrain()],
    ids=["attach", "abandon"],
)
def test_news_of_the_session_lose_nothing_of_what_waits(message: Message) -> None:
    turn = restarted()
    start = turn.ask(run(5))
    turn.tell(message)
    assert turn.name == "Recovering"
    turn.answer(SettleCalls, SETTLED)
    assert turn.wanted(PrepareTurn)[0].turn_id == turn_id(A, 5)
    assert turn.reply_to(start) is None


def test_outcomes_for_the_dead_change_nothing_and_looking_is_always_answered() -> None:
    turn = restarted()
    before = turn.state
    turn.tell(ModelCallDone(turn_id=turn_id(A, 4), call=1, message=answer("late")))
    assert turn.state == before
    view = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(view, TurnView)
    assert (view.state, view.turn_id) == ("Recovering", None)


def test_queue_can_be_seen_while_a_save_that_failed_is_mended() -> None:
    turn = DrivenTurn(tool("read")).to_calling()
    turn.queue("second")
    turn.says(answer("", call("c1")))
    turn.refused(AppendFailed(reason="full"))
    view = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(view, TurnView)
    assert view.queued == ("second",)
