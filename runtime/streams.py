"""Streams of events that must end: a turn that began is ended, also when its owner dies."""

from collections.abc import Callable

import msgspec

from tenure.messages.base import Event


class StreamRule(msgspec.Struct, frozen=True, kw_only=True):
    """How `runtime/system.py` tells the runtime what opens and what ends a stream."""

    opens: type[Event]
    ends: type[Event]
    key: Callable[[Event], str]
    lost: Callable[[str], Event]
    """Builds the last event of a stream whose owner is gone."""


class OpenStreams:
    """Which streams each owner has open."""

    def __init__(self, rules: tuple[StreamRule, ...]) -> None:
        self._rules = rules
        self._open: dict[str, dict[str, StreamRule]] = {}

    def seen(self, owner: str, event: Event) -> None:
        for rule in self._rules:
            if isinstance(event, rule.opens):
                self._open.setdefault(owner, {})[rule.key(event)] = rule
            elif isinstance(event, rule.ends) and owner in self._open:
                self._open[owner].pop(rule.key(event), None)

    def lost(self, owner: str) -> list[Event]:
        """The events that end what this owner had open."""
        return [rule.lost(key) for key, rule in self._open.pop(owner, {}).items()]
