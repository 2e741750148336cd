"""Makes a failing run short: fewer operations, then the usual order wherever it does not matter."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from tenure.runtime.strict import Violation
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.choices import ReplayedChooser
from tenure.runtime.testing.crash_points import CrashAt, CrashPoint
from tenure.runtime.testing.report import Tracer
from tenure.runtime.testing.search import Found
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.workload import AnyOp, Plan, Prompt
from tenure.runtime.testing.workload_run import Outcome, run_plan

RUNS_MAX = 600

Choices = tuple[int, ...] | None
"""None while the seed chooses."""


class NotAgain(Exception):
    """A run that broke an invariant does not break it a second time."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failing run as it is written into a file."""

    seed: int
    invariant: str
    violations: tuple[Violation, ...]
    plan: Plan
    choices: tuple[int, ...]
    trace: tuple[str, ...]
    """What happened, one line each, in words."""
    crash: CrashPoint | None = None
    """Where the run is crashed on purpose, beside what its plan does."""


class Shrinker:
    """Tries shorter runs as long as they break the same invariant.

    Args:
        runs_max: how many runs may be tried.
    """

    def __init__(self, found: Found, runs_max: int = RUNS_MAX) -> None:
        self.plan = found.plan
        self.choices: Choices = None
        self._found = found
        self.invariant = found.violations[0].invariant
        self._left = runs_max

    def shrink(self) -> Failure:
        """The shortest run that was found.  Raises `NotAgain` where not even the first fails."""
        # A sweep or an exploration chose its own order, which its seed would not choose.
        if self._fails(self.plan, None) is None:
            self.choices = self._found.choices
        self._drop_operations()
        for place in range(len(self.plan.ops)):
            self._simplify(place)
        self._straighten()
        return failure_of(self.plan, self.choices, self.invariant, self._found.crash)

    def _fails(self, plan: Plan, choices: Choices) -> tuple[int, ...] | None:
        """The choices of the run where it still fails the same way."""
        if self._left <= 0:
            return None
        self._left -= 1
        outcome = _run(plan, choices, self._found.crash)
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
        if self._fails(plan, self.choices) is None:
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
        made = self._fails(self.plan, self.choices)
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


def failure_of(
    plan: Plan, choices: Choices, invariant: str, crash: CrashPoint | None = None
) -> Failure:
    """Run it once more, with a trace.  Raises `NotAgain` where it breaks nothing then."""
    made = _run(plan, None, crash).choices if choices is None else choices
    tracer = Tracer()
    again = _run(plan, made, crash, tracer)
    if all(each.invariant != invariant for each in again.violations):
        raise NotAgain(f"seed {plan.seed}: {invariant} is not broken when it is run again")
    return Failure(
        seed=plan.seed,
        invariant=invariant,
        violations=again.violations,
        plan=plan,
        choices=made,
        trace=tuple(tracer.lines),
        crash=crash,
    )


def replay(failure: Failure, say: Callable[[str], None]) -> tuple[Violation, ...]:
    """Run a failure again, saying every line as it happens; what was broken."""
    return _run(failure.plan, failure.choices, failure.crash, Tracer(say)).violations


def _run(plan: Plan, choices: Choices, crash: CrashPoint | None, *watchers: Watcher) -> Outcome:
    """One run under all checkers, crashed where it was crashed before."""
    crashing = () if crash is None else (CrashAt(crash),)
    chooser = None if choices is None else ReplayedChooser(choices)
    return run_plan(plan, [*all_checkers(), *crashing, *watchers], chooser=chooser)
