"""The pytest plugin of the harness, as an embedder uses it: in a pytest of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT

pytestmark = pytest.mark.real

TESTS = """
import pytest

from tenure.messages.session import GetSession, SessionView
from tenure.messages.turn import TurnEnded
from tenure.testing import Scripted, Watcher, events_of, expect_event, expect_reply, transcript_of


@pytest.fixture
def host_options():
    return {"model": Scripted(["Hello."])}


def test_a_prompt_is_answered(world, host):
    log = events_of(world)
    events = world.run(host.prompt("hi"))
    expect_event(events, TurnEnded, stop_reason="end_turn")
    view = expect_reply(world.ask(host, GetSession()), SessionView, state="live")
    said = transcript_of(world, view.token.session_id)
    assert said == ["user: hi", "assistant: Hello."]
    assert len(log.of(TurnEnded)) == 1


@pytest.mark.tenure_seeds(3)
def test_of_three_seeds(world):
    assert world.seed in range(4)


def test_that_fails_at_seed_2(world, host):
    events = world.run(host.prompt("hi"))
    expect_event(events, TurnEnded, stop_reason="end_turn" if world.seed != 2 else "error")


class Suspicious(Watcher):
    def finished(self):
        if self.disk.processes.state(self.process) == "running":
            self.report("HOUSE-1", "a host was left running")

    def host_started(self, host, process):
        self.process = process


def test_that_a_watcher_fails(world):
    world.watchers.add(Suspicious())
    world.run(world.host().seat())


def test_without_a_world():
    pass
"""


def blocks_of_the_page() -> list[str]:
    """The Python blocks of docs/testing.md, in their order."""
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    conftest, first_test, *_ = blocks_of_the_page()
    assert conftest.startswith("# conftest.py\n")
    assert first_test.startswith("# test_mine.py\n")
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_page.py").write_text(first_test)
    (tmp_path / "test_mine.py").write_text(TESTS)
    return tmp_path


def run(tests: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error", *options],
        cwd=tests,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_each_test_with_a_world_runs_once_with_seed_0_and_its_marker_says_more(
    tests: Path,
) -> None:
    ran = run(
        tests, "--strict-markers", "-vv", "--deselect", "test_mine.py::test_that_a_watcher_fails"
    )
    assert ran.returncode == 0, ran.stdout
    seeds = {"mine.py::test_a_prompt": 1, "mine.py::test_of_three_seeds": 3, "page.py::test_a": 1}
    assert {name: ran.stdout.count(f"test_{name}") for name in seeds} == seeds, ran.stdout
    assert "test_of_three_seeds[seed2] PASSED" in ran.stdout
    assert "test_without_a_world PASSED" in ran.stdout


def test_a_failure_says_its_seed_and_the_line_that_runs_it_again(tests: Path) -> None:
    ran = run(tests, "test_mine.py", "--tenure-seeds", "4")
    assert ran.returncode == 1
    assert "5 failed, 12 passed in" in ran.stdout
    assert "seed 2\n" in ran.stdout
    again = "pytest 'test_mine.py::test_that_fails_at_seed_2' --tenure-seed 2"
    assert again in ran.stdout
    assert "no event TurnEnded, stop_reason='error'; the events were:" in ran.stdout
    assert "TurnEnded(turn_id=" in ran.stdout
    assert ran.stdout.count("HOUSE-1: a host was left running") >= 4

    alone = run(tests, "test_mine.py::test_that_fails_at_seed_2", "--tenure-seed", "2")
    assert "1 failed" in alone.stdout
