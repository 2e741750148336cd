"""What the settings file says about budgets, retries and thinking.

    thinking = "default"              # off, minimal, low, medium, high, xhigh

    [budget]
    unpriced = "stop"                 # or allow: what a budget of money does without a price

    [budget.turn]                     # and the same in [budget.session]; 0 is no bound
    usd_max = 0.5
    tokens_max = 200_000
    requests_max = 50
    tool_calls_max = 100
    wall_time_s_max = 600

    [retry]
    attempts_max = 4                  # of one call, 1 to 10
    fallback = ["ollama:qwen3"]       # tried in this order once a model is given up
    fallback_on = ["rate_limit", "overloaded", "transport", "auth"]

A bound that cannot be read fails closed: one model call and no more.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any, get_args

import msgspec

from tenure.messages.limits import Budget, RetryRules
from tenure.messages.models import FailureKind, Thinking
from tenure.messages.settings import BudgetRules

KEYS = {
    "budget": ("turn", "session", "unpriced"),
    "retry": ("attempts_max", "fallback", "fallback_on"),
}
ATTEMPTS_LIMIT = 10
CLOSED = Budget(requests_max=1)
"""What holds where a bound was meant and cannot be read."""

_BOUNDS = Budget.__struct_fields__
_WHOLE = ("tokens_max", "requests_max", "tool_calls_max")


def unknown_bounds(overrides: Mapping[str, Any]) -> list[str]:
    """The keys of budgets that mean nothing."""
    budget = overrides.get("budget", {})
    if not isinstance(budget, Mapping):
        return []
    return [
        f"budget.{scope}.{key} is unknown"
        for scope in ("turn", "session")
        if isinstance(budget.get(scope), Mapping)
        for key in budget[scope]
        if key not in _BOUNDS
    ]


def budget_rules(table: Mapping[str, Any], problems: list[str]) -> BudgetRules:
    """`[budget]`; what is wrong with it is added to the problems."""
    budget = table.get("budget", {})
    if not isinstance(budget, Mapping):
        problems.append("budget is no table; turns get one model call")
        return BudgetRules(turn=CLOSED)
    unpriced = budget.get("unpriced", "stop")
    if unpriced not in ("stop", "allow"):
        problems.append(f"budget.unpriced is {unpriced!r}, not stop or allow; stop is taken")
    return BudgetRules(
        turn=_budget("turn", budget.get("turn", {}), problems),
        session=_budget("session", budget.get("session", {}), problems),
        unpriced="allow" if unpriced == "allow" else "stop",
    )


def retry_rules(table: Mapping[str, Any], problems: list[str]) -> RetryRules:
    """`[retry]`; what is wrong with it is added to the problems."""
    retry, usual = table.get("retry", {}), RetryRules()
    if not isinstance(retry, Mapping):
        problems.append("retry is no table; the defaults are taken")
        return usual
    attempts = retry.get("attempts_max", usual.attempts_max)
    if not _is_whole(attempts) or not 1 <= attempts <= ATTEMPTS_LIMIT:
        problems.append(
            f"retry.attempts_max is {attempts!r}, not between 1 and {ATTEMPTS_LIMIT}; "
            f"{usual.attempts_max} is taken"
        )
        attempts = usual.attempts_max
    kinds = _texts(retry, "fallback_on", usual.fallback_on, problems)
    names: dict[str, FailureKind] = {kind: kind for kind in get_args(FailureKind)}
    known = [names[kind] for kind in kinds if kind in names]
    for kind in kinds:
        if kind not in names:
            problems.append(f"retry.fallback_on has {kind!r}, no kind of failure; it is left out")
    fallback = _texts(retry, "fallback", usual.fallback, problems)
    return RetryRules(attempts_max=attempts, fallback=fallback, fallback_on=tuple(known))


def thinking_of(table: Mapping[str, Any], problems: list[str]) -> Thinking:
    """`thinking`; what is wrong with it is added to the problems."""
    value = table.get("thinking", "default")
    levels: tuple[Thinking, ...] = get_args(Thinking)
    for level in levels:
        if value == level:
            return level
    problems.append(f"thinking is {value!r}, not one of {', '.join(levels)}; default is taken")
    return "default"


def _budget(scope: str, table: Any, problems: list[str]) -> Budget:
    if not isinstance(table, Mapping):
        problems.append(f"budget.{scope} is no table; it allows one model call")
        return CLOSED
    bounds: dict[str, Any] = {}
    closed = False
    for key in _BOUNDS:
        value = table.get(key, 0)
        if _is_whole(value) if key in _WHOLE else _is_number(value):
            bounds[key] = value
        else:
            what = "whole number" if key in _WHOLE else "number"
            problems.append(
                f"budget.{scope}.{key} is {value!r}, no {what} from 0; it allows one model call"
            )
            closed = True
    if closed:
        bounds["requests_max"] = CLOSED.requests_max
    return msgspec.convert(bounds, Budget)


def _texts(
    table: Mapping[str, Any], key: str, usual: tuple[str, ...], problems: list[str]
) -> tuple[str, ...]:
    value = table.get(key, usual)
    if isinstance(value, list | tuple) and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    problems.append(f"retry.{key} is {value!r}, no list of texts; the default is taken")
    return usual


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isfinite(value) and value >= 0
