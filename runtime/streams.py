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
        self._opened_by = {rule.opens: rule for rule in rules}
        self._ended_by = {rule.ends: rule for rule in rules}
        self._open: dict[str, dict[str, StreamRule]] = {}
        self.kinds = frozenset((*self._opened_by, *self._ended_by))
        """The events that matter here; most are deltas, and do not."""

    def seen(self, owner: str, event: Event) -> None:
        """Called for every event of these kinds, of every owner."""
        kind = type(event)
        rule = self._opened_by.get(kind)
        if rule is not None:
            self._open.setdefault(owner, {})[rule.key(event)] = rule
            return
        rule = self._ended_by.get(kind)
        if rule is not None and owner in self._open:
            mine = self._open[owner]
            mine.pop(rule.key(event), None)
            if not mine:
                del self._open[owner]

    def lost(self, owner: str) -> list[Event]:
        """The events that end what this owner had open."""
        return [rule.lost(key) for key, rule in self._open.pop(owner, {}).items()]
