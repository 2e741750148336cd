"""Budgets: what is used up lets nothing more be done, and says so; what is unknown is not zero."""

from typing import Any

import pytest
from steps import A, DrivenTurn, answer, call, tool

from tenure.messages.approval import DecideCall
from tenure.messages.content import Cost, ToolResultMessage, Usage
from tenure.messages.limits import Budget, BudgetSpent, PriceMissed, RetryRules, Spent, TurnRules
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_id
from tenure.messages.turn import TurnEnded
from tenure.messages.turn_effects import (
    CallModel,
    KeepTime,
    TimeNotKept,
    TimeUp,
    Wait,
    WaitOver,
)

READ = tool("read", mutating=False)
FIRST = turn_id(A, 1)


def used(tokens: int = 10, usd: float = 0.01, *, priced: bool = True) -> Usage:
    return Usage(input=tokens, total_tokens=tokens, cost=Cost(total=usd), priced=priced)


def with_rules(**rules: Any) -> DrivenTurn:
    turn = DrivenTurn(READ)
    turn.rules = TurnRules(**rules)
    return turn


def of_turn(**bounds: Any) -> DrivenTurn:
    return with_rules(turn=Budget(**bounds))


def batch(turn: DrivenTurn, *call_ids: str, usage: Usage | None = None) -> None:
    """The model makes these calls; where they may run, they do, with results of their own."""
    turn.says(answer("", *(call(each, path=each) for each in call_ids), usage=usage or used()))
    turn.saved()
    for each in call_ids:
        if any(ask.call_id == each for ask in turn.open_asks(DecideCall)):
            turn.allows(each)
    for each in call_ids:
        if turn.name == "Acting":
            turn.runs(each, f"of {each}")
            turn.saved()
    if turn.name == "Ending":
        turn.saved()


def over(turn: DrivenTurn) -> TurnEnded:
    (ended,) = turn.ended
    assert (ended.stop_reason, ended.cause, turn.name) == ("stopped", "budget", "Idle")
    return ended


@pytest.mark.witness("TURN-12")
def test_used_up_requests_let_no_further_tool_batch_begin_and_its_calls_get_a_result() -> None:
    turn = of_turn(requests_max=2).to_calling()
    batch(turn, "a")
    batch(turn, "b")
    assert "the budget of the turn is used up: 2 of 2 requests" in over(turn).error
    assert len(turn.wanted(CallModel)) == 2
    results = [each for each in turn.written if isinstance(each, ToolResultMessage)]
    assert [each.tool_call_id for each in results] == ["a", "b"]
    assert "budget was used up" in str(results[1].content)
    assert [ask.call_id for ask in turn.sent(DecideCall)] == ["a"]


@pytest.mark.witness("TURN-12")
def test_tokens_are_looked_at_before_the_next_model_call() -> None:
    turn = of_turn(tokens_max=100)
    turn.rules = TurnRules(turn=Budget(tokens_max=100), spent=Spent(usage=used(tokens=5_000)))
    turn.to_calling()
    batch(turn, "a", usage=used(tokens=60))
    assert turn.ended == []
    batch(turn, "b", usage=used(tokens=60))
    assert "120 of 100 tokens" in over(turn).error


@pytest.mark.witness("TURN-12")
def test_time_that_passed_while_the_last_tool_ran_lets_no_further_model_be_called() -> None:
    turn = of_turn(wall_time_s_max=1.0)
    turn.run()
    turn.prepared()
    # The timer is late: what the clock says counts, too.
    turn.state = type(turn.state)(
        run=type(turn.state.run)(**_fields(turn.state.run) | {"began_ms": 0}),
        asker=turn.state.asker,
    )
    turn.saved()
    turn.saved()  # that it was stopped
    assert "seconds" in over(turn).error
    assert turn.wanted(CallModel) == []


def test_money_stops_a_turn_and_a_later_turn_has_its_own() -> None:
    turn = of_turn(usd_max=0.05).to_calling()
    batch(turn, "a", usage=used(usd=0.06))
    assert "$0.06 of $0.05" in over(turn).error
    turn.run("again")
    turn.prepared(2)
    turn.saved()
    assert len(turn.wanted(CallModel)) == 2


def test_tool_calls_may_be_used_to_the_last_and_one_more_is_too_many() -> None:
    turn = of_turn(tool_calls_max=3).to_calling()
    batch(turn, "a")
    batch(turn, "b", "c")
    assert turn.ended == []
    batch(turn, "d")
    assert "tool calls" in over(turn).error
    assert [ask.call_id for ask in turn.sent(DecideCall)] == ["a", "b", "c"]


def test_answer_without_calls_ends_its_turn_whatever_it_used() -> None:
    turn = of_turn(requests_max=1, tokens_max=1).to_calling()
    turn.says(answer("so it is", usage=used(tokens=500)))
    turn.saved()
    assert [ended.stop_reason for ended in turn.ended] == ["end_turn"]


