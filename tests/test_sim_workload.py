"""Whole hosts in simulated runs: many seeds, no invariant broken, the same run every time."""

import os
import subprocess
import sys
from collections import Counter
from functools import cache

import msgspec
import pytest

from tenure.runtime.testing.coverage import all_effects
from tenure.runtime.testing.report import Tracer
from tenure.runtime.testing.search import Tally, try_plan
from tenure.runtime.testing.workload import Plan
from tenure.runtime.testing.workload_plan import plan_of
from tenure.runtime.testing.workload_run import run_plan

SEEDS = int(os.environ.get("TENURE_SIM_SEEDS", "60"))


@cache
def tally() -> Tally:
    found = Tally()
    for seed in range(SEEDS):
        try_plan(plan_of(seed), found)
    return found


def digest_of(seed: int) -> str:
    tracer = Tracer()
    run_plan(plan_of(seed), [tracer])
    return tracer.digest


@pytest.mark.timeout(600)
def test_no_seed_breaks_an_invariant() -> None:
    broken = {each.plan.seed: each.violations for each in tally().found}
    assert broken == {}
    assert tally().schedules == SEEDS


@pytest.mark.timeout(600)
def test_the_runs_are_deep_enough_to_find_something() -> None:
    """Turns reach their tools, approvals and second model calls, and hosts die in the middle."""
    effects: Counter[str] = tally().reached.effects
    share = SEEDS / 60
    assert effects["CallModel"] >= 80 * share
    assert effects["RunTool"] >= 20 * share
    assert effects["AskUser"] >= 10 * share
    assert effects["AppendRecords"] >= 200 * share
    assert sum(tally().crashes.values()) >= 30 * share
    assert {"Stale", "TurnNotRunning", "TurnBusy", "SessionInUse", "AppendFailed"} <= set(
        tally().refusals
    )
    assert len(tally().reached.messages) >= 100
    assert set(effects) <= set(all_effects())


def test_a_seed_gives_the_same_run_again() -> None:
    assert [digest_of(seed) for seed in (3, 4)] == [digest_of(seed) for seed in (3, 4)]


@pytest.mark.real
def test_a_seed_gives_the_same_run_in_another_process() -> None:
    program = (
        "from test_sim_workload import digest_of; print(*[digest_of(seed) for seed in range(8)])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.path.dirname(__file__)}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=50, check=False, env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [digest_of(seed) for seed in range(8)]


def test_seeds_differ() -> None:
    assert digest_of(5) != digest_of(6)


def test_a_plan_survives_being_written_down() -> None:
    plan = plan_of(11)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
