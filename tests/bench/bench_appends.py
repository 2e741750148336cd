"""Durable appends through a whole host, against a bare loop of write and fdatasync.

    python tests/bench/bench_appends.py [folder]

The bare loop writes records of the same size to one file and syncs each.  Both
run in turns, on the same disk, in this process; the rates are of whole rounds.
The folder decides which disk is measured; by default a temporary one.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tenure import Host
from tenure.messages.entries import CustomEntry
from tenure.messages.session import Appended, AppendEntries
from tenure.runtime.seat import Seat

WAITERS = 64
APPENDS = 8
"""By each waiter in one round."""
ROUNDS = 5
NOTE = CustomEntry(custom_type="bench/note", data={"text": "x" * 200})


async def appends(seat: Seat, count: int) -> None:
    for _ in range(count):
        reply = await seat.ask(AppendEntries(token=seat.token, entries=(NOTE,)))
        assert isinstance(reply, Appended), reply


async def rate(seats: list[Seat]) -> float:
    """Receipts a second, with `WAITERS` askers spread over the seats."""
    begin = time.perf_counter()
    await asyncio.gather(*(appends(seats[n % len(seats)], APPENDS) for n in range(WAITERS)))
    return WAITERS * APPENDS / (time.perf_counter() - begin)


def bare(root: Path, size: int, count: int) -> float:
    """Synced writes a second."""
    line = b"x" * (size - 1) + b"\n"
    descriptor = os.open(root / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        begin = time.perf_counter()
        for _ in range(count):
            os.write(descriptor, line)
            os.fdatasync(descriptor)
        return count / (time.perf_counter() - begin)
    finally:
        os.close(descriptor)


async def measure(root: Path) -> None:
    async with Host.open(str(root)) as host:
        one = await host.new_seat("one")
        many = [await host.new_seat(f"seat-{n}") for n in range(WAITERS)]
        await rate([one])
        await rate(many)
        size = os.stat((await one.session()).path).st_size // (WAITERS * APPENDS)
        ratios: dict[str, list[float]] = {"one": [], "many": []}
        for _ in range(ROUNDS):
            base = bare(root, size, 300)
            ratios["one"].append(await rate([one]) / base)
            ratios["many"].append(await rate(many) / base)
            print(f"bare loop of write and fdatasync: {base:,.0f} a second, {size} bytes each")
    show(f"{WAITERS} waiters on one session", ratios["one"], 5.0)
    show(f"{WAITERS} sessions", ratios["many"], 2.5)


def show(name: str, ratios: list[float], bound: float) -> None:
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"{name}: {middle:.1f} x the bare loop [{low:.1f}-{high:.1f}] (bound >= {bound})")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as root:
        asyncio.run(measure(Path(root)))


if __name__ == "__main__":
    main()
