"""Packages under crashes: at every call to the disk, old or new can be read, never none."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from packages_world import HOME, PackagesWorld

from tenure.messages.install import PackageInstalled, PackageRemoved, PackageRolledBack, Swept
from tenure.runtime.testing.faults import (
    DiskCall,
    Fate,
    Fault,
    KeepAll,
    KillAfter,
    KillBefore,
    KillDuring,
    LoseAll,
    ProcessKilled,
    SeededFate,
)

CHANGING = frozenset(
    {
        "append",
        "create",
        "datasync",
        "make_folder",
        "remove",
        "remove_folder",
        "rename",
        "sync",
        "sync_folder",
        "truncate",
    }
)

Scene = tuple[str, Callable[[PackagesWorld], None], Callable[[PackagesWorld], object], set[str]]


def prepared(*versions: str) -> Callable[[PackagesWorld], None]:
    def prepare(world: PackagesWorld) -> None:
        world.put_versions(*versions, str(len(versions) + 1), "9")
        for version in versions:
            assert isinstance(world.install(f"/src/{version}"), PackageInstalled)

    return prepare


SCENES: dict[str, Scene] = {
    "fresh": ("fresh", prepared(), lambda world: world.install("/src/1"), {"", "1"}),
    "update": ("update", prepared("1"), lambda world: world.install("/src/2"), {"1", "2"}),
    "update over a retained backup": (
        "update",
        prepared("1", "2", "3", "4"),
        lambda world: world.install("/src/5"),
        {"4", "5"},
    ),
    "uninstall": ("uninstall", prepared("1", "2"), lambda world: world.remove(), {"2", ""}),
    "rollback": ("rollback", prepared("1", "2"), lambda world: world.roll_back(), {"2", "1"}),
}
FATES: dict[str, Callable[[int], Fate] | None] = {
    "the process dies": None,
    "the power fails, all is kept": lambda _: KeepAll(),
    "the power fails, nothing unsynced is kept": lambda _: LoseAll(),
    "the power fails, something is kept": lambda nth: SeededFate(random.Random(nth)),
}


class CrashAtCall:
    """Ends the process at its nth changing call."""

    def __init__(self, nth: int, how: str) -> None:
        self.nth = nth
        self.how = how
        self.calls = 0

    def __call__(self, call: DiskCall) -> Fault | None:
        if call.name not in CHANGING:
            return None
        self.calls += 1
        if self.calls != self.nth:
            return None
        if self.how == "before":
            return KillBefore()
        if call.name == "append":
            return KillDuring(bytes_written=call.size // 2)
        return KillAfter()


def calls_of(scene: Scene) -> int:
    world = PackagesWorld()
    scene[1](world)
    counting = CrashAtCall(0, "before")
    world.disk.before = counting
    assert isinstance(scene[2](world), PackageInstalled | PackageRemoved | PackageRolledBack)
    return counting.calls


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.witness("INSTALL-2")
@pytest.mark.witness("INSTALL-3")
def test_a_crash_at_any_call_leaves_the_old_or_the_new_package_and_the_next_one_works(
    name: str, fate: str
) -> None:
    """X15: one readable copy remains at each step, and the sweep restores the backup."""
    scene = SCENES[name]
    total = calls_of(scene)
    assert total > 10
    # The power fails at every fourth call: what is lost differs little from one to the next.
    for nth in range(1, total + 1, 1 if FATES[fate] is None else 4):
        for how in ("before", "during"):
            _crash_once(scene, nth, how, FATES[fate])


def _crash_once(scene: Scene, nth: int, how: str, fate: Callable[[int], Fate] | None) -> None:
    _, prepare, act, allowed = scene
    world = PackagesWorld()
    prepare(world)
    world.disk.before = CrashAtCall(nth, how)
    with pytest.raises(ProcessKilled):
        act(world)
    world.disk.before = None
    if fate is not None:
        world.disk.crash(fate(nth))
    at = f"{how} call {nth}"
    # A reader finds one before anybody recovers anything, and then it stays that one.
    assert world.version() in allowed, at
    assert isinstance(world.sweep(), Swept), at
    recovered = world.version()
    assert recovered in allowed, at
    assert not {each for each in world.names(HOME) if each.startswith((".stage/", ".trash/"))}, at
    assert ".journal.json" not in world.names(HOME), at
    assert world.load().leftovers == (), at
    assert isinstance(world.install("/src/9"), PackageInstalled), at
    assert world.version() == "9", at


@pytest.mark.parametrize("name", SCENES)
def test_a_crash_in_the_recovery_itself_loses_nothing(name: str) -> None:
    scene = SCENES[name]
    for nth in range(1, calls_of(scene) + 1, 5):
        for second in range(1, 30, 5):
            world = PackagesWorld()
            scene[1](world)
            world.disk.before = CrashAtCall(nth, "after")
            with pytest.raises(ProcessKilled):
                scene[2](world)
            world.disk.before = CrashAtCall(second, "after")
            with suppress(ProcessKilled):
                world.sweep()
            world.disk.before = None
            assert world.version() in scene[3], (nth, second)
            assert isinstance(world.sweep(), Swept)
            assert world.version() in scene[3], (nth, second)
