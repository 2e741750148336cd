"""The bus against pykka's own thread actors, the memory of idle seats, and deltas to a reader.

python tests/bench/bench_bus.py [ask|seats|deltas|stop]

Bounds (design of record): an ask takes at most 0.6 of ThreadingActor's; an idle parked
seat at most 12 KB; a reader gets 100,000 deltas a second one by one and 300,000 in
batches of 16; a stop during a batched stream is answered within 1 ms (p99).
"""

import asyncio
import ctypes
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pykka

from tenure.messages.base import Command, Message, Outcome, Reply
from tenure.messages.content import AssistantMessage, TextBlock
from tenure.messages.session import StartTurn
from tenure.messages.tokens import SessionId, turn_id
from tenure.messages.turn import StopTurn, TextDelta, TurnEnded, TurnNotRunning
from tenure.messages.turn_effects import CallModel, ModelCallDone, ModelDelta
from tenure.runtime.bus import Bus
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import system_leaves
from tenure.runtime.host import Host
from tenure.runtime.owner import Owner
from tenure.runtime.seat import Seat
from tenure.runtime.step import Step, Taken
from tenure.runtime.streams import OpenStreams
from tenure.runtime.supervisor import OwnerSpec, Supervisor

ASKS = 1_000
ROUNDS = 21
SEATS = 10_000
DELTAS = 64_000
STOPS = 3_000
BATCH = 16

# --- ask -----------------------------------------------------------------------------------------


class Ping(Command, frozen=True, kw_only=True):
    number: int


class Pong(Reply, frozen=True, kw_only=True):
    number: int


class Quiet(msgspec.Struct, frozen=True):
    pass


def pong_step(state: Quiet, message: Message, taken: Taken) -> Step[Quiet]:
    match message:
        case Ping(number=number):
            return Step(state).answer(taken.asker, Pong(number=number))
        case _:
            return Step(state)


class PongActor(Owner):
    step = staticmethod(pong_step)
    first = Quiet


class ThreadedPong(pykka.ThreadingActor):
    def on_receive(self, message: Any) -> Pong:
        return Pong(number=message.number)


async def bench_ask() -> None:
    """Blocks of asks of both, turn about, so that a noisy moment hits both alike."""
    leaves = system_leaves()
    bus = Bus(leaves.clock, "bench")
    supervisor = Supervisor(leaves, bus, {}, streams=OpenStreams(()), routes={})
    supervisor.add("main", OwnerSpec(role="session", owner=PongActor))
    threaded = ThreadedPong.start()
    ping = Ping(number=1)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        times = []
        for _ in range(ASKS):
            begin = time.perf_counter_ns()
            await bus.ask("main/session", ping)
            times.append(time.perf_counter_ns() - begin)
        ours.append(statistics.median(times) / 1000)
        times = []
        for _ in range(ASKS):
            begin = time.perf_counter_ns()
            threaded.ask(ping)
            times.append(time.perf_counter_ns() - begin)
        theirs.append(statistics.median(times) / 1000)
    threaded.stop()
    ratios = sorted(mine / other for mine, other in zip(ours, theirs, strict=True))
    print(
        f"ask p50: bus {statistics.median(ours):.1f} us, ThreadingActor "
        f"{statistics.median(theirs):.1f} us, ratio {statistics.median(ratios):.2f} "
        f"[{ratios[1]:.2f}-{ratios[-2]:.2f}] (bound 0.60)"
    )
    bus.close()
    await leaves.workers.close()


# --- seats ---------------------------------------------------------------------------------------


def resident_bytes() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def bench_seats() -> None:
    """Seats of a real host, each opened on a session of its own and parked."""
    with tempfile.TemporaryDirectory() as root:
        async with Host.open(root) as host:
            warm = await host.new_seat("warm")
            await warm.park()
            before = resident_bytes()
            begin = time.perf_counter()
            for number in range(SEATS):
                seat = await host.new_seat(f"seat {number}")
                await seat.park()
            made = time.perf_counter() - begin
            after = resident_bytes()
            owners = len(host.owners()) / (SEATS + 1)
            begin = time.perf_counter()
            await host.close()
            closed = time.perf_counter() - begin
    print(
        f"idle parked seat: {(after - before) / SEATS / 1024:.1f} KB with {owners:.1f} owners, "
        f"{SEATS} of them (bound 12 KB); {made / SEATS * 1e6:.0f} us to make, "
        f"{closed / SEATS * 1e6:.0f} us to close"
    )


