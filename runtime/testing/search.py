"""Searches for a run that breaks an invariant, and counts what was reached on the way."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tenure.runtime.strict import Violation
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.choices import Chooser
from tenure.runtime.testing.coverage import Coverage, Reached
from tenure.runtime.testing.crash_points import CrashAt, CrashPoint
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.workload import Plan
from tenure.runtime.testing.workload_plan import SEATS_ALONE, plan_of
from tenure.runtime.testing.workload_run import Outcome, run_plan
from tenure.runtime.testing.workloads import WORKLOADS

SEATS_SHARE = 6.0
"""Of the runs of a search; each workload says its own."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A run that broke something."""

    plan: Plan
    choices: tuple[int, ...]
    violations: tuple[Violation, ...]
    crash: CrashPoint | None
    """Where the run was crashed on purpose; None where only its plan and its order did harm."""


class Tally(msgspec.Struct, kw_only=True):
    """What many runs came to."""

    schedules: int = 0
    steps: int = 0
    distinct: set[int] = msgspec.field(default_factory=set)
    """One number for each different order of work."""
    crashes: Counter[str] = msgspec.field(default_factory=Counter)
    refusals: Counter[str] = msgspec.field(default_factory=Counter)
    replies: Counter[str] = msgspec.field(default_factory=Counter)
    reached: Reached = msgspec.field(default_factory=Reached)
    found: list[Found] = msgspec.field(default_factory=list)

    def take(
        self, plan: Plan, outcome: Outcome, reached: Reached, crash: CrashPoint | None = None
    ) -> None:
        self.schedules += 1
        self.steps += outcome.steps
        self.distinct.add(hash((outcome.seed, outcome.choices)))
        self.crashes.update(outcome.crashes)
        self.refusals.update(outcome.refusals)
        self.replies.update(outcome.replies)
        self.reached.add(reached)
        if outcome.violations:
            found = Found(
                plan=plan, choices=outcome.choices, violations=outcome.violations, crash=crash
            )
            self.found.append(found)

    def add(self, other: "Tally") -> None:
        self.schedules += other.schedules
        self.steps += other.steps
        self.distinct |= other.distinct
        self.crashes.update(other.crashes)
        self.refusals.update(other.refusals)
        self.replies.update(other.replies)
        self.reached.add(other.reached)
        self.found += other.found


def parts_of(seeds: int, workload: str = "") -> dict[str, int]:
    """How many of so many runs each workload gets: all, or the one that is named."""
    if workload:
        return {workload: seeds}
    shares = {SEATS_ALONE: SEATS_SHARE} | {each.name: each.share for each in WORKLOADS.values()}
    whole = sum(shares.values())
    parts = {name: int(seeds * share / whole) for name, share in shares.items()}
    parts[SEATS_ALONE] += seeds - sum(parts.values())
    return {name: part for name, part in parts.items() if part}


def run_seed(seed: int, workload: str = SEATS_ALONE) -> Outcome:
    """The run of one seed of a workload, under all checkers."""
    return run_plan(plan_of(seed, workload), all_checkers())


def search(seeds: Iterable[int], *, found_max: int = 20) -> Tally:
    """Run these seeds, until so many broke something."""
    tally = Tally()
    for seed in seeds:
        try_plan(plan_of(seed), tally)
        if len(tally.found) >= found_max:
            break
    return tally


def try_plan(
    plan: Plan, tally: Tally, *, chooser: Chooser | None = None, watchers: Sequence[Watcher] = ()
) -> Outcome:
    """Run one plan under all checkers, and count it."""
    coverage = Coverage()
    outcome = run_plan(plan, [*all_checkers(), coverage, *watchers], chooser=chooser)
    crash = next((each.point for each in watchers if isinstance(each, CrashAt)), None)
    tally.take(plan, outcome, coverage.reached, crash)
    return outcome


# --- bounded exhaustive --------------------------------------------------------------------------


class BranchingChooser:
    """Follows a prefix, then the usual order; says how many ways each choice had."""

    def __init__(self, prefix: Sequence[int]) -> None:
        self.made: list[int] = []
        self.ways: list[int] = []
        self._prefix = prefix

    def pick(self, count: int) -> int:
        place = len(self.made)
        choice = self._prefix[place] if place < len(self._prefix) else 0
        choice = min(choice, count - 1)
        self.made.append(choice)
        self.ways.append(count)
        return choice

    def one_in(self, count: int) -> bool:
        return self.pick(2) == 1


def explore(plan: Plan, *, depth_max: int, runs_max: int) -> Tally:
    """Every order that differs in the first `depth_max` choices, in depth-first order.

    Behind them the order is the usual one.  It stops after `runs_max` runs.
    """
    tally = Tally()
    prefix: list[int] | None = []
    while prefix is not None and tally.schedules < runs_max:
        chooser = BranchingChooser(prefix)
        try_plan(plan, tally, chooser=chooser)
        prefix = _next(chooser.made[:depth_max], chooser.ways)
    return tally


def _next(made: list[int], ways: list[int]) -> list[int] | None:
    """The prefix after this one; None where there is none."""
    for place in range(len(made) - 1, -1, -1):
        if made[place] + 1 < ways[place]:
            return [*made[:place], made[place] + 1]
    return None
