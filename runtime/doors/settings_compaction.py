"""What the settings file says about compaction."""

from collections.abc import Mapping
from typing import Any

from tenure.messages.settings import CompactionRules

THRESHOLD_PERCENT_MIN = 50
THRESHOLD_PERCENT_MAX = 95


def compaction_rules(whole: Mapping[str, Any], problems: list[str]) -> CompactionRules:
    """`[compaction]`; what is wrong with it is added to the problems."""
    table = whole.get("compaction", {})
    if not isinstance(table, Mapping):
        problems.append("compaction is no table; the defaults are taken")
        return CompactionRules()
    usual = CompactionRules()
    enabled = table.get("enabled", usual.enabled)
    if not isinstance(enabled, bool):
        problems.append(f"compaction.enabled is {enabled!r}, not true or false")
        enabled = usual.enabled
    percent = _number(table, "threshold_percent", usual.threshold_percent, problems)
    if not THRESHOLD_PERCENT_MIN <= percent <= THRESHOLD_PERCENT_MAX:
        said = f"between {THRESHOLD_PERCENT_MIN} and {THRESHOLD_PERCENT_MAX}"
        problems.append(f"compaction.threshold_percent is {percent}, not {said}")
        percent = min(max(percent, THRESHOLD_PERCENT_MIN), THRESHOLD_PERCENT_MAX)
    model = table.get("model", "")
    if not isinstance(model, str):
        problems.append("compaction.model is no text; summaries are made by rule")
        model = ""
    window = _number(table, "window", 0, problems)
    return CompactionRules(enabled=enabled, threshold_percent=percent, model=model, window=window)


def _number(table: Mapping[str, Any], key: str, default: int, problems: list[str]) -> int:
    value = table.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    problems.append(f"compaction.{key} is {value!r}, no whole number; {default} is taken")
    return default
