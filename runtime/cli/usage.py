"""What a session has used, as people read it."""

from collections.abc import Iterator

from tenure.messages.limits import Spending, Spent, money


def usage_lines(spending: Spending) -> Iterator[str]:
    """The total, its models where there are several, and what was left behind; else nothing."""
    total = spending.total
    if not total.requests:
        return
    yield f"used {_said(total)}, {total.wall_ms / 1000:.0f} s"
    if len(spending.models) > 1:
        for each in spending.models:
            yield f"  {each.model}: {_said(each.spent)}"
    if spending.abandoned.requests:
        yield f"  of it on other branches: {_said(spending.abandoned)}"


def _said(spent: Spent) -> str:
    usage = spent.usage
    tokens = usage.total_tokens or usage.input + usage.output
    cost = money(usage.cost.total) if usage.priced else _unpriced(usage.cost.total)
    calls = f", {spent.tool_calls} tool calls" if spent.tool_calls else ""
    cut = f" ({spent.unmeasured} cut off, not counted)" if spent.unmeasured else ""
    return f"{spent.requests} model calls{cut}{calls}, {tokens:,} tokens, {cost}"


def _unpriced(known: float) -> str:
    return f"{money(known)} and what has no known price" if known else "price not known"
