"""The packages door: what is installed is there whole, and what was there is never lost."""

import asyncio
import base64
import errno
import hashlib
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from packages_world import CONTEXT, DEMO, HOME, ROOT, PackagesWorld, manifest, tree, zipped

from tenure.messages.install import (
    AllowServer,
    ChoiceSaved,
    DisablePackage,
    Ed25519,
    EnablePackage,
    ForbidServer,
    InstallBusy,
    InstallFailed,
    PackageInstalled,
    PackageNotFound,
    PackageRefused,
    PackageRemoved,
    PackageRolledBack,
    SweepPackages,
    Swept,
)
from tenure.messages.install_effects import ChangePackages, PackagesNotChanged
from tenure.runtime.doors.claims import Claims, HeldClaim
from tenure.runtime.doors.packages.checks import digest_of
from tenure.runtime.doors.packages.layout import SEAL
from tenure.runtime.doors.packages.servers import SCHEMA as MCP_SCHEMA
from tenure.runtime.doors.packages.sweeping import KEPT_VERSIONS_MAX
from tenure.runtime.testing.faults import DiskCall, Fail, Fault
from tenure.runtime.testing.leaves import memory_leaves


def world_with(*versions: str) -> PackagesWorld:
    world = PackagesWorld()
    world.put_versions("1", "2", "3", "4", "5", "6", "7")
    for version in versions:
        assert isinstance(world.install(f"/src/{version}"), PackageInstalled)
    return world


def kept(world: PackagesWorld) -> list[int]:
    (view,) = world.load().packages
    return [each.generation for each in view.kept]


class FailAt:
    """Refuses the nth rename of a folder, and all that follow or only that one."""

    def __init__(self, nth: int, number: int = errno.EIO, times: int = 1) -> None:
        self.nth = nth
        self.number = number
        self.times = times
        self.seen = 0

    def __call__(self, call: DiskCall) -> Fault | None:
        if call.name != "rename" or call.path.endswith(".tmp"):
            return None
        self.seen += 1
        if self.nth <= self.seen < self.nth + self.times:
            return Fail(errno=self.number)
        return None


# --- installing ----------------------------------------------------------------------------


def test_a_root_without_packages_is_not_touched_by_looking_or_by_a_refused_change() -> None:
    world = PackagesWorld()
    assert world.load().packages == ()
    assert isinstance(world.sweep(), Swept)
    assert isinstance(world.remove(), PackageNotFound)
    assert world.disk.paths() == ()


@pytest.mark.witness("INSTALL-1")
def test_manifest_and_seal_are_written_after_all_else_is_durable() -> None:
    world = world_with()
    world.disk.calls.clear()
    world.install("/src/1")
    stage = f"{HOME}/.stage/"
    calls = [call for call in world.disk.calls if call.path.startswith(stage)]
    made = [call.path.rpartition("/")[2] for call in calls if call.name == "create"]
    assert made[-2:] == ["plugin.json", SEAL]
    assert len(made) == 4
    before = calls[: next(n for n, call in enumerate(calls) if call.path.endswith("plugin.json"))]
    assert len([call for call in before if call.name == "sync"]) == 2


def test_an_update_keeps_the_version_before_and_a_rollback_brings_it_back() -> None:
    world = world_with("1", "2")
    assert world.version() == "2"
    assert kept(world) == [1]
    reply = world.roll_back()
    assert reply == PackageRolledBack(name=DEMO, version="1", generation=1)
    assert world.version() == "1"
    assert kept(world) == [2]


def test_a_rollback_goes_through_the_versions_and_can_name_one() -> None:
    world = world_with("1", "2", "3", "4")
    for version in ("3", "2", "1"):
        assert isinstance(world.roll_back(), PackageRolledBack)
        assert world.version() == version
    assert isinstance(world.roll_back(), PackageNotFound)
    assert isinstance(world.roll_back(generation=4), PackageRolledBack)
    assert world.version() == "4"
    assert isinstance(world.roll_back(generation=9), PackageNotFound)


def test_a_damaged_version_is_not_rolled_back_to() -> None:
    world = world_with("1", "2")
    (view,) = world.load().packages
    world.disk.put(f"{view.kept[0].folder}/skills/review/data.txt", b"other of 1")
    assert isinstance(world.roll_back(), InstallFailed)
    assert world.version() == "2"


def test_the_oldest_kept_versions_are_pruned() -> None:
    world = world_with("1", "2", "3", "4", "5", "6")
    assert kept(world) == [5, 4, 3]
    assert len(kept(world)) == KEPT_VERSIONS_MAX


