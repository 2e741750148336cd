"""The trace: one JSON line a step, and a file that never disturbs the host."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from toys import (
    BeginStream,
    Break,
    CancelBeside,
    DoWork,
    KeepAsker,
    Machine,
    Note,
    RelayAsk,
    RelayForward,
    RelayTell,
    asynchronous,
    settle,
    toy_step,
)

from tenure.messages.tokens import TurnId
from tenure.messages.turn import StopTurn
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.host import Host
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall, Fail, Fault, WriteShort
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.workers import InlineWorkers
from tenure.runtime.trace import Trace
from tenure.runtime.trace_file import WAITING_BYTES_MAX, TraceFile


class Lines:
    """Collects what a trace writes, and reads it."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.trace = Trace(self.raw.append)

    @property
    def all(self) -> list[dict[str, Any]]:
        assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in self.raw)
        return [msgspec.json.decode(line) for line in self.raw]

    def of(self, kind: str) -> dict[str, Any]:
        (line,) = [line for line in self.all if line["message"]["type"] == kind]
        return line


@asynchronous
async def test_every_step_is_one_line() -> None:
    lines = Lines()
    machine = Machine(observers=(lines.trace,))
    await machine.ask(Note(text="a"))
    await machine.ask(Note(text="b"), "main/turn")
    assert [(line["owner"], line["message"]["type"]) for line in lines.all] == [
        ("main/session", "OwnerStarted"),
        ("main/turn", "OwnerStarted"),
        ("main/session", "Note"),
        ("main/turn", "Note"),
    ]


@asynchronous
async def test_line_says_what_was_taken_and_what_was_decided() -> None:
    lines = Lines()
    machine = Machine(observers=(lines.trace,))
    await machine.ask(Note(text="a"))
    line = lines.of("Note")
    assert line["message"] == {"type": "Note", "text": "a", "idempotency_key": ""}
    assert set(line["taken"]) == {"asker", "now_ms", "fresh"}
    assert line["incarnation"] == 1
    assert line["state"] == "Toy"
    ((asker, reply),) = line["replies"]
    assert asker == line["taken"]["asker"]
    assert reply == {"type": "Noted", "before": [], "incarnation": 1}


@asynchronous
async def test_mail_events_and_effects_can_be_read_in_the_line() -> None:
    lines = Lines()
    machine = Machine(observers=(lines.trace,))
    hi = {"type": "Note", "text": "hi", "idempotency_key": ""}
    await machine.ask(RelayTell(to="turn", message=Note(text="hi")))
    assert lines.of("RelayTell")["mail"] == [{"tell": "turn", "message": hi}]
    await machine.ask(RelayAsk(to="turn", message=Note(text="hi")))
    line = lines.of("RelayAsk")
    asker = line["taken"]["asker"]
    assert line["mail"] == [{"ask": "turn", "message": hi, "re": ["RelayedFor", {"asker": asker}]}]
    await machine.ask(RelayForward(to="turn", message=Note(text="hi")))
    line = lines.of("RelayForward")
    assert line["mail"] == [{"forward": "turn", "message": hi, "asker": line["taken"]["asker"]}]
    await machine.ask(CancelBeside(text="x"))
    assert lines.of("CancelBeside")["mail"] == [{"cancel": "work x"}]
    await machine.ask(BeginStream(name="s"))
    assert lines.of("BeginStream")["events"] == [{"type": "StreamBegan", "name": "s"}]
    await machine.ask(DoWork(texts=("w",)))
    assert lines.of("DoWork")["effects"] == [{"type": "Work", "text": "w"}]


@asynchronous
async def test_step_that_raised_is_a_line_that_says_so() -> None:
    lines = Lines()
    machine = Machine(observers=(lines.trace,))
    await machine.ask(Break(reason="odd"))
    line = lines.of("Break")
    assert line["raised"] == "RuntimeError: odd"
    assert "replies" not in line


@asynchronous
async def test_lone_surrogate_does_not_break_the_trace_or_the_owner() -> None:
    lines = Lines()
    machine = Machine(observers=(lines.trace,))
    await machine.ask(Note(text="half \ud83d of a pair"))
    assert await machine.noted() == ("half \ud83d of a pair",)
    first = next(line for line in lines.all if line["message"]["type"] == "Note")
    assert first["message"]["text"] == "half \\ud83d of a pair"
    assert (first["owner"], first["unencodable"]) == (
        "main/session",
        "lone surrogates are escaped",
    )


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, {("a", "b"): 1}, 2**80, float("nan"), b"\xff", ..., type]
)
def test_values_of_an_embedder_do_not_break_the_trace(value: object) -> None:
    class Told(msgspec.Struct, frozen=True):
        value: object

    lines = Lines()
    taken = Taken(None, 0, "f")
    lines.trace.stepped("a", 1, Told(value), taken, Step(Told(value)))  # type: ignore[arg-type]
    lines.trace.stepped("a", 1, Note(text="x"), taken, Step(value))
    assert len(lines.all) == 2


def test_value_that_cannot_even_be_shown_does_not_break_the_trace() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("not to be shown")

    lines = Lines()
    lines.trace.raised("a", 1, KeepAsker(text=Shy()), ValueError("x"))  # type: ignore[arg-type]
    (line,) = lines.all
    assert line["owner"] == "a"
    assert "message: KeepAsker" in line["unencodable"]


