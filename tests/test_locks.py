"""Kernel locks and claims between real processes: what frees a lock, and what does not."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tenure.runtime.doors.claims import ClaimBusy, Claims, HeldClaim
from tenure.runtime.doors.leaves import system_leaves
from tenure.runtime.doors.locks import HeldLock, KernelLocks, exclude_by_flock

pytestmark = pytest.mark.real

PROGRAM = str(Path(__file__).parent / "processes" / "claimant.py")


class Claimant:
    """Another process that takes the claim of a path as it is told."""

    def __init__(self, path: str, *, under: tuple[str, ...] = ()) -> None:
        self._process = subprocess.Popen(
            [*under, sys.executable, PROGRAM, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._children: list[int] = []
        self.pid = int(self.answer().removeprefix("ready "))

    def tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.answer()

    def child(self, command: str) -> int:
        """The pid of a child that it forks or spawns, once the child runs."""
        pid = int(self.ask(command).removeprefix("child "))
        self._children.append(pid)
        return pid

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """As kill -9, and wait until it has ended."""
        self._process.kill()
        self._process.wait()

    def finish(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{os.path.realpath(tmp_path)}/sessions/a.jsonl"


@pytest.fixture
def claims() -> Claims:
    return Claims(system_leaves(), "test")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# --- two processes ------------------------------------------------------------------------------


@pytest.mark.witness("CLAIM-1")
def test_of_two_processes_that_race_one_holds_and_the_other_is_shown_its_pid(path: str) -> None:
    with Claimant(path) as one, Claimant(path) as two:
        for epoch in range(1, 21):
            one.tell("take")
            two.tell("take")
            answers = {one: one.answer(), two: two.answer()}
            holders = [claimant for claimant, said in answers.items() if said.startswith("held")]
            assert len(holders) == 1, answers
            holder = holders[0]
            other = two if holder is one else one
            assert answers[holder] == ("held new" if epoch == 1 else f"held {epoch - 1}")
            assert holder.ask(f"write {epoch}") == "written"
            assert other.ask("take") == f"busy {holder.pid}"
            assert holder.ask("release") == "released"


@pytest.mark.witness("CLAIM-2")
def test_a_killed_holder_frees_the_claim_and_its_epoch_is_seen(path: str, claims: Claims) -> None:
    with Claimant(path) as holder:
        assert holder.ask("take") == "held new"
        assert holder.ask("write 7") == "written"
        busy = claims.take(path)
        assert isinstance(busy, ClaimBusy)
        assert busy.holder is not None
        assert busy.holder.process.pid == holder.pid
        holder.kill()
        taken = claims.take(path)
        assert isinstance(taken, HeldClaim)
        assert taken.record is not None
        assert taken.record.epoch == 7
        taken.release()


@pytest.mark.witness("CLAIM-2")
def test_a_stopped_holder_keeps_the_claim_and_its_pid_is_shown(path: str) -> None:
    with Claimant(path) as holder, Claimant(path) as other:
        holder.ask("take")
        holder.ask("write 1")
        holder.signal(signal.SIGSTOP)
        assert other.ask("take") == f"busy {holder.pid}"
        holder.signal(signal.SIGCONT)
        assert holder.ask("release") == "released"
        assert other.ask("take") == "held 1"


# --- children -----------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.witness("CLAIM-2")
def test_a_forked_child_that_outlives_its_killed_parent_does_not_keep_the_lock(path: str) -> None:
    with Claimant(path) as parent, Claimant(path) as other:
        assert parent.ask("take") == "held new"
        child = parent.child("fork")
        assert other.ask("take").startswith("busy")
        parent.kill()
        assert is_running(child)
        assert other.ask("take") == "held new"


@pytest.mark.witness("CLAIM-2")
def test_a_spawned_program_that_outlives_its_killed_parent_does_not_keep_the_lock(
    path: str,
) -> None:
    with Claimant(path) as parent, Claimant(path) as other:
        assert parent.ask("take") == "held new"
        child = parent.child("spawn")
        parent.kill()
        assert is_running(child)
        assert other.ask("take") == "held new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_holds_nothing_and_its_release_leaves_the_parents_lock(
    path: str, claims: Claims
) -> None:
    """The child must neither write under its parent's claim nor unlock it by a release."""
    program = f"""
import os
from tenure.runtime.doors.claims import ClaimLost, ClaimRecord, Claims
from tenure.runtime.doors.leaves import system_leaves
claims = Claims(system_leaves(), "parent")
held = claims.take({path!r})
read, write = os.pipe()
if os.fork() == 0:
    seen = "in place" if held.in_place() else "lost"
    try:
        held.write(ClaimRecord(epoch=9, holder=claims.me()))
    except ClaimLost:
        seen += ", refused"
    held.release()
    os.write(write, seen.encode())
    os._exit(0)
os.wait()
print(os.read(read, 100).decode(), "-", "in place" if held.in_place() else "lost", flush=True)
input()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "lost, refused - in place\n"
        assert claims.take(path) == ClaimBusy(holder=None)
    finally:
        parent.communicate("\n")
    taken = claims.take(path)
    assert isinstance(taken, HeldClaim)
    taken.release()


# --- lock files ---------------------------------------------------------------------------------


@pytest.mark.witness("CLAIM-2")
def test_a_lock_file_removed_between_open_and_lock_is_not_taken_for_the_lock(
    tmp_path: Path,
) -> None:
    """Whoever comes by the path meets another file: a lock of the removed one excludes nobody."""
    path = f"{tmp_path}/a.lock"
    others: list[HeldLock | None] = []
    plain = KernelLocks()

    def removed_meanwhile(descriptor: int) -> bool:
        if not others:
            os.unlink(path)
            others.append(plain.try_lock(path))
        return exclude_by_flock(descriptor)

    lock = KernelLocks(exclude=removed_meanwhile).try_lock(path)
    assert others[0] is not None
    assert lock is None
    others[0].release()


def test_a_lock_file_removed_meanwhile_is_made_again_and_locked(tmp_path: Path) -> None:
    path = f"{tmp_path}/a.lock"
    tries: list[int] = []
    plain = KernelLocks()

    def removed_meanwhile(descriptor: int) -> bool:
        tries.append(descriptor)
        if len(tries) == 1:
            os.unlink(path)
        return exclude_by_flock(descriptor)

    lock = KernelLocks(exclude=removed_meanwhile).try_lock(path)
    assert lock is not None
    assert lock.in_place()
    assert len(tries) == 2
    assert plain.try_lock(path) is None
    lock.release()


@pytest.mark.witness("CLAIM-1")
def test_a_file_system_without_locks_fails_closed_and_leaves_no_descriptor(path: str) -> None:
    def refused(descriptor: int) -> bool:
        raise OSError(37, "No locks available")

    os.makedirs(os.path.dirname(path))
    before = open_descriptors()
    with pytest.raises(OSError, match="No locks available"):
        KernelLocks(exclude=refused).try_lock(path)
    assert open_descriptors() == before


def test_busy_and_released_locks_leave_no_descriptor(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    locks = KernelLocks()
    before = open_descriptors()
    lock = locks.try_lock(path)
    assert lock is not None
    for _ in range(5):
        assert locks.try_lock(path) is None
    assert open_descriptors() == before + 1
    lock.release()
    assert open_descriptors() == before


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.fixture
def foreign_folder() -> Iterator[str]:
    """A folder that an unprivileged user can reach and not write."""
    made = tempfile.mkdtemp()
    os.chmod(made, 0o555)
    yield os.path.realpath(made)
    os.chmod(made, 0o755)
    shutil.rmtree(made)


def test_a_claim_in_a_folder_that_cannot_be_written_fails_closed(foreign_folder: str) -> None:
    for path in (f"{foreign_folder}/a.jsonl", f"{foreign_folder}/sessions/a.jsonl"):
        with Claimant(path) as claimant:
            if os.geteuid() == 0:
                assert claimant.ask("be-nobody") == "nobody"
            assert claimant.ask("take") == "error EACCES"
    assert os.listdir(foreign_folder) == []


# --- the calls themselves ---------------------------------------------------------------------


def test_the_kernel_sees_write_sync_rename_and_sync_of_the_folder_in_this_order(
    path: str, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    trace = (
        "strace", "-f", "-y", "-o", str(log),
        "-e", "trace=openat,write,fsync,fdatasync,rename,renameat,renameat2,flock",
    )  # fmt: skip
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run([*trace, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"strace cannot trace here: {probe.stderr.strip()}")
    with Claimant(path, under=trace) as claimant:
        assert claimant.ask("take") == "held new"
        assert claimant.ask("write 1") == "written"
        claimant.finish()
    lines = log.read_text().splitlines()
    locked = next(line for line in lines if "a.jsonl.lock" in line and "flock(" in line)
    assert "LOCK_EX|LOCK_NB" in locked
    opened = next(line for line in lines if "a.jsonl.lock" in line and "openat(" in line)
    assert "O_CLOEXEC" in opened
    after = lines[lines.index(locked) + 1 :]
    assert [name for line in after if (name := call_on_record(line, path))] == [
        "open the temporary file",
        "write",
        "fsync",
        "rename",
        "fsync the folder",
    ]


def call_on_record(line: str, path: str) -> str:
    """What a traced call does to the claim record; empty where nothing."""
    folder = os.path.dirname(path)
    patterns = {
        "open the temporary file": r'openat\(.*\.claim\.tmp", O_RDWR\|O_CREAT\|O_EXCL\|.*= \d',
        "write": r"write\(\d+<[^>]*a\.jsonl\.claim\.tmp>",
        "fsync": r"fsync\(\d+<[^>]*a\.jsonl\.claim\.tmp>\) += 0",
        "rename": r'rename\w*\(.*a\.jsonl\.claim\.tmp".*a\.jsonl\.claim".* = 0',
        "fsync the folder": rf"fsync\(\d+<{re.escape(folder)}>\) += 0",
    }
    return next((name for name, pattern in patterns.items() if re.search(pattern, line)), "")
