"""What the settings file says about the index of the notes."""

from collections.abc import Mapping
from typing import Any

from tenure.messages.settings import IndexRules

KEYS = {"index": ("model", "base_url")}


def index_rules(whole: Mapping[str, Any], problems: list[str]) -> IndexRules:
    """`[index]`; what is wrong with it is added to the problems."""
    table = whole.get("index", {})
    usual = IndexRules()
    if not isinstance(table, Mapping):
        problems.append("index is no table; the defaults are taken")
        return usual
    return IndexRules(
        model=_text(table, "model", usual.model, problems) or usual.model,
        base_url=_text(table, "base_url", usual.base_url, problems),
    )


def _text(table: Mapping[str, Any], key: str, default: str, problems: list[str]) -> str:
    value = table.get(key, default)
    if isinstance(value, str):
        return value
    problems.append(f"index.{key} is no text; {default!r} is taken")
    return default
