"""The worked examples of docs/testing.md: each finds its bug, and nothing in the owner as it is."""

import importlib.util
import re
import subprocess
import sys
from types import ModuleType

import pytest
from sources import ROOT

from tenure.actors.approval import approval_step
from tenure.actors.session import session_step
from tenure.actors.turn import turn_step

BROKEN = ROOT / "examples" / "broken"
DOCS = ROOT / "docs" / "testing.md"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BROKEN / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_orders_of_messages_find_the_prompt_that_a_stop_loses() -> None:
    module = example("dropped_queue")
    found = module.look(module.broken_turn_step)
    assert found.startswith("failed in this order (seed ")
    assert "'second' was accepted, and then neither started nor given back" in found
    assert module.look(turn_step) == ""


def test_a_failing_order_fails_again_when_it_is_run_alone() -> None:
    module = example("dropped_queue")
    found = module.look(module.broken_turn_step)
    again = re.search(r"seeds=\[(\d+)\], only=(\[.*\])\)", found)
    assert again is not None
    items = (module.FIRST, module.SECOND, module.STOP)
    with (
        module.stepping(module.TurnActor, module.broken_turn_step),
        pytest.raises(module.OrderFailed, match="neither started nor given back"),
    ):
        module.each_order(
            module.every_accepted_prompt_has_a_fate,
            *items,
            seeds=[int(again[1])],
            only=eval(again[2]),
        )


def test_a_watcher_finds_the_receipt_that_comes_before_the_disk() -> None:
    module = example("early_receipt")
    found = module.look(module.broken_session_step)
    assert re.match(r"seed \d+: SESSION-3: the receipt of \w{16} came before the disk", found)
    assert module.look(session_step) == ""


def test_an_exploration_finds_the_grant_that_leaks_into_another_session() -> None:
    module = example("leaking_grant")
    found = module.look(module.broken_approval_step)
    assert found.startswith("a call of session B was allowed")
    assert found.index("user says AnswerApproval") < found.index("seat says EndSessionGrants")
    explored = module.explore(approval_step)
    assert explored.findings == ()
    assert explored.states > 1_000
    assert explored.schedules > explored.states


@pytest.mark.real
@pytest.mark.parametrize("name", sorted(path.stem for path in BROKEN.glob("*.py")))
def test_each_example_runs_as_a_program_and_the_page_shows_it(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(BROKEN / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    broken, _, shipped = ran.stdout.partition("the owner as it is:\n")
    assert broken.startswith("the broken owner:\n")
    assert shipped.startswith("nothing found\n")
    assert f"examples/broken/{name}.py" in DOCS.read_text()