# --- deltas --------------------------------------------------------------------------------------


class Speaker:
    """Stands for the models door.

    Args:
        batch: tokens in one delta.
        run: deltas that are posted before the loop is given back, as when they
            came in one piece from the network.
    """

    def __init__(self, tokens: int, batch: int, run: int = 1) -> None:
        self._tokens = tokens
        self._text = "token " * batch
        self._batch = batch
        self._run = run

    async def call(self, effect: CallModel, context: Context) -> Outcome:
        delta = ModelDelta(turn_id=effect.turn_id, call=effect.call, kind="text", text=self._text)
        for _ in range(self._tokens // self._batch // self._run):
            for _ in range(self._run):
                context.progress(delta)
            await asyncio.sleep(0)
        said = AssistantMessage(content=(TextBlock(text="spoken"),), provider="p", model="m")
        return ModelCallDone(turn_id=effect.turn_id, call=effect.call, message=said)


async def with_speaker(
    speaker: Speaker, use: Callable[[Host, Seat], Coroutine[Any, Any, float]]
) -> float:
    with tempfile.TemporaryDirectory() as root:
        async with Host.open(root) as host:
            handlers: Any = host._alive().supervisor._handlers
            handlers[CallModel] = speaker.call
            return await use(host, await host.seat())


async def deltas_a_second(host: Host, seat: Seat) -> float:
    """Counted in CPU seconds: all of it runs in one thread, and others use the machine, too."""
    begin = None
    tokens = 0
    async for event in seat.prompt("speak"):
        if isinstance(event, TextDelta):
            begin = begin or time.process_time()
            tokens += len(event.text) // len("token ")
        elif isinstance(event, TurnEnded):
            break
    assert begin is not None
    assert tokens == DELTAS, tokens
    return tokens / (time.process_time() - begin)


async def bench_deltas() -> None:
    """From the handler through the mailbox, the TurnActor and the stream to one reader."""
    ways = (
        ("one by one, each for itself", 1, 1, 100),
        ("one by one, 16 from one read", 1, BATCH, 100),
        ("16 a message", BATCH, 1, 300),
    )
    for what, batch, run, bound in ways:
        rates = []
        for _ in range(7):
            rates.append(await with_speaker(Speaker(DELTAS, batch, run), deltas_a_second))
        rates.sort()
        print(
            f"deltas to a reader, {what}: {statistics.median(rates) / 1000:.0f} k/s "
            f"[{rates[0] / 1000:.0f}-{rates[-1] / 1000:.0f}] (bound {bound} k/s)"
        )


# --- stop ----------------------------------------------------------------------------------------


async def stop_p99_ms(host: Host, seat: Seat) -> float:
    """Stops that name another turn: answered in the same lane, and the stream goes on.

    The stream keeps the loop's thread busy, so its CPU time is the time of the
    answer without what other programs take of the machine.
    """
    reading = asyncio.ensure_future(_read_all(seat))
    await seat.ask(StartTurn(text="speak"))
    stop = StopTurn(turn_id=turn_id(SessionId("another"), 1))
    cpu, wall = [], []
    for _ in range(STOPS):
        begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
        reply = await seat.ask(stop)
        cpu.append((time.process_time_ns() - begin_cpu) / 1e6)
        wall.append((time.perf_counter_ns() - begin) / 1e6)
        assert isinstance(reply, TurnNotRunning), reply
        await asyncio.sleep(0.0003)
    assert not reading.done()
    reading.cancel()
    await seat.stop()
    for times in (cpu, wall):
        times.sort()
    at = len(cpu) * 99 // 100
    print(
        f"stop answered during a batched stream: p50 {cpu[len(cpu) // 2]:.3f} ms, "
        f"p99 {cpu[at]:.3f} ms of CPU (bound 1 ms); by the clock "
        f"p50 {wall[len(wall) // 2]:.3f}, p99 {wall[at]:.3f}"
    )
    return cpu[at]


async def _read_all(seat: Seat) -> None:
    async for _ in seat._bus.subscribe(seat=seat.name):
        pass


async def bench_stop() -> None:
    await with_speaker(Speaker(10**9, BATCH), stop_p99_ms)


BENCHES = {"ask": bench_ask, "seats": bench_seats, "deltas": bench_deltas, "stop": bench_stop}


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        asyncio.run(BENCHES[name]())


if __name__ == "__main__":
    main()
