"""Models to fall back on: when one is given up, which comes next, and what is written of it."""

import pytest
from steps import A, DrivenTurn, answer, call, tool

from tenure.messages.entries import MessageEntry, ModelChangeEntry
from tenure.messages.limits import Budget, RetryRules, TurnRules
from tenure.messages.models import FailureKind
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_id
from tenure.messages.turn import ModelFellBack, ModelRetrying
from tenure.messages.turn_effects import CallModel, Wait, WaitOver

FIRST = turn_id(A, 1)


def turn_of(*fallback: str, attempts_max: int = 2, **rules: object) -> DrivenTurn:
    turn = DrivenTurn(tool("read", mutating=False))
    turn.rules = TurnRules(
        retries=RetryRules(attempts_max=attempts_max, fallback=fallback),
        **rules,  # type: ignore[arg-type]
    )
    return turn.to_calling()


def waited(turn: DrivenTurn) -> None:
    turn.tell(WaitOver(turn_id=FIRST, call=turn.wanted(Wait)[-1].call))


def models(turn: DrivenTurn) -> list[str]:
    return [effect.model for effect in turn.wanted(CallModel)]


def test_model_is_given_up_once_its_attempts_are_used_and_the_next_gets_its_own() -> None:
    turn = turn_of("x:b", "y:c")
    for _ in range(2):
        turn.fails("overloaded")
        waited(turn)
        turn.fails("overloaded")
        waited(turn)
    turn.fails("overloaded")
    assert models(turn) == ["m", "m", "x:b", "x:b", "y:c"]
    fell = turn.said(ModelFellBack)
    assert [(each.instead_of, each.model, each.kind) for each in fell] == [
        ("m", "x:b", "overloaded"),
        ("x:b", "y:c", "overloaded"),
    ]
    assert len(turn.said(ModelRetrying)) == 3
    waited(turn)
    turn.fails("overloaded")
    turn.saved()
    assert [ended.stop_reason for ended in turn.ended] == ["error"]


def test_failure_that_does_not_pass_gives_a_model_up_at_once() -> None:
    turn = turn_of("x:b")
    turn.fails("auth")
    assert [each.model for each in turn.said(ModelFellBack)] == ["x:b"]
    waited(turn)
    assert models(turn) == ["m", "x:b"]


@pytest.mark.parametrize("kind", ["invalid", "refused", "bug"])
def test_failure_that_another_model_would_have_too_ends_the_turn(kind: FailureKind) -> None:
    turn = turn_of("x:b")
    turn.fails(kind)
    turn.saved()
    assert ([ended.stop_reason for ended in turn.ended], models(turn)) == (["error"], ["m"])


def test_change_of_the_model_is_written_once_with_the_first_answer_of_the_other() -> None:
    turn = turn_of("x:b")
    turn.fails("auth")
    waited(turn)
    turn.says(answer("", call("c1")))
    turn.saved()
    turn.allows("c1")
    turn.runs("c1")
    turn.saved()
    turn.says(answer("done"))
    turn.saved()
    kinds = [
        [type(entry) for entry in append.entries]
        for append in turn.sent(AppendEntries)
        if any(isinstance(entry, ModelChangeEntry) for entry in append.entries)
    ]
    assert kinds == [[ModelChangeEntry, MessageEntry]]
    assert models(turn) == ["m", "x:b", "x:b"]
    (changed,) = [
        entry
        for append in turn.sent(AppendEntries)
        for entry in append.entries
        if isinstance(entry, ModelChangeEntry)
    ]
    assert (changed.provider, changed.model_id) == ("x", "b")


def test_budget_of_requests_bounds_the_models_that_are_tried() -> None:
    turn = turn_of("x:b", turn=Budget(requests_max=1))
    turn.fails("auth")
    waited(turn)
    turn.saved()
    assert ([ended.cause for ended in turn.ended], models(turn)) == (["budget"], ["m"])


def test_model_of_the_turn_is_not_fallen_back_on() -> None:
    turn = turn_of("m")
    turn.fails("auth")
    turn.saved()
    assert turn.said(ModelFellBack) == []


def test_stop_while_the_next_model_is_about_to_be_called_ends_the_turn() -> None:
    turn = turn_of("x:b")
    turn.fails("auth")
    turn.stop()
    turn.saved()
    assert [ended.cause for ended in turn.ended] == ["user"]
    assert models(turn) == ["m"]
