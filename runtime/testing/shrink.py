"""Makes a failing run short: fewer operations, then the usual order wherever it does not matter."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from tenure.runtime.strict import Violation
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.choices import ReplayedChooser
from tenure.runtime.testing.report import Tracer
from tenure.runtime.testing.search import Found
from tenure.runtime.testing.workload import AnyOp, Plan, Prompt
from tenure.runtime.testing.workload_run import run_plan

RUNS_MAX = 600


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failing run as it is written into a file."""

    seed: int
    invariant: str
    violations: tuple[Violation, ...]
    plan: Plan
    choices: tuple[int, ...]
    trace: tuple[str, ...]
    """What happened, one line each, in words."""


class Shrinker:
    """Tries shorter runs as long as they break the same invariant.

    Args:
        runs_max: how many runs may be tried.
    """

    def __init__(self, found: Found, runs_max: int = RUNS_MAX) -> None:
        self.plan = found.plan
        self.choices: tuple[int, ...] | None = None
        """None while the seed chooses."""
        self.invariant = found.violations[0].invariant
        self._left = runs_max

    def shrink(self) -> Failure:
        self._drop_operations()
        for place in range(len(self.plan.ops)):
            self._simplify(place)
        self._straighten()
        return failure_of(self.plan, self.choices, self.invariant)

    def _fails(self, plan: Plan, choices: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The choices of the run where it still fails the same way."""
        if self._left <= 0:
            return None
        self._left -= 1
        chooser = None if choices is None else ReplayedChooser(choices)
        outcome = run_plan(plan, all_checkers(), chooser=chooser)
        same = any(each.invariant == self.invariant for each in outcome.violations)
        return outcome.choices if same else None

    def _drop_operations(self) -> None:
        """Leave out half of them, then a quarter, down to one."""
        size = max(1, len(self.plan.ops) // 2)
        while size:
            place = 0
            while place < len(self.plan.ops):
                ops = self.plan.ops
                if not self._keep_ops((*ops[:place], *ops[place + size :])):
                    place += size
            size //= 2

    def _keep_ops(self, ops: tuple[AnyOp, ...]) -> bool:
        plan = replace(self.plan, ops=ops)
        if self._fails(plan, None) is None:
            return False
        self.plan = plan
        return True

    def _simplify(self, place: int) -> None:
        op = self.plan.ops[place]
        self._replace(place, replace(op, after_ms=0))
        op = self.plan.ops[place]
        if isinstance(op, Prompt):
            while len(op.moves) > 1 and self._replace(place, replace(op, moves=op.moves[:-1])):
                op = self.plan.ops[place]
                assert isinstance(op, Prompt)

    def _replace(self, place: int, op: AnyOp) -> bool:
        if op == self.plan.ops[place]:
            return False
        ops = self.plan.ops
        return self._keep_ops((*ops[:place], op, *ops[place + 1 :]))

    def _straighten(self) -> None:
        """Set choices to the usual one, in ever smaller pieces."""
        made = self._fails(self.plan, None)
        if made is None:
            return
        choices = list(made)
        size = max(1, len(choices) // 2)
        while size and self._left > 0:
            for start in range(0, len(choices), size):
                piece = choices[start : start + size]
                if not any(piece):
                    continue
                tried = [*choices[:start], *[0] * len(piece), *choices[start + size :]]
                if self._fails(self.plan, tuple(tried)) is not None:
                    choices = tried
            size //= 2
        while choices and choices[-1] == 0:
            choices.pop()
        self.choices = tuple(choices)


def failure_of(plan: Plan, choices: tuple[int, ...] | None, invariant: str) -> Failure:
    """Run it once more, with a trace."""
    tracer = Tracer()
    chooser = None if choices is None else ReplayedChooser(choices)
    outcome = run_plan(plan, [*all_checkers(), tracer], chooser=chooser)
    return Failure(
        seed=plan.seed,
        invariant=invariant,
        violations=outcome.violations,
        plan=plan,
        choices=outcome.choices if choices is None else choices,
        trace=tuple(tracer.lines),
    )


def replay(failure: Failure, say: Callable[[str], None]) -> tuple[Violation, ...]:
    """Run a failure again, saying every line as it happens; what was broken."""
    tracer = Tracer(say)
    chooser = ReplayedChooser(failure.choices)
    outcome = run_plan(failure.plan, [*all_checkers(), tracer], chooser=chooser)
    return outcome.violations
