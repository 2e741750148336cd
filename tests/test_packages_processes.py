"""Real processes that install, update and sweep at once, and are killed: one copy always serves."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packages_world import tree

from tenure.runtime.doors.files import RealFiles
from tenure.runtime.doors.packages.layout import Layout
from tenure.runtime.doors.packages.loader import Loader

RUN_S = float(os.environ.get("TENURE_PLUGINS_RUN_S", "5"))
"""How long they run; 120 and more looks harder."""
PROCESSES = 4

PROGRAM = """
import asyncio, sys
from tenure import Host
from tenure.runtime.errors import Refused

async def work(root, sources):
    async with Host.open(root) as host:
        while True:
            for source in sources:
                try:
                    await host.plugins.install(source)
                    await host.plugins.sweep()
                except Refused as refused:
                    print(type(refused.reply).__name__, refused, flush=True)

asyncio.run(work(sys.argv[1], sys.argv[2:]))
"""


def put(folder: Path, name: str, version: str) -> str:
    for path, data in tree(name, version).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return str(folder)


@pytest.mark.timeout(int(RUN_S) + 55)
@pytest.mark.witness("INSTALL-2")
def test_processes_that_change_packages_at_once_and_die_always_leave_one_that_can_be_read(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    sources = [put(tmp_path / f"{name}{n}", name, str(n)) for name in "ab" for n in (1, 2, 3)]

    def start() -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", PROGRAM, str(root), *sources]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    loader = Loader(RealFiles(), Layout(str(root)))
    running = [start() for _ in range(PROCESSES)]
    seen: set[str] = set()
    looks = killed = 0
    try:
        while not loader.load().packages:
            assert all(process.poll() is None for process in running)
        ends = time.monotonic() + RUN_S
        while time.monotonic() < ends or len(seen) < len("ab"):
            found = {each.name: each.status for each in loader.load().packages}
            assert seen <= set(found), f"gone after {looks} looks: {seen - set(found)}"
            assert set(found.values()) <= {"ok"}, found
            seen |= set(found)
            looks += 1
            if looks % 100 == 0:
                victim = running.pop(0)
                victim.kill()
                victim.wait()
                killed += 1
                running.append(start())
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert killed
