"""The transcript door on real files, processes and system calls."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from transcript_world import Seat, answer, user

from tenure.messages.session import SessionInUse, SessionUnreadable
from tenure.messages.transcripts import AppendRecords, ById, Fresh, Newest, OpenTranscript
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.transcripts import Transcripts, list_sessions
from tenure.runtime.testing.workers import InlineWorkers

pytestmark = pytest.mark.real
STRACE = shutil.which("strace")

# Opens the session named on the command line (a new one without), appends once
# for each line on stdin, and says what came of it.
HOLDER = """
import asyncio, sys
from tenure.messages.content import UserMessage
from tenure.messages.entries import MessageEntry, Record
from tenure.messages.transcripts import AppendRecords, ById, Fresh, OpenTranscript
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import system_leaves
from tenure.runtime.doors.transcripts import Transcripts

async def main(root, *ids):
    leaves = system_leaves()
    door = Transcripts(leaves, root, Claims(leaves, "holder"), "holder")
    context = Context(owner="main/session", seat="main", progress=lambda outcome: None)
    target = ById(session_id=ids[0]) if ids else Fresh()
    outcome = await door.open(OpenTranscript(target=target), context)
    if not hasattr(outcome, "opened"):
        print(type(outcome.refusal).__name__, flush=True)
        return
    opened = outcome.opened
    print(opened.token.session_id, opened.token.epoch, flush=True)
    leaf, seq = opened.leaf, opened.seq
    for line in sys.stdin:
        seq += 1
        record = Record(id=leaves.entropy.fresh(), parent_id=leaf, timestamp_ms=0, seq=seq, turn=0,
                        key="", body=MessageEntry(message=UserMessage(content=line.strip())))
        effect = AppendRecords(token=opened.token, after=leaf, records=(record,))
        print(type(await door.append(effect, context)).__name__, flush=True)
        leaf = record.id

