"""The search: shrinking, replaying, crashing everywhere, and the command line of it."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from sim_mutants import a_stop_gives_nothing_back, a_sync_does_nothing, no_call_is_settled

from tenure.messages.approval import Allow
from tenure.runtime.cli.sim import command
from tenure.runtime.testing import shrink, workload_plan
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.choices import ReplayedChooser
from tenure.runtime.testing.coverage import Arms
from tenure.runtime.testing.search import Tally, explore, search, try_plan
from tenure.runtime.testing.shrink import Failure, NotAgain, Shrinker, replay
from tenure.runtime.testing.sweep import points_of, sweep
from tenure.runtime.testing.workload import (
    AnswerPlan,
    CloseSeat,
    Plan,
    Prompt,
    Say,
    Swap,
    ToolUse,
    Use,
)
from tenure.runtime.testing.workload_run import run_plan

WRITE = Use(calls=(ToolUse(tool="write", path="notes.md", text="new"),))


def small_plan() -> Plan:
    """One prompt whose tool is approved, and a swap behind it."""
    return Plan(
        seed=1,
        approver="callable",
        mutating="ask",
        answers=(AnswerPlan(choice=Allow()),),
        ops=(
            Prompt(client=0, host=0, seat=0, text="go", moves=(WRITE, Say())),
            Swap(client=0, host=0, seat=0, to="new"),
        ),
    )


def test_a_failing_run_is_made_short_and_fails_again_when_replayed() -> None:
    with a_sync_does_nothing():
        found = search(range(20), found_max=1).found[0]
        failure = Shrinker(found, runs_max=150).shrink()
        lines: list[str] = []
        again = replay(failure, lines.append)
    assert failure.invariant in {each.invariant for each in again}
    assert len(failure.plan.ops) < len(found.plan.ops)
    assert tuple(lines) == failure.trace
    assert replay(failure, lines.append) == ()


@pytest.mark.timeout(120)
def test_a_crash_at_every_point_of_a_turn_and_a_swap_breaks_nothing() -> None:
    points = points_of(small_plan())
    tally = sweep(small_plan())
    assert [each.violations for each in tally.found] == []
    assert tally.schedules == len(points)
    assert len(points) > 100
    assert {"before append", "after datasync", "before rename"} <= set(tally.crashes)


@pytest.mark.timeout(120)
def test_sim_sweep_writes_a_failing_run_that_fails_again_with_its_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_plan, "plan_of", lambda seed, workload: small_plan())
    with no_call_is_settled():
        # Without a crash nothing has to be settled: only a crash shows what is broken.
        assert run_plan(small_plan(), all_checkers(), chooser=ReplayedChooser(())).violations == ()
        ran = CliRunner().invoke(command, ["sweep", "--out", str(tmp_path)])
        assert ran.exit_code == 1, ran.output
        (file,) = [each for each in tmp_path.iterdir() if "turn-7" in each.name]
        assert f"replay with: tenure sim replay {file}" in ran.output
        again = CliRunner().invoke(command, ["replay", str(file)])
        assert again.exit_code == 1
        assert "BROKEN TURN-7" in again.output
        assert "crash: CrashPoint(" in again.output
        failure = msgspec.json.decode(file.read_bytes(), type=Failure)
        assert failure.crash is not None
        assert len(failure.plan.ops) == 1
        assert replay(replace(failure, crash=None), lambda line: None) == ()
    assert replay(failure, lambda line: None) == ()


def test_a_run_that_does_not_fail_again_is_no_failure_to_write_down() -> None:
    with a_sync_does_nothing():
        found = search(range(20), found_max=1).found[0]
    with pytest.raises(NotAgain, match="is not broken when it is run again"):
        Shrinker(found, runs_max=30).shrink()


def test_sim_run_says_where_a_failure_does_not_come_back_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shrink, "all_checkers", list)
    arguments = ["--seeds", "1", "--start", "9", "--out", str(tmp_path)]
    with a_stop_gives_nothing_back():
        ran = CliRunner().invoke(command, ["run", *arguments])
    assert ran.exit_code == 1
    assert "no file is written: seed 9: TURN-3 is not broken when it is run again" in ran.output
    assert "replay with" not in ran.output
    assert list(tmp_path.iterdir()) == []


def test_orders_are_explored_one_after_the_other_and_never_twice() -> None:
    tally = explore(small_plan(), depth_max=12, runs_max=25)
    assert [each.violations for each in tally.found] == []
    assert tally.schedules == 25
    assert len(tally.distinct) == 25


def test_the_usual_order_is_what_zeros_choose() -> None:
    zeros = run_plan(small_plan(), chooser=ReplayedChooser(()))
    assert set(zeros.choices) <= {0}


def test_arms_are_counted_as_they_are_reached() -> None:
    arms = Arms()
    before = len(arms.unreached())
    with arms.watched():
        try_plan(small_plan(), Tally())
    assert before == arms.count
    assert 50 < before - len(arms.unreached()) < arms.count
    assert all(".py:" in each for each in arms.unreached())


def test_sim_run_prints_what_was_reached_and_leaves_with_0(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, ["run", "--seeds", "3", "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "3 schedules (3 different)" in ran.output
    assert "arms of steps:" in ran.output
    assert "0 runs with violations" in ran.output
    assert list(tmp_path.iterdir()) == []


def test_sim_run_writes_a_failing_run_that_sim_replay_runs_again(tmp_path: Path) -> None:
    arguments = ["--seeds", "1", "--start", "9", "--out", str(tmp_path)]
    with a_stop_gives_nothing_back():
        ran = CliRunner().invoke(command, ["run", *arguments, "--json"])
        assert ran.exit_code == 1, ran.output
        facts = msgspec.json.decode(ran.stdout)
        assert "TURN-3" in {each["invariant"] for each in facts["violations"]}
        (file,) = [each for each in tmp_path.iterdir() if "turn-3" in each.name]
        again = CliRunner().invoke(command, ["replay", str(file)])
    assert again.exit_code == 1
    assert "BROKEN TURN-3" in again.output
    assert msgspec.json.decode(file.read_bytes(), type=Failure).seed == 9
    mended = CliRunner().invoke(command, ["replay", str(file)])
    assert mended.exit_code == 0
    assert "nothing was broken" in mended.output


def test_sim_replay_says_what_is_wrong_with_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    ran = CliRunner().invoke(command, ["replay", str(tmp_path / "x.json")])
    assert ran.exit_code == 1
    assert "this is no failing run" in ran.output


def test_a_request_is_revoked_before_its_seat_is_gone() -> None:
    """Found by a search: the turn's end reached an approval owner that had been stopped already."""
    plan = Plan(
        seed=3,
        approver="clients",
        mutating="ask",
        answers=(AnswerPlan(choice=Allow(), how="never"),),
        ops=(
            Prompt(client=0, host=0, seat=0, text="go", moves=(WRITE,), wait="reply"),
            CloseSeat(client=0, host=0, seat=0, after_ms=1),
        ),
    )
    for seed in range(150):
        run = run_plan(replace(plan, seed=seed), all_checkers())
        assert run.violations == ()
