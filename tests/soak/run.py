"""Two clients on one root, killed again and again, and then held against their ledgers.

    python tests/soak/run.py [--seconds 600] [--seed N] [--root DIR]

Each client is a process with a host of its own.  It lives for a random time, and ends
by kill -9 in four of five cases; another one takes its place.  At the end every session
is opened once, as its next user would, and checked by `tenure sessions verify`; the
ledgers are compared with the files.  Exit code 1 where anything is wrong.
"""

import argparse
import asyncio
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from judge import Verdict, judge

from tenure import Host, Refused

CLIENT = Path(__file__).parent / "client.py"
CLIENTS = 2
READY_S_MAX = 60.0
END_S_MAX = 60.0
TENURE = (sys.executable, "-m", "tenure.runtime.cli.main")


class Place:
    """Where one client runs at a time."""

    def __init__(self, name: str, root: Path, ledgers: Path, seed: str) -> None:
        self.name = name
        self.root = root
        self.ledgers = ledgers
        self.seed = seed
        self.chance = random.Random(f"{seed} {name}")
        self.runs = 0
        self.ended: Counter[str] = Counter()
        self.faults: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self.runs += 1
        seed = f"{self.seed}{self.name}{self.runs}"
        ledger = self.ledgers / f"{self.name}-{self.runs}.jsonl"
        self.errors = (self.ledgers / f"{self.name}-{self.runs}.err").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(CLIENT), str(self.root), str(ledger), seed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.until = time.monotonic() + self.chance.uniform(0.05, 4.0)

    def look(self) -> None:
        """End the client if its time has come, and begin the next one."""
        if self.process.poll() is not None:
            self._gone("by itself")
        elif time.monotonic() < self.until:
            return
        elif self.chance.random() < 0.8:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self._closed("killed")
        else:
            self.end()
        self._begin()

    def end(self) -> None:
        """Let it close its host."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            code = self.process.wait(END_S_MAX)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
            return self._gone("not at all when told to")
        if code:
            return self._gone(f"with {code} when told to")
        return self._closed("closed")

    def _gone(self, how: str) -> None:
        self.errors.seek(0)
        self.faults.append(f"client {self.name}-{self.runs} ended {how}:\n{self.errors.read()}")
        self._closed("failed")

    def _closed(self, how: str) -> None:
        self.ended[how] += 1
        self.errors.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def soak(root: Path, seconds: float, seed: str) -> Verdict:
    """Run the clients, then say what is wrong."""
    ledgers = root.parent / f"{root.name}-ledgers"
    ledgers.mkdir()
    places = [Place(chr(ord("a") + n), root, ledgers, seed) for n in range(CLIENTS)]
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for place in places:
            place.look()
        try:
            places[0].process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
    for place in places:
        place.end()
    faults = [fault for place in places for fault in place.faults]
    faults += asyncio.run(_settle(root))
    faults += _verify(root)
    verdict = judge(root, sorted(ledgers.glob("*.jsonl")))
    verdict.faults[:0] = faults
    for place in places:
        for how, times in place.ended.items():
            verdict.counts[f"clients {how}"] += times
    return verdict


async def _settle(root: Path) -> list[str]:
    """Open every session once, as its next user would: what a crash left open is closed."""
    faults = []
    async with Host.open(str(root)) as host:
        seat = await host.vacant_seat("judge")
        for summary in await host.sessions.list():
            try:
                await seat.open(summary.id)
            except Refused as refused:
                faults.append(f"{summary.path} cannot be opened: {refused}")
    return faults


def _verify(root: Path) -> list[str]:
    """What `tenure sessions verify` says of every session."""
    done = subprocess.run(
        [*TENURE, "sessions", "verify", "--json"], cwd=root, capture_output=True, text=True
    )
    faults = []
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if found["problems"]:
            faults.append(f"{found['path']}: {found['problems']}")
    if done.returncode and not faults:
        faults.append(f"tenure sessions verify: {done.stdout}{done.stderr}")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", default=str(random.randrange(10**6)))
    parser.add_argument("--root", type=Path, help="a new folder; kept")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    place = tempfile.mkdtemp(prefix="soak-")
    root: Path = options.root or Path(place) / "root"
    root.mkdir(parents=True)
    (root / "a.md").write_text("the heron stands in the reeds\n")
    verdict = soak(root, options.seconds, options.seed)
    for name, times in sorted(verdict.counts.items()):
        print(f"{times:8,} {name}")
    for fault in verdict.faults[:50]:
        print(f"FAULT {fault}")
    print(f"{len(verdict.faults)} faults")
    if not verdict.faults:
        shutil.rmtree(place)
    sys.exit(1 if verdict.faults else 0)


if __name__ == "__main__":
    main()