asyncio.run(main(*sys.argv[1:]))
"""


class Holder:
    """A process of its own that holds a session."""

    def __init__(self, root, *ids, before=()):
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", HOLDER, str(root), *ids],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = self.hear()

    def hear(self):
        return self.process.stdout.readline().split()

    def append(self, text):
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return self.hear()

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.finish()

    def finish(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


@pytest.fixture
def holders(tmp_path):
    made = []

    def hold(*ids, before=()):
        holder = Holder(tmp_path, *ids, before=before)
        made.append(holder)
        return holder

    yield hold
    for holder in made:
        if holder.process.poll() is None:
            holder.end()


@pytest.fixture
def leaves():
    real = system_leaves()
    yield Leaves(
        clock=real.clock,
        entropy=real.entropy,
        files=real.files,
        locks=real.locks,
        processes=real.processes,
        sockets=real.sockets,
        web=real.web,
        workers=InlineWorkers(),
    )
    asyncio.run(real.workers.close())


@pytest.fixture
def seat(tmp_path, leaves):
    return Seat(Transcripts(leaves, str(tmp_path), Claims(leaves, "here"), "here"), leaves, "main")


def test_session_of_a_living_process_is_in_use_and_free_once_it_was_killed(holders, seat):
    holder = holders()
    session_id, epoch = holder.said
    assert epoch == "1"
    assert holder.append("one") == ["RecordsAppended"]
    refusal = seat.refused(ById(session_id=session_id))
    assert isinstance(refusal, SessionInUse)
    assert refusal.holder.process.pid == holder.process.pid
    assert refusal.holder.host_id == "holder"
    assert seat.open(Newest()).token.session_id != session_id
    holder.end()
    assert seat.open(ById(session_id=session_id)).token.epoch == 2
    assert seat.texts() == ["user: one"]


def test_of_two_processes_one_gets_the_session(holders, seat):
    session_id = holders().said[0]
    seat.open(Fresh())
    seat.append(user("mine"))
    seat.close()
    first, second = holders(seat.id), holders(seat.id)
    assert [first.said, second.said] == [[seat.id, "2"], ["SessionInUse"]]
    assert session_id != seat.id


def test_stopped_process_keeps_its_session(holders, seat):
    holder = holders()
    holder.append("one")
    holder.process.send_signal(signal.SIGSTOP)
    try:
        assert isinstance(seat.refused(ById(session_id=holder.said[0])), SessionInUse)
    finally:
        holder.process.send_signal(signal.SIGCONT)


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_receipt_is_given_behind_the_system_calls_that_make_it_durable(holders, tmp_path):
    log = tmp_path / "calls"
    trace = "trace=openat,mkdir,rename,write,fdatasync,fsync"
    probe = subprocess.run([STRACE, "-o", str(log), "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    holder = holders(before=(STRACE, "-f", "-y", "-s", "40", "-e", trace, "-o", str(log)))
    assert holder.append("one") == ["RecordsAppended"]
    assert holder.append("two") == ["RecordsAppended"]
    holder.finish()
    calls = log.read_text(encoding="utf-8", errors="replace")
    first, second, _ = re.split(r'write\(1<[^>]*>, "RecordsAppended', calls)
    order = [
        r"rename\([^)]*\.claim\.tmp",
        r"fsync\(\d+<[^>]*/claims/sessions>",
        r"mkdir\([^)]*/\.tenure/sessions",
        r"fsync\(\d+<[^>]*/\.tenure>",
        r"openat\([^)]*\.jsonl\", [^)]*O_CREAT\|O_EXCL",
        r"write\(\d+<[^>]*\.jsonl>",
        r"fsync\(\d+<[^>]*\.jsonl>",
        r"fsync\(\d+<[^>]*/\.tenure/sessions>",
    ]
    at = 0
    for step in order:
        found = re.compile(step).search(first, at)
        assert found is not None, step
        at = found.end()
    assert len(re.findall(r"write\(\d+<[^>]*\.jsonl>", second)) == 1
    assert re.search(r"write\(\d+<[^>]*\.jsonl>.*fdatasync\(\d+<[^>]*\.jsonl>", second, re.S)


def test_appends_through_threads_come_back_in_order(tmp_path):
    async def scenario():
        leaves = system_leaves()
        claims = Claims(leaves, "here")
        door = Transcripts(leaves, str(tmp_path), claims, "here")
        seat = Seat(door, leaves, "main")
        outcome = await door.open(_open(Fresh()), seat.context)
        seat._take(outcome.opened)
        for number in range(20):
            effect = _append(seat, user(str(number)))
            assert type(await door.append(effect, seat.context)).__name__ == "RecordsAppended"
            seat.leaf, seat.seq = effect.records[-1].id, effect.records[-1].seq
        assert seat.texts() == [f"user: {number}" for number in range(20)]
        await door.release_seat("main")
        again = await door.open(_open(ById(session_id=seat.id)), seat.context)
        assert again.opened.token.epoch == 2
        assert again.opened.entries == 20
        await leaves.workers.close()

    asyncio.run(scenario())


def test_cancelled_append_is_whole_in_a_real_thread(tmp_path):
    async def scenario():
        leaves = system_leaves()
        door = Transcripts(leaves, str(tmp_path), Claims(leaves, "here"), "here")
        seat = Seat(door, leaves, "main")
        seat._take((await door.open(_open(Fresh()), seat.context)).opened)
        first = _append(seat, user("one"))
        await door.append(first, seat.context)
        seat.leaf, seat.seq = first.records[-1].id, 1
        task = asyncio.ensure_future(door.append(_append(seat, user("two")), seat.context))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seat.texts() == ["user: one", "user: two"]
        await leaves.workers.close()
        return list_sessions(leaves, str(tmp_path))[0]

    assert asyncio.run(scenario()).messages == 2


def test_sessions_are_private_to_their_user(seat):
    path = Path(seat.open(Fresh()).path)
    seat.append(user("one"))
    assert path.stat().st_mode & 0o077 == 0


def test_pipe_in_the_place_of_a_transcript_is_refused_and_does_not_hang(tmp_path, seat):
    folder = tmp_path / ".tenure/sessions"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "2026-01-01T00-00-00-000Z_s1.jsonl")
    refusal = seat.refused(ById(session_id="s1"))
    assert isinstance(refusal, SessionUnreadable)
    assert refusal.reason == "it is no regular file"
    (summary,) = list_sessions(seat.leaves, str(tmp_path))
    assert summary.problem == "it is no regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_file_without_permissions_is_refused(seat):
    path = Path(seat.open(Fresh()).path)
    seat.append(user("one"))
    seat.close()
    path.chmod(0)
    refusal = seat.refused(ById(session_id=seat.id))
    assert refusal.reason == "it cannot be opened for writing: permission denied"


def test_open_calls_are_settled_on_real_files(seat):
    seat.open(Fresh())
    seat.append(user("go"), answer("", "c1"))
    seat.release()
    assert seat.open(ById(session_id=seat.id)).settled == 1


def _open(target):
    return OpenTranscript(target=target)


def _append(seat, body):
    return AppendRecords(token=seat.token, after=seat.leaf, records=seat.records(body))
