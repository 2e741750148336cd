"""The checkers are checked: a host that breaks an invariant on purpose is caught by its checker."""

from contextlib import suppress

import pytest
import sim_mutants
import sim_mutants_checkers
import sim_mutants_compaction
import sim_mutants_queue
from sim_mutants import Mutant

from tenure.runtime.errors import Refused
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.search import run_seed
from tenure.runtime.testing.workload_plan import plan_of
from tenure.runtime.testing.workload_run import run_plan

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


# --- each checker, alone -----------------------------------------------------------------------

ALONE: dict[str, tuple[str, int]] = {
    "Answers": ("everybody_is_answered_twice", 0),
    "Lanes": ("a_drain_overtakes", 5),
    "Effects": ("an_effect_ends_twice", 0),
    "Restarts": ("a_delta_makes_the_owner_raise", 0),
    "Tokens": ("an_append_is_written_whatever_its_token", 36),
    "Swaps": ("a_swap_commits_before_the_drain", 4),
    "Turns": ("a_second_turn_begins_beside_the_first", 23),
    "Starts": ("a_stale_token_starts_a_turn", 1),
    "Stops": ("a_stop_gives_nothing_back", 9),
    "Requests": ("a_call_is_asked_for_twice", 8),
    "Remembered": ("an_answer_is_remembered_before_it_took_effect", 0),
    "Gates": ("what_must_be_asked_is_allowed", 9),
    "Loops": ("every_tool_batch_is_a_loop", 5),
    "Budgets": ("every_budget_is_used_up", 0),
    "Passes": ("a_restarted_owner_settles_nothing", 4),
    "Queues": ("what_waits_when_a_session_is_opened_starts_by_itself", 0),
    "Locks": ("nobody_locks", 0),
    "Epochs": ("an_opening_keeps_the_epoch", 0),
    "LiveSeats": ("a_lock_excludes_nobody", 8),
    "Receipts": ("a_sync_does_nothing", 0),
    "Chains": ("every_entry_hangs_on_the_root", 0),
    "Readers": ("a_reader_writes", 15),
    "Durable": ("no_call_is_settled", 6),
    "Summaries": ("a_pass_is_done_before_its_summary_is_written", 1),
    "Outside": ("tools_go_everywhere", 71),
}
"""A breakage, and a seed of its workload in which no other checker notices it."""

BROKEN_BY = {
    **{
        checker: (MUTANTS[name][1], MUTANTS[name][3], seed)
        for checker, (name, seed) in ALONE.items()
    },
    **sim_mutants_checkers.ALONE,
}
NEAR = 60
"""A change may move what a seed does: so many behind it are tried."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("checker", [type(each).__name__ for each in all_checkers()])
def test_each_checker_notices_something_that_no_other_does(checker: str) -> None:
    mutant, workload, first = BROKEN_BY[checker]
    for seed in range(first, first + NEAR):
        checkers = all_checkers()
        with mutant(), suppress(Refused):
            run_plan(plan_of(seed, workload), checkers)
        if {type(each).__name__ for each in checkers if each.violations} == {checker}:
            return
    pytest.fail(f"in no seed from {first} on {checker} noticed {mutant} alone")
