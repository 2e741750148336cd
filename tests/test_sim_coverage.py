"""Simulated runs reach every arm of every step, every refusal and a crash in every effect.

What no run reaches stands in `sim_unreached.py`, each with its reason.  The runs are those of
`sim_plans.json`, which reached something new when they were chosen; where a change has moved
what they reach, a few more are tried.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from sim_unreached import ARMS, CRASH_POINTS, REFUSALS

from tenure.runtime.testing.coverage import Arms, all_effects, all_refusals
from tenure.runtime.testing.search import Tally, try_plan
from tenure.runtime.testing.workload_plan import SEATS_ALONE, plan_of
from tenure.runtime.testing.workloads import WORKLOADS

PLANS = Path(__file__).parent / "sim_plans.json"
MORE_SEEDS = 60
WHAT_TO_DO = """
Give an operation or a theme to the workload that should reach it (docs/testing.md, "A workload
for an owner"), find a seed that does, and add the plan to tests/sim_plans.json.  Where no run
can reach it, say why in tests/sim_unreached.py.
"""


class Reached:
    """What the plans have reached."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.arms = Arms()
        self.helped: list[str] = []

    def run(self, workload: str, seed: int) -> None:
        with self.arms.watched():
            try_plan(plan_of(seed, workload), self.tally)

    def missing(self) -> set[str]:
        """Arms, refusals and crash points that are not reached and not excused."""
        refusals = {each for each in all_refusals() if each not in self.tally.refusals}
        crashes = self.tally.reached.crashes
        points = {each for each in all_effects() if each not in crashes}
        arms = {name for name in self.arms.names_unreached() if not _excused(name)}
        return arms | (refusals - set(REFUSALS)) | {f"a crash in {x}" for x in points - CRASHES}


CRASHES = set(CRASH_POINTS)


def _excused(name: str) -> bool:
    """An arm is named whole, or by its function, or by its file."""
    file, _, rest = name.partition(" ")
    return any(each in ARMS for each in (name, f"{file} {rest.partition(':')[0]}", file))


@cache
def reached() -> Reached:
    found = Reached()
    for name in json.loads(PLANS.read_text()):
        workload, _, seed = name.rpartition("/")
        found.run(workload or SEATS_ALONE, int(seed))
    for seed in range(MORE_SEEDS):
        for workload in (SEATS_ALONE, *WORKLOADS):
            missing = found.missing()
            if not missing:
                return found
            found.run(workload, seed)
            if found.missing() != missing:
                found.helped.append(f"{workload}/{seed}")
    return found


@pytest.mark.timeout(900)
def test_runs_reach_every_arm_refusal_and_crash_point() -> None:
    missing = sorted(reached().missing())
    lines = "\n".join(f"  {each}" for each in missing)
    helped = ", ".join(reached().helped)
    assert not missing, f"no run reaches\n{lines}\n{WHAT_TO_DO}New plans that helped: {helped}"


@pytest.mark.timeout(900)
def test_no_plan_of_the_coverage_breaks_an_invariant() -> None:
    assert {each.plan.name: each.violations for each in reached().tally.found} == {}


def test_every_excuse_names_something_that_exists() -> None:
    """An arm that is gone needs no excuse."""
    names = Arms().names_unreached()
    known = {*names, *(name.partition(":")[0] for name in names)}
    known |= {name.partition(" ")[0] for name in names}
    assert sorted(each for each in ARMS if each not in known) == []
    assert set(REFUSALS) <= set(all_refusals())
    assert set(CRASH_POINTS) <= set(all_effects())
    reasons = (*ARMS.values(), *REFUSALS.values(), *CRASH_POINTS.values())
    assert all(len(reason) > 20 for reason in reasons)
