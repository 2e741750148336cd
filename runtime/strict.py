"""Strict hosts: every invariant that can be seen from messages is watched while they run."""

from collections.abc import Sequence

import msgspec

from tenure.runtime.observer import Observer


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """What a checker saw that must not be."""

    invariant: str
    what: str


def strict_observer() -> Observer:
    """The checkers as an observer."""
    # Only a strict host pays for loading them.
    from tenure.runtime.testing.checkers.strict import StrictObserver

    return StrictObserver()


def violations_of(observers: Sequence[Observer]) -> tuple[Violation, ...]:
    """What these observers found, as far as they look for it."""
    return tuple(found for each in observers for found in getattr(each, "violations", ()))