def test_trace_can_be_stepped_again_from_its_lines() -> None:
    lines = Lines()
    state = toy_step.__globals__["Toy"]()
    taken = Taken(None, 5, "f")
    step = toy_step(state, Note(text="a"), taken)
    lines.trace.stepped("a", 1, Note(text="a"), taken, step)
    (line,) = lines.all
    again = msgspec.convert(line["message"], Note)
    assert toy_step(state, again, msgspec.convert(line["taken"], Taken)) == step


# --- the file ------------------------------------------------------------------------------------


def world() -> tuple[MemoryDisk, Leaves]:
    disk = MemoryDisk()
    disk.put_folder("/root")
    return disk, memory_leaves(disk)


def lines_of(disk: MemoryDisk) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in disk.content("/root/trace").splitlines()]


def failing(fault: Fault, after: int = 0) -> Callable[[DiskCall], Fault | None]:
    """Appends to the trace fail from the one after the first few."""
    seen = 0

    def before(call: DiskCall) -> Fault | None:
        nonlocal seen
        if call.name == "append" and call.path == "/root/trace":
            seen += 1
            return fault if seen > after else None
        return None

    return before


@asynchronous
async def test_trace_of_a_host_is_whole_when_the_host_is_closed() -> None:
    disk, leaves = world()
    async with Host.open(
        "/root", leaves=leaves, model=Scripted(["Hi."]), trace="/root/trace"
    ) as host:
        seat = await host.seat()
        events = [event async for event in seat.prompt("hello")]
        assert host.trace_failed == ""
    lines = lines_of(disk)
    kinds = {line["message"]["type"] for line in lines}
    assert {"OwnerStarted", "StartTurn", "RunTurn", "ModelCallDone", "DrainTurn"} <= kinds
    emitted = [event["type"] for line in lines for event in line["events"]]
    for event in events:
        assert type(event).__name__ in emitted


@asynchronous
async def test_trace_goes_on_in_a_file_that_exists() -> None:
    disk, leaves = world()
    for _ in range(2):
        async with Host.open("/root", leaves=leaves, trace="/root/trace"):
            pass
    started = [line for line in lines_of(disk) if line["owner"] == "settings"]
    assert len(started) == 2


@pytest.mark.parametrize("after", [0, 3])
@asynchronous
async def test_full_disk_under_the_trace_does_not_disturb_the_host_and_is_reported(
    after: int,
) -> None:
    disk, leaves = world()
    disk.before = failing(Fail(errno=errno.ENOSPC), after)
    async with Host.open(
        "/root", leaves=leaves, model=Scripted(["Hi."]), trace="/root/trace"
    ) as host:
        seat = await host.seat()
        events = [event async for event in seat.prompt("hello")]
        assert type(events[-1]).__name__ == "TurnEnded"
        assert host.trace_failed == "/root/trace: No space left on device"
    for line in disk.content("/root/trace").splitlines():
        msgspec.json.decode(line)


@asynchronous
async def test_trace_in_a_folder_that_does_not_exist_is_reported() -> None:
    _, leaves = world()
    async with Host.open("/root", leaves=leaves, trace="/root/none/trace") as host:
        await host.settings.get()
        await settle()
        assert host.trace_failed == "/root/none/trace: No such file or directory"


@asynchronous
async def test_short_write_to_the_trace_is_completed() -> None:
    disk, leaves = world()
    short = failing(WriteShort(bytes_written=7))
    cut = 0

    def before(call: DiskCall) -> Fault | None:
        nonlocal cut
        fault = short(call)
        cut += fault is not None
        return fault if cut == 1 else None

    disk.before = before
    file = TraceFile(leaves, "/root/trace")
    file.write(b'{"a": "long enough to be cut"}\n')
    await file.close()
    assert cut >= 2
    assert lines_of(disk) == [{"a": "long enough to be cut"}]


@asynchronous
async def test_trace_that_failed_takes_no_more_lines() -> None:
    disk, leaves = world()
    disk.before = failing(Fail(errno=errno.EIO), 1)
    file = TraceFile(leaves, "/root/trace")
    for text in ("one", "two", "three"):
        file.write(b'"%s"\n' % text.encode())
        await settle()
    disk.before = None
    file.write(b'"four"\n')
    await file.close()
    assert disk.content("/root/trace") == b'"one"\n'
    assert "Input/output error" in file.failed


@asynchronous
async def test_trace_that_the_disk_cannot_keep_up_with_ends_and_says_so() -> None:
    class Slow(InlineWorkers):
        async def run(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

    slow = memory_leaves(workers=Slow())
    file = TraceFile(slow, "/root/trace")
    line = b"x" * (WAITING_BYTES_MAX // 4)
    file.write(line)
    await settle()
    for _ in range(4):
        file.write(line)
        assert file.failed == ""
    file.write(line)
    assert "slower than the trace" in file.failed


@asynchronous
async def test_trace_file_is_for_its_owner_alone() -> None:
    _, leaves = world()
    file = TraceFile(leaves, "/root/trace")
    file.write(b"{}\n")
    await file.close()
    assert leaves.files.stat("/root/trace").mode == 0o600


@asynchronous
async def test_closing_a_trace_that_wrote_nothing_makes_no_file() -> None:
    disk, leaves = world()
    await TraceFile(leaves, "/root/trace").close()
    assert "/root/trace" not in disk.paths()


def test_stop_can_be_read_back_from_a_line() -> None:
    lines = Lines()
    stop = StopTurn(turn_id=TurnId("s/1"))
    lines.trace.stepped("a", 1, stop, Taken(1, 0, "f"), Step(Note(text="x")))  # type: ignore[arg-type]
    assert msgspec.convert(lines.all[0]["message"], StopTurn) == stop
