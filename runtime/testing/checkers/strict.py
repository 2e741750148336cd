"""The checkers in production: `Host.open(strict=True)`."""

import logging
from typing import Any

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.bus import Published
from tenure.runtime.step import Step, Taken
from tenure.runtime.strict import Violation
from tenure.runtime.testing.checkers import message_checkers
from tenure.runtime.testing.watch import HOOKS, HostObserver

VIOLATIONS_KEPT_MAX = 1_000

_log = logging.getLogger("tenure.strict")


class StrictObserver:
    """Runs every checker that needs no simulated disk, and keeps what they find.

    A violation is logged as an error the moment it is found; nothing is stopped
    because of it.  A checker that fails is a finding, too.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        """The newest come last; after the first 1,000 they are only logged."""
        self._checkers = message_checkers()
        hooks: dict[str, list[Any]] = {
            name: [getattr(checker, name) for checker in self._checkers] for name in HOOKS
        }
        self._observer = HostObserver(hooks, "host")

    def stepped(
        self, owner: str, incarnation: int, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        self._tell("stepped", owner, incarnation, message, taken, step)

    def raised(self, owner: str, incarnation: int, message: Message, error: Exception) -> None:
        self._tell("raised", owner, incarnation, message, error)

    def published(self, published: Published) -> None:
        self._tell("published", published)

    def effect_started(self, owner: str, number: int, effect: Effect) -> None:
        self._tell("effect_started", owner, number, effect)

    def effect_ended(self, owner: str, number: int, outcome: Outcome) -> None:
        self._tell("effect_ended", owner, number, outcome)

    def _tell(self, hook: str, *facts: object) -> None:
        try:
            getattr(self._observer, hook)(*facts)
        except Exception as error:
            # An observer must not raise: it stands in the middle of a step.
            self._keep(Violation(invariant="CHECKER", what=f"{type(error).__name__}: {error}"))
        for checker in self._checkers:
            if checker.violations:
                found, checker.violations = checker.violations, []
                for violation in found:
                    self._keep(violation)

    def _keep(self, violation: Violation) -> None:
        _log.error("%s: %s", violation.invariant, violation.what)
        if len(self.violations) < VIOLATIONS_KEPT_MAX:
            self.violations.append(violation)
