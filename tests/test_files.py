"""The real file system, processes and workers, where they differ from any fake."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.files import RealFiles
from tenure.runtime.doors.processes import SystemProcesses
from tenure.runtime.doors.workers import ThreadWorkers

pytestmark = pytest.mark.real


# --- files --------------------------------------------------------------------------------------


def test_descriptors_are_closed_in_programs_that_are_started(tmp_path: Path) -> None:
    file = RealFiles().open(f"{tmp_path}/a", "create")
    listing = "import os; print(*[os.path.realpath(f'/dev/fd/{n}') for n in os.listdir('/dev/fd')])"
    shown = subprocess.run(
        [sys.executable, "-c", listing], close_fds=False, capture_output=True, text=True, check=True
    )
    file.close()
    assert str(tmp_path) not in shown.stdout


def test_every_writer_appends_at_the_end_whoever_wrote_before(tmp_path: Path) -> None:
    files = RealFiles()
    one = files.open(f"{tmp_path}/a", "create")
    two = files.open(f"{tmp_path}/a", "write")
    for number in range(10):
        (one if number % 2 else two).append(b"%d" % number)
    assert one.read_at(0, 100) == b"0123456789"
    one.close()
    two.close()


def test_opening_a_pipe_does_not_wait_for_its_other_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    files = RealFiles()
    assert files.stat(f"{tmp_path}/pipe").kind == "other"
    assert files.list(str(tmp_path)) == (("pipe", "other"),)
    file = files.open(f"{tmp_path}/pipe", "read")
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        file.read_at(0, 10)
    assert raised.value.errno == errno.ESPIPE
    file.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="its file system takes UTF-8 names only")
def test_a_name_that_is_not_utf_8_is_listed_and_opened(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff", "wb") as file:
        file.write(b"content")
    files = RealFiles()
    ((name, kind),) = files.list(str(tmp_path))
    assert kind == "file"
    opened = files.open(f"{tmp_path}/{name}", "read")
    assert opened.read_at(0, 100) == b"content"
    opened.close()


def test_a_full_device_refuses_an_append(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    file = RealFiles().open("/dev/full", "write")
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        file.append(b"x")
    assert raised.value.errno == errno.ENOSPC
    file.close()


def test_a_file_larger_than_asked_for_is_read_in_pieces(tmp_path: Path) -> None:
    file = RealFiles().open(f"{tmp_path}/a", "create")
    data = os.urandom(300_000)
    assert file.append(data) == len(data)
    assert file.read_at(0, 1_000_000) == data
    assert file.read_at(299_999, 10) == data[-1:]
    file.close()


# --- processes ----------------------------------------------------------------------------------


def test_a_stopped_process_is_alive_and_an_ended_one_is_not_even_before_it_is_waited_for() -> None:
    processes = SystemProcesses()
    program = (
        "from tenure.runtime.doors.processes import SystemProcesses as P;"
        "me = P().me(); print(me.pid, me.started, flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    pid, _, started = child.stdout.readline().strip().partition(" ")
    name = ProcessName(pid=int(pid), started=started)
    assert name.pid == child.pid
    assert name.started
    assert processes.alive(name)
    os.kill(child.pid, signal.SIGSTOP)
    assert processes.alive(name)
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.alive(name), "a zombie has ended"
    child.communicate()
    assert not processes.alive(name)


def test_a_pid_that_was_used_again_is_another_process() -> None:
    me = SystemProcesses().me()
    assert not SystemProcesses().alive(ProcessName(pid=me.pid, started="1"))
    assert not SystemProcesses().alive(ProcessName(pid=me.pid, started=""))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_another_process() -> None:
    program = """
import os
from tenure.runtime.doors.processes import SystemProcesses
processes = SystemProcesses()
parent = processes.me()
if os.fork() == 0:
    os._exit(0 if processes.me().pid == os.getpid() != parent.pid else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- workers ------------------------------------------------------------------------------------


def test_work_runs_beside_the_event_loop_and_no_more_than_the_threads_at_once() -> None:
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()
    full = threading.Barrier(4)

    def work(number: int) -> int:
        with lock:
            running.append(number)
            most.append(len(running))
        full.wait(10)
        with lock:
            running.remove(number)
        return threading.get_ident()

    async def scenario() -> None:
        workers = ThreadWorkers(threads_max=4)
        threads = await asyncio.gather(*(workers.run(work, n) for n in range(40)))
        assert threading.get_ident() not in threads
        assert len(set(threads)) == 4
        await workers.close()

    asyncio.run(scenario())
    assert max(most) == 4
    assert running == []


def test_work_that_waits_for_other_work_gets_a_thread_although_one_was_idle_before() -> None:
    """An idle thread counts for one job: the next ones get threads of their own."""

    async def scenario() -> None:
        workers = ThreadWorkers(threads_max=4)
        for _ in range(20):
            await workers.run(int)
            met = threading.Barrier(4)
            await asyncio.gather(*(workers.run(met.wait, 10) for _ in range(4)))
        await workers.close()

    asyncio.run(scenario())


def worker_threads() -> int:
    return sum(thread.name.startswith("tenure-worker_") for thread in threading.enumerate())


def test_threads_are_started_on_demand_and_end_with_the_workers() -> None:
    async def scenario() -> None:
        workers = ThreadWorkers()
        assert worker_threads() == 0
        for _ in range(20):
            await workers.run(int)
        assert worker_threads() == 1
        await workers.close()

    asyncio.run(scenario())
    assert worker_threads() == 0


def test_close_waits_for_the_work_that_runs_and_for_the_work_that_waits() -> None:
    go = threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        go.wait(10)
        done.append(number)

    async def scenario() -> None:
        workers = ThreadWorkers(threads_max=1)
        calls = [asyncio.create_task(workers.run(work, n)) for n in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(workers.close())
        await asyncio.sleep(0)
        assert not closing.done()
        go.set()
        await closing
        assert done == [0, 1, 2]
        await asyncio.gather(*calls)

    asyncio.run(scenario())


def test_work_that_waits_for_a_thread_is_done_although_its_caller_was_cancelled() -> None:
    go = threading.Event()
    done: list[str] = []

    async def scenario() -> None:
        workers = ThreadWorkers(threads_max=1)
        first = asyncio.create_task(workers.run(go.wait, 10))
        second = asyncio.create_task(workers.run(done.append, "second"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go.set()
        assert await first
        await workers.close()

    asyncio.run(scenario())
    assert done == ["second"]


def test_a_program_that_forgets_to_close_the_workers_finishes_their_work_and_ends() -> None:
    program = """
import asyncio, os, time
from tenure.runtime.doors.workers import ThreadWorkers
workers = ThreadWorkers()
read, write = os.pipe()
async def main():
    await workers.run(int)
    task = asyncio.create_task(workers.run(lambda: (os.read(read, 1), print("done", flush=True))))
    await asyncio.sleep(0)
    task.cancel()
try:
    asyncio.run(main())
except asyncio.CancelledError:
    pass
os.write(write, b"x")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
