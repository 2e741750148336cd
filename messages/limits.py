"""What a turn may use: budgets, what was spent, retries, and what one prompt says otherwise.

Money is in US dollars.  A price that nobody knows is never taken for zero: a sum
with such a part has `usage.priced` false.
"""

from typing import Literal

import msgspec

from tenure.messages.base import Effect, Event, Outcome, Query, Refusal, Reply
from tenure.messages.content import Usage
from tenure.messages.models import FailureKind, Thinking
from tenure.messages.tokens import SessionId, TurnId

BudgetScope = Literal["turn", "session"]
BudgetKind = Literal["money", "price", "tokens", "requests", "tool_calls", "wall_time"]
"""`price`: there is a budget of money, and something was used whose price nobody knows."""


class Budget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Upper bounds; 0 is no bound."""

    usd_max: float = 0.0
    tokens_max: int = 0
    """As the provider counts: input and output of every model call."""
    requests_max: int = 0
    """Model calls, retries included."""
    tool_calls_max: int = 0
    wall_time_s_max: float = 0.0
    """From the start of a turn to its end, the waits for approvals included."""

    def over(self, usual: "Budget") -> "Budget":
        """This budget, with the usual bound where it names none."""
        return Budget(
            usd_max=self.usd_max or usual.usd_max,
            tokens_max=self.tokens_max or usual.tokens_max,
            requests_max=self.requests_max or usual.requests_max,
            tool_calls_max=self.tool_calls_max or usual.tool_calls_max,
            wall_time_s_max=self.wall_time_s_max or usual.wall_time_s_max,
        )


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was used."""

    usage: Usage = Usage(priced=True)
    requests: int = 0
    unmeasured: int = 0
    """Of the requests, those that ended before the provider said what they used."""
    tool_calls: int = 0
    wall_ms: int = 0

    def plus(self, other: "Spent") -> "Spent":
        return Spent(
            usage=self.usage.plus(other.usage),
            requests=self.requests + other.requests,
            unmeasured=self.unmeasured + other.unmeasured,
            tool_calls=self.tool_calls + other.tool_calls,
            wall_ms=self.wall_ms + other.wall_ms,
        )


class RetryRules(msgspec.Struct, frozen=True, kw_only=True):
    """What is done when a model call fails."""

    attempts_max: int = 4
    """Of one call with one model, the first included; only what can pass is tried again."""
    fallback: tuple[str, ...] = ()
    """Model strings that are tried in this order once a model is given up."""
    fallback_on: tuple[FailureKind, ...] = ("rate_limit", "overloaded", "transport", "auth")
    """The failures for which a model is given up for the next one."""


class TurnRules(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one turn, settings and prompt together."""

    turn: Budget = Budget()
    session: Budget = Budget()
    unpriced: Literal["stop", "allow"] = "stop"
    """What a budget of money does where a price is not known."""
    spent: Spent = Spent()
    """By the session, before this turn."""
    retries: RetryRules = RetryRules()
    thinking: Thinking = "default"


class Overrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds for one prompt alone; what is left out is as in the settings."""

    thinking: Thinking = "default"
    budget: Budget = Budget()


class BudgetSpent(Refusal, frozen=True, kw_only=True):
    """A budget is used up: nothing was written, and no model was called."""

    turn_id: TurnId
    scope: BudgetScope
    kind: BudgetKind
    used: float
    """US dollars, tokens, calls or seconds, as the kind says."""
    limit: float

    @property
    def remedy(self) -> str:
        return sentence(self.scope, self.kind, self.used, self.limit)


class PriceMissed(Event, frozen=True, kw_only=True):
    """There is a budget of money, and nobody knows the price of what this model used."""

    turn_id: TurnId
    model: str


class GetSpending(Query, frozen=True, kw_only=True):
    """What the seat's session has used.  Answered `Spending`, or `NoSession`."""


class ModelSpent(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    spent: Spent


class Spending(Reply, frozen=True, kw_only=True):
    """What a session has used since its beginning, whatever was compacted since."""

    session_id: SessionId
    total: Spent
    abandoned: Spent = Spent()
    """Of the total, what was used on branches that the conversation has left."""
    models: tuple[ModelSpent, ...] = ()
    """Of the total, by the model that answered."""


class ReadSpending(Effect, frozen=True, kw_only=True):
    """Sum up what a session has used; of one that is parked, from its file."""

    session_id: SessionId
    path: str
    asker: int | None
    """Who asked: it rides along, as no state waits for the answer."""
    concurrent = True

    @property
    def key(self) -> str:
        return f"spending {self.session_id}"

    def failed(self, reason: str) -> Outcome:
        return SpendingNotRead(asker=self.asker, path=self.path, reason=reason)


class SpendingRead(Outcome, frozen=True, kw_only=True):
    asker: int | None
    spending: Spending


class SpendingNotRead(Outcome, frozen=True, kw_only=True):
    asker: int | None
    path: str
    reason: str


def sentence(scope: BudgetScope, kind: BudgetKind, used: float, limit: float) -> str:
    """Which budget, how much of it was used, and what to do."""
    match kind:
        case "price":
            return (
                f"the {scope} has a budget of {money(limit)}, and nobody knows the price of the "
                "model that it used; bound its tokens instead, or set budget.unpriced to "
                '"allow" in the settings'
            )
        case "money":
            said = f"{money(used)} of {money(limit)}"
        case "wall_time":
            said = f"{used:g} of {limit:g} seconds"
        case _:
            said = f"{int(used)} of {int(limit)} {kind.replace('_', ' ')}"
    name = "wall_time_s" if kind == "wall_time" else "usd" if kind == "money" else kind
    more = f"raise budget.{scope}.{name}_max in the settings"
    other = "start a new session" if scope == "session" else "give the next prompt a larger one"
    return f"the budget of the {scope} is used up: {said}; {more}, or {other}"


def money(usd: float) -> str:
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4g}"
