"""Simulated runs: steps and seeds for each second of CPU time, with checkers and without.

python tests/bench/bench_sim.py [seeds]

Bounds (design of record): 40,000 steps a second without checkers; 2,000 seeds under all
checkers within 120 s on one core.
"""

import gc
import sys
import time
from collections.abc import Callable

from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.search import Tally, try_plan
from tenure.runtime.testing.workload_plan import plan_of
from tenure.runtime.testing.workload_run import run_plan

SEEDS = 100
ROUNDS = 3


def bare(seed: int) -> int:
    return run_plan(plan_of(seed)).steps


def checked(seed: int) -> int:
    return run_plan(plan_of(seed), all_checkers()).steps


def counted(seed: int) -> int:
    return try_plan(plan_of(seed), Tally()).steps


def measure(name: str, run: Callable[[int], int], seeds: int) -> None:
    """The best of some rounds: what else the machine does only makes a round slower."""
    best_s, steps = float("inf"), 0
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        steps = sum(run(seed) for seed in range(seeds))
        best_s = min(best_s, time.process_time() - began)
    print(
        f"{name:<24} {steps:>9,} steps  {best_s:6.2f} s CPU  "
        f"{steps / best_s:>8,.0f} steps/s  {seeds / best_s:6.1f} seeds/s"
    )


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    bare(0)
    gc.freeze()
    measure("without checkers", bare, seeds)
    measure("with checkers", checked, seeds)
    measure("with checkers and counts", counted, seeds)


if __name__ == "__main__":
    main()