@pytest.mark.witness("INSTALL-2")
def test_no_kept_version_is_pruned_while_the_target_is_not_proven_whole() -> None:
    """G05: being there is not being complete."""
    world = world_with("1", "2", "3", "4")
    (view,) = world.load().packages
    extra = view.kept[-1].folder
    copy = {path: world.disk.content(f"{extra}/{path}") for path in world.names(extra)}
    world.put(f"{HOME}/.kept/demo@00000000000000aa", copy)
    world.put(f"{HOME}/.kept/demo@00000000000000ab", copy)
    world.disk.put(f"{HOME}/demo/skills/review/data.txt", b"xxxx of 4")
    world.sweep()
    assert len(kept(world)) == 5
    assert isinstance(world.install("/src/5"), PackageInstalled)
    assert len(kept(world)) == KEPT_VERSIONS_MAX


def test_uninstalling_removes_the_package_its_versions_and_its_choices() -> None:
    world = world_with("1", "2")
    assert world.remove() == PackageRemoved(name=DEMO)
    assert world.load().packages == ()
    assert not {each for each in world.names(HOME) if "demo" in each}
    assert b"demo" not in world.disk.content(f"{HOME}/.choices.json")


# --- what was there ------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EIO, errno.EXDEV, errno.ENOSPC])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.witness("INSTALL-4")
def test_a_rename_that_is_refused_leaves_the_old_version(nth: int, number: int) -> None:
    world = world_with("1")
    world.disk.before = FailAt(nth, number)
    refused = world.install("/src/2")
    assert isinstance(refused, InstallFailed)
    assert "still in place" in refused.reason
    world.disk.before = None
    assert world.version() == "1"
    assert ".journal.json" not in world.names(HOME)
    assert isinstance(world.install("/src/2"), PackageInstalled)
    assert world.version() == "2"


@pytest.mark.witness("INSTALL-4")
def test_a_folder_in_use_is_tried_again_and_then_the_old_version_stays() -> None:
    """G01: a rename is blocked by somebody's open file."""

    async def change(world: PackagesWorld) -> Any:
        door = world.door()
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        door._leaves.clock.sleep = sleep  # type: ignore[method-assign]
        job = world.job()
        from tenure.messages.install_effects import FetchPackage, PlaceFetched

        await door.fetch(FetchPackage(job=job, source="/src/2"), CONTEXT)
        outcome = await door.change(ChangePackages(job=job, change=PlaceFetched()), CONTEXT)
        return outcome, waits

    world = world_with("1")
    world.disk.before = FailAt(1, errno.EACCES, times=2)
    outcome, waits = asyncio.run(change(world))
    assert outcome.reply.version == "2"
    assert len(waits) == 2
    world = world_with("1")
    world.disk.before = FailAt(1, errno.EBUSY, times=100)
    outcome, waits = asyncio.run(change(world))
    assert isinstance(outcome, PackagesNotChanged)
    assert len(waits) == 3
    world.disk.before = None
    assert world.version() == "1"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_at_any_call_leaves_the_old_or_the_new_version(number: int) -> None:
    for nth in range(1, 60):
        world = world_with("1")
        seen = 0

        def full(call: DiskCall, nth: int = nth) -> Fault | None:
            nonlocal seen
            if call.name in ("create", "append", "make_folder"):
                seen += 1
            writing = ("create", "append", "make_folder")
            return Fail(errno=number) if call.name in writing and seen >= nth else None

        world.disk.before = full
        reply = world.install("/src/2")
        world.disk.before = None
        assert isinstance(reply, InstallFailed | PackageInstalled)
        assert world.version() == ("2" if isinstance(reply, PackageInstalled) else "1"), nth
        world.sweep()
        assert world.version() == ("2" if isinstance(reply, PackageInstalled) else "1"), nth
        if seen < nth:
            return
    raise AssertionError("an installation makes more calls than this test tried")


@pytest.mark.witness("INSTALL-3")
def test_half_a_target_without_a_manifest_gives_way_to_its_backup_and_is_kept_aside() -> None:
    """G05: target half deleted, backup full: the backup is restored, nothing is deleted."""
    world = world_with("1", "2")
    for path in world.names(f"{HOME}/demo"):
        if path != "skills/review/data.txt":
            world.door().loader._files.remove(f"{HOME}/demo/{path}")
    assert world.version() == ""
    swept = world.sweep()
    assert isinstance(swept, Swept)
    assert swept.recovered == ("demo: a kept version was restored",)
    assert world.version() == "1"
    assert [each.reason for each in swept.leftovers] == ["set aside: it could not be read"]
    assert world.disk.content(f"{swept.leftovers[0].path}/skills/review/data.txt") == b"data of 2"


def test_a_damaged_journal_is_set_aside_and_the_backup_found() -> None:
    world = world_with("1", "2")
    world.door().loader._files.rename(f"{HOME}/demo", f"{HOME}/.kept/demo@00000000000000ff")
    world.disk.put(f"{HOME}/.journal.json", b"{half")
    assert isinstance(world.sweep(), Swept)
    assert world.version() == "2"


