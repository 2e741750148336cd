"""Claims on a disk that fails, with processes that die at every call: what survives."""

import errno
import random
from collections.abc import Callable

import pytest

from tenure.runtime.doors.claims import (
    ClaimRecord,
    Claims,
    HeldClaim,
    make_folders_durably,
)
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import (
    DISK_FULL,
    DiskCall,
    Fail,
    Fate,
    Fault,
    FaultRule,
    FaultRules,
    KeepAll,
    KillAfter,
    KillBefore,
    KillDuring,
    LoseAll,
    ProcessKilled,
    SeededFate,
    WriteShort,
)
from tenure.runtime.testing.leaves import memory_leaves

PATH = "/work/.tenure/sessions/a.jsonl"


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.put_folder("/work")
    return disk


def new_claims(disk: MemoryDisk, host_id: str = "host") -> Claims:
    """The claims door of a new process."""
    return Claims(memory_leaves(disk), host_id)


def held(claims: Claims, path: str = PATH) -> HeldClaim:
    taken = claims.take(path)
    assert isinstance(taken, HeldClaim)
    return taken


def record(claims: Claims, epoch: int) -> ClaimRecord:
    return ClaimRecord(epoch=epoch, holder=claims.me())


def calls_of(disk: MemoryDisk, act: Callable[[], object]) -> list[tuple[str, str]]:
    """What an act called on the disk: names and the last part of the path."""
    disk.calls.clear()
    act()
    return [(call.name, call.path.rpartition("/")[2]) for call in disk.calls]


# --- writing durably ----------------------------------------------------------------------------


@pytest.mark.witness("CLAIM-1")
def test_a_record_is_written_synced_renamed_and_its_name_synced_in_this_order() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    calls = calls_of(disk, lambda: claim.write(record(claims, 1)))
    assert calls == [
        ("stat", "a.jsonl.lock"),
        ("create", "a.jsonl.claim.tmp"),
        ("append", "a.jsonl.claim.tmp"),
        ("sync", "a.jsonl.claim.tmp"),
        ("close", "a.jsonl.claim.tmp"),
        ("rename", "a.jsonl.claim.tmp"),
        ("sync_folder", "sessions"),
    ]


def test_a_short_write_of_a_record_goes_on_where_it_stopped() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    disk.before = FaultRules(
        FaultRule(fault=WriteShort(bytes_written=5), calls=("append",)),
        FaultRule(fault=WriteShort(bytes_written=1), calls=("append",), nth=2),
    )
    claim.write(record(claims, 1))
    assert claims.peek(PATH) == record(claims, 1)


def test_a_full_disk_leaves_the_old_record_and_the_next_write_works() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    claim.write(record(claims, 1))
    disk.before = FaultRules(
        FaultRule(fault=WriteShort(bytes_written=5), calls=("append",)),
        FaultRule(fault=DISK_FULL.fault, calls=("append",), nth=2),
    )
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        claim.write(record(claims, 2))
    assert raised.value.errno == errno.ENOSPC
    assert claim.record == claims.peek(PATH) == record(claims, 1)
    claim.write(record(claims, 3))
    assert claims.peek(PATH) == record(claims, 3)
    assert disk.paths() == (f"{PATH}.claim", f"{PATH}.lock")


def test_take_makes_missing_folders_and_their_names_durable() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    calls = calls_of(disk, lambda: held(claims))
    made = [call for call in calls if call[0] in ("make_folder", "sync_folder", "lock")]
    assert made == [
        ("sync_folder", ""),
        ("make_folder", ".tenure"),
        ("sync_folder", "work"),
        ("make_folder", "sessions"),
        ("sync_folder", ".tenure"),
        ("lock", "a.jsonl.lock"),
        ("sync_folder", ".tenure"),
    ]


def test_a_folder_that_another_made_meanwhile_is_taken_as_it_is() -> None:
    disk = new_disk()
    raced = [False]

    def another(call: DiskCall) -> None:
        if call.name == "make_folder" and not raced[0]:
            raced[0] = True
            disk.put_folder(call.path)

    disk.on_call = another
    assert isinstance(new_claims(disk).take(PATH), HeldClaim)
    assert raced == [True]


def test_a_file_where_a_folder_should_be_is_refused() -> None:
    disk = new_disk()
    disk.put("/work/.tenure", b"a file")
    with pytest.raises(NotADirectoryError):
        new_claims(disk).take(PATH)
    assert disk.content("/work/.tenure") == b"a file"


def test_a_parent_that_may_not_be_read_is_not_synced_and_nothing_fails() -> None:
    disk = new_disk()
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EACCES), calls=("sync_folder",), hits="once")
    )
    make_folders_durably(memory_leaves(disk).files, "/work/a")
    assert disk.folder("/work/a").names == {}


# --- dying at every call --------------------------------------------------------------------------

FATES: tuple[Callable[[int], Fate], ...] = (
    lambda _: LoseAll(),
    lambda _: KeepAll(),
    lambda seed: SeededFate(random.Random(seed)),
    lambda seed: SeededFate(random.Random(1000 + seed)),
)


def kill_at(number: int, fault: Fault, pid: int) -> Callable[[DiskCall], Fault | None]:
    """The process dies at its call of this number, from 0."""
    made = [0]

    def before(call: DiskCall) -> Fault | None:
        if call.process.pid != pid:
            return None
        made[0] += 1
        if isinstance(fault, KillDuring) and call.name != "append":
            return None
        return fault if made[0] - 1 == number else None

    return before


def take_and_write(claims: Claims, epoch: int) -> None:
    held(claims).write(record(claims, epoch))


@pytest.mark.parametrize(
    "fault", [KillBefore(), KillDuring(bytes_written=10), KillAfter()], ids=str
)
@pytest.mark.parametrize("fate", FATES, ids=["lose", "keep", "seed", "other-seed"])
@pytest.mark.witness("CLAIM-1")
def test_a_record_is_the_old_or_the_new_one_wherever_the_process_and_the_power_die(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    deaths = 0
    for number in range(40):
        disk = new_disk()
        before = new_claims(disk, "before")
        claim = held(before)
        claim.write(record(before, 1))
        claim.release()
        dying = new_claims(disk, "dying")
        disk.before = kill_at(number, fault, dying.me().process.pid)
        try:
            take_and_write(dying, 2)
            written = True
        except ProcessKilled:
            written = False
            deaths += 1
        if number % 2:
            disk.crash(fate(number))
        else:
            disk.processes.kill(dying.me().process)
        after = held(new_claims(disk, "after"))
        assert not after.damaged
        assert after.record is not None
        assert after.record.epoch in ({2} if written else {1, 2})
        after.write(ClaimRecord(epoch=3, holder=after.record.holder))
    assert deaths > 0


def test_a_claim_survives_a_power_loss_although_its_folders_were_made_by_one_who_died() -> None:
    deaths = 0
    for number in range(30):
        disk = new_disk()
        dying = new_claims(disk)
        disk.before = kill_at(number, KillAfter(), dying.me().process.pid)
        try:
            take_and_write(dying, 1)
        except ProcessKilled:
            deaths += 1
        disk.processes.kill(dying.me().process)
        later = new_claims(disk)
        take_and_write(later, 2)
        disk.crash(LoseAll())
        found = new_claims(disk).peek(PATH)
        assert found is not None, f"lost after a death at call {number}"
        assert found.epoch == 2
    assert deaths > 10