@pytest.mark.witness("TURN-12")
def test_attempts_that_failed_count_as_requests() -> None:
    turn = of_turn(requests_max=2).to_calling()
    turn.fails("transport")
    turn.tell(WaitOver(turn_id=FIRST, call=1))
    turn.fails("transport")
    turn.tell(WaitOver(turn_id=FIRST, call=2))
    turn.saved()
    assert "2 of 2 requests" in over(turn).error
    assert len(turn.wanted(CallModel)) == 2


# --- the session's -------------------------------------------------------------------------


@pytest.mark.witness("TURN-12")
def test_session_whose_budget_is_used_up_starts_no_turn_and_nothing_is_written() -> None:
    spent = Spent(usage=used(usd=2.0), requests=7)
    turn = with_rules(session=Budget(usd_max=2.0), spent=spent)
    asker = turn.run()
    turn.prepared()
    refused = turn.reply_to(asker)
    assert isinstance(refused, BudgetSpent)
    assert (refused.scope, refused.kind, refused.used, refused.limit) == (
        "session",
        "money",
        2.0,
        2.0,
    )
    assert "start a new session" in refused.remedy
    assert turn.sent(AppendEntries) == []
    assert [ended.cause for ended in turn.ended] == ["budget"]


def test_what_the_session_used_before_counts_with_what_the_turn_uses() -> None:
    turn = with_rules(session=Budget(requests_max=8), spent=Spent(requests=7)).to_calling()
    batch(turn, "a")
    assert "budget of the session is used up: 8 of 8 requests" in over(turn).error


# --- prices that nobody knows ----------------------------------------------------------------


def test_unknown_price_under_a_budget_of_money_stops_and_says_what_to_do() -> None:
    turn = of_turn(usd_max=5.0).to_calling()
    batch(turn, "a", usage=used(usd=0.0, priced=False))
    ended = over(turn)
    assert "nobody knows the price" in ended.error
    assert "bound its tokens" in ended.error
    assert len(turn.said(PriceMissed)) == 1


def test_unknown_price_may_be_allowed_and_is_said_all_the_same() -> None:
    turn = with_rules(turn=Budget(usd_max=5.0), unpriced="allow").to_calling()
    batch(turn, "a", usage=used(usd=0.0, priced=False))
    batch(turn, "b", usage=used(usd=0.0, priced=False))
    assert turn.ended == []
    assert len(turn.said(PriceMissed)) == 1


def test_unknown_price_without_a_budget_of_money_is_nothing_to_speak_of() -> None:
    turn = of_turn(tokens_max=500).to_calling()
    batch(turn, "a", usage=used(priced=False))
    assert (turn.ended, turn.said(PriceMissed)) == ([], [])


# --- time ------------------------------------------------------------------------------------


def test_timer_rings_for_the_smaller_of_two_bounds_and_stops_what_runs() -> None:
    turn = with_rules(
        turn=Budget(wall_time_s_max=60),
        session=Budget(wall_time_s_max=100),
        spent=Spent(wall_ms=70_000),
    ).to_calling()
    (timer,) = turn.wanted(KeepTime)
    assert timer.delay_ms == 30_000
    turn.tell(TimeUp(turn_id=FIRST))
    assert turn.name == "StoppingModel"
    turn.fails("cancelled")
    turn.saved()
    assert "budget of the session" in over(turn).error


def test_turn_without_a_bound_of_time_has_no_timer() -> None:
    turn = of_turn(tokens_max=5).to_calling()
    assert turn.wanted(KeepTime) == []


def test_timer_is_cancelled_with_its_turn_and_rings_for_no_other() -> None:
    turn = of_turn(wall_time_s_max=60).to_calling()
    turn.says(answer("done", usage=used()))
    turn.saved()
    assert f"time {FIRST}" in turn.cancelled
    turn.run("again")
    turn.prepared(2)
    turn.saved()
    turn.tell(TimeUp(turn_id=FIRST))
    turn.tell(TimeNotKept(turn_id=FIRST, reason="cancelled"))
    assert turn.name == "Calling"


def test_timer_that_fails_stops_its_turn() -> None:
    turn = of_turn(wall_time_s_max=60).to_calling()
    turn.tell(TimeNotKept(turn_id=FIRST, reason="no clock"))
    turn.fails("cancelled")
    turn.saved()
    assert "no clock" in over(turn).error


def test_time_that_is_up_while_a_turn_is_being_stopped_changes_nothing() -> None:
    turn = of_turn(wall_time_s_max=60).to_calling()
    turn.stop()
    turn.tell(TimeUp(turn_id=FIRST))
    turn.fails("cancelled")
    turn.saved()
    assert [ended.cause for ended in turn.ended] == ["user"]


# --- retries and other models ------------------------------------------------------------------


def test_number_of_attempts_is_for_the_settings_to_say() -> None:
    turn = with_rules(retries=RetryRules(attempts_max=1)).to_calling()
    turn.fails("overloaded")
    turn.saved()
    assert [ended.stop_reason for ended in turn.ended] == ["error"]
    assert turn.wanted(Wait) == []


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}
