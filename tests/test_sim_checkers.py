"""The checkers are checked: a host that breaks an invariant on purpose is caught by its checker."""

import pytest
import sim_mutants
import sim_mutants_compaction
import sim_mutants_queue
from sim_mutants import Mutant

from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.search import run_seed

MUTANTS: dict[str, tuple[str, Mutant, int, str]] = {
    **{name: (*each, "seats") for name, each in sim_mutants.MUTANTS.items()},
    **{
        name: (*each, family.WORKLOAD)
        for family in (sim_mutants_compaction, sim_mutants_queue)
        for name, each in family.MUTANTS.items()
    },
}
"""An owner with a workload of its own adds a module like `sim_mutants_compaction`."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", MUTANTS)
def test_checker_catches_a_host_in_which(name: str) -> None:
    invariant, mutant, seeds_max, workload = MUTANTS[name]
    for seed in range(seeds_max):
        with mutant():
            found = {each.invariant for each in run_seed(seed, workload).violations}
        if invariant in found:
            return
    pytest.fail(f"{invariant} was not seen to be broken in {seeds_max} seeds")


def test_every_checked_invariant_has_a_host_that_breaks_it() -> None:
    checked = {invariant for checker in all_checkers() for invariant in checker.invariants}
    assert checked == {invariant for invariant, *_ in MUTANTS.values()}


def test_a_mutant_leaves_nothing_behind() -> None:
    for _, mutant, *_ in MUTANTS.values():
        with mutant():
            pass
    for workload in {workload for *_, workload in MUTANTS.values()}:
        assert run_seed(1, workload).violations == ()
