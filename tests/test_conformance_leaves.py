"""The conformance kits of the leaves: broken implementations fail, each with its reason.

That ours and the fakes pass is in test_leaf_contracts.py.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.runtime.doors.claims import ClaimRecord, Claims, HeldClaim
from tenure.runtime.doors.entropy import SystemEntropy
from tenure.runtime.doors.files import File, OpenMode
from tenure.runtime.doors.locks import HeldLock
from tenure.runtime.doors.workers import ThreadWorkers
from tenure.runtime.testing import conformance
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.conformance import (
    ClaimsUnderTest,
    FilesUnderTest,
    LocksUnderTest,
    Report,
)
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.files import MemoryFiles
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.locks import MemoryLocks
from tenure.runtime.testing.workers import InlineWorkers


def failures_of(report: Report) -> dict[str, str]:
    return {failure.name: failure.reason for failure in report.failures}


def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.put_folder("/work")
    return made


# --- files --------------------------------------------------------------------------------------


class Overwriting(MemoryFiles):
    """Takes `create` for `write`."""

    def open(self, path: str, mode: OpenMode, *, permissions: int = 0o666) -> File:
        try:
            return super().open(path, mode, permissions=permissions)
        except FileExistsError:
            return super().open(path, "write")


def files_of(kind: type[MemoryFiles]) -> Callable[[], FilesUnderTest]:
    def make() -> FilesUnderTest:
        on = disk()
        return FilesUnderTest(files=kind(on, on.processes.start()), root="/work", link=on.put_link)

    return make


def test_files_that_create_over_what_exists_are_told_so() -> None:
    failed = failures_of(conformance.files(files_of(Overwriting)))
    assert failed == {
        "create refuses what exists and a link that leads nowhere": (
            "create over a file: raised nothing, expected OSError EEXIST"
        )
    }


def test_a_report_says_how_many_passed_and_why_the_others_did_not() -> None:
    report = conformance.files(files_of(Overwriting))
    assert not report.ok
    text = str(report)
    total = len(conformance.FILES)
    assert text.startswith(f"files: {total - 1} of {total} checks passed\n")
    assert (
        "  FAIL  create refuses what exists and a link that leads nowhere\n"
        "        create over a file: raised nothing, expected OSError EEXIST" in text
    )
    assert conformance.files(files_of(MemoryFiles)).ok


def test_a_factory_may_clear_away_what_it_made() -> None:
    open_now: list[str] = []

    @contextmanager
    def make() -> Iterator[FilesUnderTest]:
        open_now.append("one")
        yield files_of(MemoryFiles)()
        open_now.pop()

    assert conformance.files(make).ok
    assert open_now == []


def test_a_factory_that_raises_is_a_failure_of_every_check() -> None:
    def make() -> FilesUnderTest:
        raise ConnectionError("no disk")

    report = conformance.files(make)
    assert len(report.failures) == len(conformance.FILES)
    assert report.failures[0].reason == "raised ConnectionError: no disk"


# --- locks and claims ---------------------------------------------------------------------------


class Unlocked:
    def in_place(self) -> bool:
        return True

    def release(self) -> None:
        pass


class Generous:
    """Gives the lock to whoever asks."""

    def try_lock(self, path: str) -> HeldLock | None:
        return Unlocked()


class Unlinking(MemoryLocks):
    """Takes the lock file away at the release."""

    def __init__(self, on: MemoryDisk) -> None:
        process = on.processes.start()
        super().__init__(on, process)
        self._files = MemoryFiles(on, process)

    def try_lock(self, path: str) -> HeldLock | None:
        held = super().try_lock(path)
        if held is None:
            return None
        release, files = held.release, self._files

        class Held:
            def in_place(self) -> bool:
                return held.in_place()

            def release(self) -> None:
                files.remove(path)
                release()

        return Held()


def locks_of(kind: Callable[[MemoryDisk], Any]) -> Callable[[], LocksUnderTest]:
    def make() -> LocksUnderTest:
        on = disk()
        leaves = memory_leaves(on)
        return LocksUnderTest(locks=kind(on), files=leaves.files, root="/work", link=on.put_link)

    return make


def test_locks_that_exclude_nobody_are_told_so() -> None:
    failed = failures_of(conformance.locks(locks_of(lambda on: Generous())))
    name = "a lock excludes a second take in the same process until released"
    assert failed[name].startswith("a second take while it is held: got <")
    assert failed[name].endswith("expected None")


def test_locks_that_unlink_their_file_are_told_so() -> None:
    failed = failures_of(conformance.locks(locks_of(Unlinking)))
    assert failed["releasing a lock leaves its file where it is"] == (
        "the names after the release: got (), expected (('a.lock', 'file'),)"
    )


class Backwards(Claims):
    """Writes any epoch."""

    def take(self, path: str) -> Any:
        held = super().take(path)
        if isinstance(held, HeldClaim):
            write = held.write

            def write_any(record: ClaimRecord) -> None:
                held.record = None
                write(record)

            held.write = write_any  # type: ignore[method-assign]
        return held


def test_claims_whose_epoch_goes_back_are_told_so() -> None:
    def make() -> ClaimsUnderTest:
        on = disk()
        one, other = memory_leaves(on), memory_leaves(on)
        return ClaimsUnderTest(
            one=Backwards(one, "one"), other=Backwards(other, "other"), path="/work/a"
        )

    failed = failures_of(conformance.claims(make))
    assert failed == {"an epoch never goes back": "epoch 2 was written over epoch 3"}


# --- clock, entropy, processes, workers -----------------------------------------------------------


class Seconds(ManualClock):
    """Gives seconds in place of milliseconds, and a monotonic clock that jumps."""

    def __init__(self) -> None:
        super().__init__()
        self._jumps = 0

    def now_ms(self) -> int:
        return super().now_ms() // 1000

    def monotonic_s(self) -> float:
        self._jumps += 1
        return float(-self._jumps)


def test_a_clock_of_seconds_that_goes_back_is_told_so() -> None:
    failed = failures_of(conformance.clock(Seconds))
    assert failed["wall time is whole milliseconds since 1970"] == (
        "now_ms gave 1700000000: these are no milliseconds since 1970"
    )
    assert (
        "times that lie before the one read earlier: got ["
        in (failed["the monotonic clock never goes back"])
    )


class Repeating(SystemEntropy):
    def fresh(self) -> str:
        return "0123456789abcdef"

    def uuid(self) -> str:
        return super().uuid().upper()


def test_entropy_that_repeats_itself_is_told_so() -> None:
    failed = failures_of(conformance.entropy(Repeating))
    assert failed["fresh gives 16 hexadecimal digits and never the same twice"] == (
        "different names: got 1, expected 100"
    )
    assert "no lower-case random uuids" in failed["uuid gives random uuids in their usual form"]


class ByPid:
    """Tells processes by their pid alone."""

    def __init__(self) -> None:
        self._processes = memory_leaves().processes

    def me(self) -> Any:
        return self._processes.me()

    def alive(self, process: Any) -> bool:
        return bool(process.pid == self.me().pid)


def test_processes_told_by_pid_alone_are_told_so() -> None:
    failed = failures_of(conformance.processes(ByPid))
    assert list(failed.values()) == ["another start time with the same pid is said to be alive"]


class Dropping(InlineWorkers):
    """Does the work of a caller only once he has waited, and takes work for ever."""

    async def run(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return work(*args, **kwargs)

    async def close(self) -> None:
        pass


def test_workers_that_drop_work_are_told_so() -> None:
    failed = failures_of(conformance.workers(Dropping))
    assert failed["a cancelled caller does not cancel the work"] == (
        "what was done: got [], expected ['work']"
    )
    assert failed["closed workers take no work"] == "closed workers took work"


@pytest.mark.real
def test_a_thread_pool_is_made_anew_for_each_check() -> None:
    assert conformance.workers(ThreadWorkers).ok
