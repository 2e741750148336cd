"""Strict hosts: the checkers watch while a host runs, and say what they find."""

import subprocess
import sys

from sim_mutants import everybody_is_answered_twice

from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.host import Host
from tenure.runtime.testing.leaves import memory_leaves
from tenure.runtime.testing.world import ROOT, simulate


def violations_of_a_turn() -> set[str]:
    with simulate(1) as world:
        host = world.host(model=Scripted(["hello", "again"]))
        strict = Host.open(ROOT, model=Scripted(["hello"]), leaves=host.leaves, strict=True)

        async def run() -> set[str]:
            async with strict:
                seat = await strict.seat()
                async for _ in seat.prompt("hi"):
                    pass
                await seat.new()
                return {each.invariant for each in strict.violations}

        return world.run(world.inside(host.process, run()))


def test_a_strict_host_finds_nothing_where_nothing_is_broken() -> None:
    assert violations_of_a_turn() == set()


def test_a_strict_host_says_what_is_broken() -> None:
    with everybody_is_answered_twice():
        assert violations_of_a_turn() == {"BUS-1"}


def test_a_host_that_is_not_strict_has_no_violations() -> None:
    assert Host.open(ROOT, leaves=memory_leaves()).violations == ()


def test_a_strict_host_does_not_load_the_simulator() -> None:
    program = """
import sys
from tenure.runtime.host import Host
Host.open(".", strict=True)
print("greenlet" in sys.modules, "tenure.runtime.testing.world" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert ran.stdout.split() == ["False", "False"], ran.stderr
