"""Budgets: checked before every model call and every tool batch; time is kept by a timer.

What the session had used before the turn came with its preparation; what the
turn uses is counted in its run.
"""

import msgspec
from msgspec.structs import replace

from tenure.actors.turn_state import Run
from tenure.messages.limits import (
    Budget,
    BudgetKind,
    BudgetScope,
    BudgetSpent,
    PriceMissed,
    Spent,
    sentence,
)
from tenure.messages.turn_effects import KeepTime, ToolCallDone, ToolCallFailed

CHILD_USAGE = "usage"
"""In the details of a tool result: what the call itself had used."""


class Overrun(msgspec.Struct, frozen=True):
    """One budget that is used up."""

    scope: BudgetScope
    kind: BudgetKind
    used: float
    limit: float

    @property
    def why(self) -> str:
        return sentence(self.scope, self.kind, self.used, self.limit)


def overrun_of(run: Run, now_ms: int, calls: int = 0) -> Overrun | None:
    """The first budget that lets nothing more be done.

    Args:
        calls: the tool calls that would be made next.
    """
    rules = run.rules
    used = spent_by(run, now_ms)
    pairs: tuple[tuple[BudgetScope, Budget, Spent], ...] = (
        ("turn", rules.turn, used),
        ("session", rules.session, rules.spent.plus(used)),
    )
    for scope, budget, spent in pairs:
        for kind, amount, limit in _amounts(run, budget, spent, calls):
            if limit and amount >= limit:
                return Overrun(scope, kind, amount, limit)
    return None


def spent_by(run: Run, now_ms: int) -> Spent:
    own = Spent(
        usage=run.usage,
        requests=run.calls,
        tool_calls=run.tool_calls,
        wall_ms=max(0, now_ms - run.began_ms),
    )
    return own.plus(run.by_children)


def with_child(run: Run, outcome: ToolCallDone | ToolCallFailed) -> Run:
    """The run with what a subagent used, where the call that ended was one."""
    if isinstance(outcome, ToolCallFailed) or CHILD_USAGE not in outcome.details:
        return run
    try:
        used = msgspec.convert(outcome.details[CHILD_USAGE], Spent)
    except msgspec.ValidationError:
        return run
    return replace(run, by_children=run.by_children.plus(used))


def refusal_of(run: Run, overrun: Overrun) -> BudgetSpent:
    return BudgetSpent(
        turn_id=run.turn_id,
        scope=overrun.scope,
        kind=overrun.kind,
        used=overrun.used,
        limit=overrun.limit,
    )


def timer_of(run: Run) -> tuple[KeepTime, ...]:
    """The timer of a turn whose time is bounded, or none."""
    rules = run.rules
    left = [rules.turn.wall_time_s_max * 1000] if rules.turn.wall_time_s_max else []
    if rules.session.wall_time_s_max:
        left.append(rules.session.wall_time_s_max * 1000 - rules.spent.wall_ms)
    if not left:
        return ()
    return (KeepTime(turn_id=run.turn_id, delay_ms=max(0, round(min(left)))),)


def out_of_time(run: Run, now_ms: int) -> Overrun:
    """What the timer says when it rings: the budget whose time came first."""
    rules, used_s = run.rules, max(0, now_ms - run.began_ms) / 1000
    before_s = rules.spent.wall_ms / 1000
    turn_max, session_max = rules.turn.wall_time_s_max, rules.session.wall_time_s_max
    if turn_max and (not session_max or turn_max <= session_max - before_s):
        return Overrun("turn", "wall_time", used_s, turn_max)
    return Overrun("session", "wall_time", before_s + used_s, session_max)


def cost_unknown(run: Run, was_priced: bool, model: str) -> tuple[PriceMissed, ...]:
    """Said once, with the first answer that makes the cost of the turn unknown."""
    bounded = run.rules.turn.usd_max or run.rules.session.usd_max
    if not bounded or run.usage.priced or not was_priced:
        return ()
    return (PriceMissed(turn_id=run.turn_id, model=model),)


# --- pure helpers ------------------------------------------------------------------------


def _amounts(
    run: Run, budget: Budget, spent: Spent, calls: int
) -> tuple[tuple[BudgetKind, float, float], ...]:
    usage = spent.usage
    tokens = usage.total_tokens or usage.input + usage.output
    unknown = budget.usd_max if run.rules.unpriced == "stop" and not usage.priced else 0.0
    # A batch may use up the calls that are left; only one more is too many.
    tool_calls = spent.tool_calls + calls - 1 if calls else 0
    return (
        ("price", budget.usd_max, unknown),
        ("money", usage.cost.total, budget.usd_max),
        ("tokens", tokens, budget.tokens_max),
        ("requests", spent.requests, budget.requests_max),
        ("tool_calls", tool_calls, budget.tool_calls_max),
        ("wall_time", spent.wall_ms / 1000, budget.wall_time_s_max),
    )
