"""Every handler of a leaf door keeps its contract, real or simulated: the conformance kits."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.processes import Processes
from tenure.runtime.doors.workers import Workers
from tenure.runtime.testing.conformance import (
    CLAIMS,
    CLOCK,
    ENTROPY,
    FILES,
    LOCKS,
    PROCESSES,
    WORKERS,
    Check,
    ClaimsUnderTest,
    FilesUnderTest,
    LocksUnderTest,
)
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves


@dataclass(frozen=True, kw_only=True)
class World:
    """Two processes, or what passes for them, and an empty folder."""

    leaves: Leaves
    other: Leaves
    files: FilesUnderTest


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "memory":
        disk = MemoryDisk()
        disk.put_folder("/work")
        leaves = memory_leaves(disk)
        files = FilesUnderTest(files=leaves.files, root="/work", link=disk.put_link)
        yield World(leaves=leaves, other=memory_leaves(disk), files=files)
    else:
        leaves = system_leaves()
        root = os.path.realpath(tmp_path)
        files = FilesUnderTest(
            files=leaves.files, root=root, link=lambda path, to: os.symlink(to, path)
        )
        yield World(leaves=leaves, other=leaves, files=files)
        asyncio.run(leaves.workers.close())


@pytest.mark.parametrize("check", FILES)
def test_files_keep_their_contract(check: Check[FilesUnderTest], world: World) -> None:
    check(world.files)


@pytest.mark.parametrize("check", LOCKS)
def test_locks_keep_their_contract(check: Check[LocksUnderTest], world: World) -> None:
    at = world.files
    check(LocksUnderTest(locks=world.leaves.locks, files=at.files, root=at.root, link=at.link))


@pytest.mark.parametrize("check", CLAIMS)
def test_claims_keep_their_contract(check: Check[ClaimsUnderTest], world: World) -> None:
    one, other = Claims(world.leaves, "one"), Claims(world.other, "other")
    check(ClaimsUnderTest(one=one, other=other, path=world.files.path("folder/claimed")))


@pytest.mark.parametrize("check", CLOCK)
def test_clocks_keep_their_contract(check: Check[Clock], world: World) -> None:
    check(world.leaves.clock)


@pytest.mark.parametrize("check", ENTROPY)
def test_entropy_keeps_its_contract(check: Check[Entropy], world: World) -> None:
    check(world.leaves.entropy)


@pytest.mark.parametrize("check", PROCESSES)
def test_processes_keep_their_contract(check: Check[Processes], world: World) -> None:
    check(world.leaves.processes)


@pytest.mark.parametrize("check", WORKERS)
def test_workers_keep_their_contract(check: Check[Workers], world: World) -> None:
    check(world.leaves.workers)
