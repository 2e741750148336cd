"""Budgets, retries and thinking in the settings: read, and closed where they are broken."""

from typing import Any

import pytest

from tenure.messages.limits import Budget, RetryRules
from tenure.messages.settings import Settings
from tenure.runtime.doors.settings_layout import SettingsText, check_overrides, settings_of


def read(**table: Any) -> Settings:
    return settings_of("settings.toml", "/root", SettingsText(table=table), {})


def test_nothing_said_bounds_nothing() -> None:
    found = read()
    assert (found.budget.turn, found.budget.session, found.problems) == (Budget(), Budget(), ())
    assert (found.retries, found.thinking) == (RetryRules(), "default")


def test_every_bound_is_read_for_turn_and_session() -> None:
    bounds = {"usd_max": 0.5, "tokens_max": 7, "requests_max": 3, "tool_calls_max": 4}
    budget = {"turn": bounds, "session": {"wall_time_s_max": 60}, "unpriced": "allow"}
    found = read(budget=budget, thinking="high")
    assert found.budget.turn == Budget(**bounds)  # type: ignore[arg-type]
    assert found.budget.session == Budget(wall_time_s_max=60)
    assert (found.budget.unpriced, found.thinking, found.problems) == ("allow", "high", ())


@pytest.mark.parametrize(
    "wrong", [-1, "much", True, None, [], float("nan"), float("inf")], ids=repr
)
def test_bound_that_cannot_be_read_allows_one_model_call_and_is_named(wrong: Any) -> None:
    found = read(budget={"turn": {"usd_max": wrong, "requests_max": 9}})
    assert found.budget.turn.requests_max == 1
    assert any("budget.turn.usd_max" in each for each in found.problems)


@pytest.mark.parametrize("table", [{"budget": 3}, {"budget": {"turn": 3}}], ids=repr)
def test_budget_that_is_no_table_allows_one_model_call(table: dict[str, Any]) -> None:
    found = read(**table)
    assert found.budget.turn == Budget(requests_max=1)
    assert len(found.problems) == 1


def test_retries_and_models_to_fall_back_on_are_read() -> None:
    found = read(retry={"attempts_max": 2, "fallback": ["a:b"], "fallback_on": ["auth", "bug"]})
    assert found.retries == RetryRules(
        attempts_max=2, fallback=("a:b",), fallback_on=("auth", "bug")
    )
    assert found.problems == ()


@pytest.mark.parametrize(
    ("retry", "named"),
    [
        ({"attempts_max": 0}, "attempts_max"),
        ({"attempts_max": 11}, "attempts_max"),
        ({"attempts_max": "4"}, "attempts_max"),
        ({"fallback": "a:b"}, "retry.fallback "),
        ({"fallback_on": ["tired"]}, "'tired'"),
        (7, "retry is no table"),
    ],
)
def test_what_is_wrong_with_retries_is_named_and_the_default_taken(retry: Any, named: str) -> None:
    found = read(retry=retry)
    assert found.retries.attempts_max == RetryRules().attempts_max
    assert any(named in each for each in found.problems)


def test_unknown_level_of_thinking_is_named() -> None:
    found = read(thinking="hard")
    assert found.thinking == "default"
    assert "'hard'" in found.problems[0]


@pytest.mark.parametrize(
    "overrides",
    [
        {"budget": {"turn": {"usd": 1}}},
        {"budget": {"day": {}}},
        {"retry": {"times": 3}},
        {"budget": {"session": {"tokens_max": -1}}},
    ],
    ids=repr,
)
def test_embedder_is_told_of_keys_and_values_that_mean_nothing(overrides: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"budget|retry"):
        check_overrides("/root", overrides)


def test_bound_of_a_prompt_goes_before_the_usual_one_and_the_rest_stays() -> None:
    usual = Budget(usd_max=1.0, tokens_max=100)
    assert Budget(usd_max=5.0).over(usual) == Budget(usd_max=5.0, tokens_max=100)
