"""Kinds of public fault reports, each made in our code, and noticed through the real doors.

The letters are those of the collection that the kinds come from; what is in parentheses are
the numbers of reports with this fault.  Each is made in a copy of the source, and a test with
real files and real processes has to fail there.  In the simulator there are many more of them
(`sim_mutants*.py`, and `runtime/mutations.py` with the witnesses).
"""

from pathlib import Path

import pytest

from tenure.runtime.mutations import MUTATIONS
from tenure.runtime.testing.checkout import Checkout
from tenure.runtime.testing.guards_run import Breakage, Copy

ROOT = Path(__file__).parent.parent


def known(name: str) -> tuple[str, str, str]:
    """One of the mutations that the invariants name."""
    (found,) = [each for each in MUTATIONS if each.name == name]
    return found.file, found.before, found.after


KINDS: dict[str, tuple[tuple[str, str, str], str]] = {
    "A: two processes write one transcript from separate memories (A08, A12)": (
        (
            "runtime/doors/locks.py",
            "                if not self._exclude(descriptor):\n",
            "                if False:\n",
        ),
        "tests/test_processes.py::test_a_second_run_on_a_session_is_refused_and_shown_who_has_it",
    ),
    "B: what was said before a stop is not kept (B06)": (
        (
            "actors/turn_end.py",
            "        content=partial,\n",
            "        content=(),\n",
        ),
        "tests/test_processes.py::test_ctrl_c_stops_the_turn_and_keeps_what_was_said",
    ),
    "C: a compaction is said to be done and its summary was never written (C12)": (
        ("actors/compaction_pass.py", "entries=(entry_of(run, summary), done)", "entries=(done,)"),
        "tests/test_cli_compact.py::test_a_session_is_compacted_and_taken_back",
    ),
    "D: a denial of one call stops the whole turn (D07)": (
        known("a denial stops the turn"),
        "tests/test_cli_run.py::test_without_a_terminal_only_approve_allow_lets_a_file_be_written",
    ),
    "I: what a dead process started goes on to hold what was its own (I10)": (
        known("a forked child keeps the locks of its parent"),
        "tests/test_locks.py"
        "::test_a_forked_child_that_outlives_its_killed_parent_does_not_keep_the_lock",
    ),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(Checkout(ROOT), tmp_path_factory.mktemp("copy").resolve() / "tenure")


@pytest.mark.real
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", KINDS)
def test_fault_of_a_public_report_is_noticed_through_the_real_doors(copy: Copy, kind: str) -> None:
    (file, before, after), test = KINDS[kind]
    text = (ROOT / file).read_text("utf-8")
    assert text.count(before) == 1, f"{file}: what is to be broken is not there any more"
    broken = Breakage(invariant=kind, name=file, changed={file: text.replace(before, after)})
    assert copy.judge(broken, [test]).fate == "caught"