def test_a_left_over_folder_is_not_an_installed_package() -> None:
    """G07: an empty folder, and one without a manifest, do not count as installed."""
    for files in ({}, {"skills/review/SKILL.md": b"old"}):
        world = world_with()
        world.disk.put_folder(f"{HOME}/demo")
        world.put(f"{HOME}/demo", files)
        assert world.load().packages == ()
        assert len(world.load().leftovers) == 1
        assert isinstance(world.remove(), PackageNotFound)
        assert isinstance(world.install("/src/1"), PackageInstalled)
        assert world.version() == "1"
        assert len(world.load().leftovers) == len(files)


def test_a_package_that_lost_files_is_damaged_and_never_loads_in_part() -> None:
    """G10: files missing from an installed version are noticed."""
    world = world_with("1")
    world.door().loader._files.remove(f"{HOME}/demo/skills/review/data.txt")
    (view,) = world.load().packages
    assert view.status == "damaged"
    assert view.problems[0] == "1 of 3 files are damaged; install it again"
    assert world.load().skills == ()
    assert isinstance(world.install("/src/1"), PackageInstalled)
    assert world.version() == "1"


def test_a_failed_update_leaves_the_old_version_recorded_and_is_tried_again() -> None:
    """G08: the version that is shown is that of the copy that is there."""
    world = world_with("1")
    world.disk.before = FailAt(2)
    world.install("/src/2")
    world.disk.before = None
    (view,) = world.load().packages
    assert (view.version, view.generation) == ("1", 1)
    reply = world.install("/src/2")
    assert isinstance(reply, PackageInstalled)
    assert reply.replaced == "1"


def test_unknown_leftovers_are_kept_and_shown() -> None:
    world = world_with("1")
    strays = ("notes.txt", ".stage/mine/x", ".trash/mine/x", ".kept/mine/x", "Bad Name/x")
    for stray in strays:
        world.disk.put(f"{HOME}/{stray}", b"x")
    world.disk.put_link(f"{HOME}/linked", "/src/2")
    world.disk.put(f"{HOME}/.stage/{'0' * 16}/half", b"x")
    swept = world.sweep()
    assert isinstance(swept, Swept)
    assert swept.deleted == (f".stage/{'0' * 16}",)
    shown = {each.path.removeprefix(f"{HOME}/") for each in swept.leftovers}
    top = {stray.rpartition("/")[0] or stray for stray in strays}
    assert shown == {*top, "linked"}
    assert {f"{HOME}/{stray}" for stray in strays} <= set(world.disk.paths())


@pytest.mark.witness("INSTALL-5")
def test_choices_about_a_package_outlive_an_update_and_wait_for_a_retained_copy() -> None:
    """X18: a prune after a sweep keeps what was chosen about a package that has a copy."""
    world = world_with("1")
    assert world.change(DisablePackage(name=DEMO)) == ChoiceSaved(name=DEMO)
    world.install("/src/2")
    assert not world.load().packages[0].enabled
    assert world.load().skills == ()
    aside = f"{HOME}/.aside/demo@{'0' * 16}"
    world.put(aside, {"x": b"x"})
    for folder in world.load().packages[0].kept:
        for path in world.names(folder.folder):
            world.door().loader._files.remove(f"{folder.folder}/{path}")
    for path in world.names(f"{HOME}/demo"):
        world.door().loader._files.remove(f"{HOME}/demo/{path}")
    for folder in ("skills/review", "skills", ""):
        world.door().loader._files.remove_folder(f"{HOME}/demo/{folder}".rstrip("/"))
    world.sweep()
    world.install("/src/3")
    assert not world.load().packages[0].enabled
    assert world.change(EnablePackage(name=DEMO)) == ChoiceSaved(name=DEMO)
    assert world.load().packages[0].enabled


# --- two at once ---------------------------------------------------------------------------


@pytest.mark.witness("INSTALL-5")
def test_while_another_process_has_the_claim_nothing_is_changed() -> None:
    """X16: an install and a sweep of two processes exclude each other."""
    world = world_with("1")
    other = Claims(memory_leaves(world.disk), "other")
    held = other.take(f"{ROOT}/.tenure/claims/plugins")
    assert isinstance(held, HeldClaim)
    before = world.disk.paths()
    door = world.door()
    effect = ChangePackages(job=world.job(), change=SweepPackages())
    waits = 0

    async def sleep(seconds: float) -> None:
        nonlocal waits
        waits += 1
        if waits > 3:
            held.release()

    door._leaves.clock.sleep = sleep  # type: ignore[method-assign]
    outcome = asyncio.run(door.change(effect, CONTEXT))
    assert waits == 4
    assert not isinstance(outcome, PackagesNotChanged)
    assert world.disk.paths() == before


def test_a_claim_that_is_never_let_go_is_reported_with_its_holder() -> None:
    world = world_with("1")
    other = Claims(memory_leaves(world.disk), "other")
    held = other.take(f"{ROOT}/.tenure/claims/plugins")
    assert isinstance(held, HeldClaim)
    door = world.door()

    async def sleep(seconds: float) -> None:
        world.disk.clock.advance(seconds)

    door._leaves.clock.sleep = sleep  # type: ignore[method-assign]
    effect = ChangePackages(job=world.job(), change=SweepPackages())
    outcome = asyncio.run(door.change(effect, CONTEXT))
    assert isinstance(outcome, PackagesNotChanged)
    assert isinstance(outcome.refusal, InstallBusy)


# --- digests and signatures ----------------------------------------------------------------


def test_a_wrong_digest_is_refused_and_the_right_one_taken() -> None:
    world = PackagesWorld()
    data = zipped(tree())
    world.disk.put("/src/a.zip", data)
    sri = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    for digest in ("sha256:" + "0" * 64, "sha512-AAAA", "md5:00", "nonsense"):
        assert isinstance(world.install("/src/a.zip", digest=digest), PackageRefused)
    assert not world.names(HOME)
    for digest in (digest_of(data), digest_of(data).upper().replace("SHA", "sha"), sri):
        assert isinstance(world.install("/src/a.zip", digest=digest), PackageInstalled)
    assert world.load().packages[0].digest == digest_of(data)


def test_a_signature_of_another_key_or_of_other_bytes_is_refused() -> None:
    world = PackagesWorld()
    data = zipped(tree())
    world.disk.put("/src/a.zip", data)
    private = Ed25519PrivateKey.generate()
    key = base64.b64encode(private.public_key().public_bytes_raw()).decode()
    good = base64.b64encode(private.sign(data)).decode()
    other = base64.b64encode(private.sign(b"other")).decode()
    for signature in (other, "AAAA", "no base64!"):
        signed = Ed25519(key=key, signature=signature)
        assert isinstance(world.install("/src/a.zip", signature=signed), PackageRefused)
    signed = Ed25519(key=key, signature=good)
    assert isinstance(world.install("/src/a.zip", signature=signed), PackageInstalled)


# --- servers -------------------------------------------------------------------------------


def test_servers_of_a_package_are_off_until_they_are_allowed_and_keep_their_ids() -> None:
    """S128, S133: recorded, disabled, the same id after an update."""
    world = PackagesWorld()
    mcp = (
        f'{{"$schema":"{MCP_SCHEMA}","mcpServers":'
        '{"notes":{"type":"streamable-http","url":"https://example.org/mcp"}}}'
    ).encode()
    for version in ("1", "2"):
        world.put(f"/src/{version}", {**tree(version=version), "mcp.json": mcp})
    world.install("/src/1")
    (server,) = world.load().servers
    assert not server.allowed
    assert world.change(AllowServer(server_id=server.id)) == ChoiceSaved(name=DEMO)
    world.install("/src/2")
    (again,) = world.load().servers
    assert (again.id, again.allowed) == (server.id, True)
    assert world.change(ForbidServer(server_id=server.id)) == ChoiceSaved(name=DEMO)
    assert isinstance(world.change(ForbidServer(server_id=server.id)), PackageNotFound)
    assert isinstance(world.change(AllowServer(server_id="nobody")), PackageNotFound)
    world.change(AllowServer(server_id=server.id))
    world.change(DisablePackage(name=DEMO))
    assert world.load().servers == ()
    world.remove()
    world.install("/src/1")
    assert [each.allowed for each in world.load().servers] == [False]


def test_damaged_choices_allow_nothing_and_are_set_aside_by_the_next_one() -> None:
    world = world_with("1")
    world.disk.put(f"{HOME}/.choices.json", b"half")
    assert [each.path for each in world.load().leftovers] == [f"{HOME}/.choices.json"]
    assert world.change(EnablePackage(name=DEMO)) == ChoiceSaved(name=DEMO)
    assert {each for each in world.names(HOME) if each.startswith(".aside/choices@")}


def test_a_package_that_was_placed_by_hand_is_unverified_and_never_overwritten_unasked() -> None:
    world = world_with()
    world.put(f"{HOME}/demo", {**tree(version="mine")})
    assert [each.status for each in world.load().packages] == ["unverified"]
    world.install("/src/1")
    assert world.version() == "1"
    replaced = [each for each in world.load().leftovers if "by hand" in each.reason]
    assert world.disk.content(f"{replaced[0].path}/plugin.json") == manifest("demo", "mine")
