"""Claims: who may write a file that two processes could write, and what the next one finds."""

import errno
from collections.abc import Callable

import pytest

from tenure.messages.tokens import Holder
from tenure.runtime.doors.claims import (
    ClaimBusy,
    ClaimLost,
    ClaimRecord,
    Claims,
    FileMark,
    HeldClaim,
)
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import (
    READ_ONLY,
    Fail,
    FaultRule,
    FaultRules,
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


# --- taking ---------------------------------------------------------------------------------


def test_the_first_take_finds_no_record_and_the_next_finds_what_was_written() -> None:
    disk = new_disk()
    first = new_claims(disk, "first")
    claim = held(first)
    assert (claim.path, claim.record, claim.damaged) == (PATH, None, False)
    claim.write(record(first, 7))
    claim.release()

    later = held(new_claims(disk, "later"))
    assert later.record == record(first, 7)
    assert not later.damaged


@pytest.mark.witness("CLAIM-1")
def test_a_second_process_is_refused_and_shown_the_holder() -> None:
    disk = new_disk()
    first = new_claims(disk, "first")
    held(first).write(record(first, 1))
    assert new_claims(disk).take(PATH) == ClaimBusy(holder=first.me())


@pytest.mark.witness("CLAIM-1")
def test_a_second_seat_of_one_process_is_refused_as_another_process_is() -> None:
    claims = new_claims(new_disk())
    claim = held(claims)
    claim.write(record(claims, 1))
    assert claims.take(PATH) == ClaimBusy(holder=claims.me())
    assert isinstance(claims.take("/work/other"), HeldClaim)
    claim.release()
    assert isinstance(claims.take(PATH), HeldClaim)


@pytest.mark.witness("CLAIM-1")
def test_two_paths_to_one_file_are_one_claim() -> None:
    disk = new_disk()
    disk.put("/work/real/a.jsonl", b"")
    disk.put_link("/work/folder", "real")
    disk.put_link("/work/b.jsonl", "folder/a.jsonl")
    claims = new_claims(disk)
    assert held(claims, "/work/b.jsonl").path == "/work/real/a.jsonl"
    assert isinstance(claims.take("/work/real/a.jsonl"), ClaimBusy)


def test_a_holder_that_has_not_written_yet_is_not_mistaken_for_the_one_before() -> None:
    disk = new_disk()
    first, second, third = (new_claims(disk, name) for name in ("first", "second", "third"))
    claim = held(first)
    claim.write(record(first, 1))
    disk.processes.kill(first.me().process)
    held(second)
    assert third.take(PATH) == ClaimBusy(holder=None)


def test_a_holder_that_parked_is_not_shown_as_the_holder() -> None:
    disk = new_disk()
    first, second, third = (new_claims(disk, name) for name in ("first", "second", "third"))
    claim = held(first)
    mark = FileMark(device=1, inode=9, size=100)
    claim.write(ClaimRecord(epoch=3, holder=first.me(), parked=mark))
    claim.release()
    opened = held(second)
    assert opened.record is not None
    assert opened.record.parked == mark
    assert third.take(PATH) == ClaimBusy(holder=None)


@pytest.mark.witness("CLAIM-2")
def test_a_killed_holder_leaves_the_lock_free_and_a_stopped_one_keeps_it() -> None:
    disk = new_disk()
    first, second = new_claims(disk, "first"), new_claims(disk, "second")
    held(first).write(record(first, 4))
    disk.processes.stop(first.me().process)
    disk.clock.advance(1_000_000)
    assert second.take(PATH) == ClaimBusy(holder=disk_holder(disk))
    disk.processes.kill(first.me().process)
    claim = held(second)
    assert claim.record is not None
    assert claim.record.epoch == 4


def disk_holder(disk: MemoryDisk) -> Holder:
    found = new_claims(disk).peek(PATH)
    assert found is not None
    return found.holder


def test_a_damaged_record_is_reported_and_does_not_stop_the_take() -> None:
    for data in (b"", b"{", b'{"epoch":1}', b"\xff\xfe", b'{"x":' + b"[" * 5_000, b"x" * 70_000):
        disk = new_disk()
        disk.put(f"{PATH}.claim", data)
        claims = new_claims(disk)
        claim = held(claims)
        assert (claim.record, claim.damaged) == (None, True), data[:20]
        claim.write(record(claims, 2))
        assert not claim.damaged
        assert claims.peek(PATH) == claim.record


def test_a_record_of_a_later_version_with_more_fields_is_read() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    claim.write(record(claims, 2))
    claim.release()
    data = disk.content(f"{PATH}.claim")
    disk.put(f"{PATH}.claim", data.replace(b'{"epoch"', b'{"new":[1],"epoch"', 1))
    assert held(claims).record == record(claims, 2)


# --- failing closed ---------------------------------------------------------------------------


@pytest.mark.witness("CLAIM-1")
def test_a_claim_on_a_read_only_file_system_fails_closed() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    claim.write(record(claims, 1))
    claim.release()
    disk.before = FaultRules(READ_ONLY)
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        claims.take(PATH)
    assert raised.value.errno == errno.EROFS
    assert claims.peek(PATH) == record(claims, 1)


def test_a_record_that_cannot_be_read_fails_closed_and_frees_the_lock() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    held(claims).release()
    disk.put(f"{PATH}.claim", b"{}")
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EIO), calls=("read_at",), path_ends=".claim")
    )
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is compared
        claims.take(PATH)
    assert raised.value.errno == errno.EIO
    assert isinstance(claims.take(PATH), HeldClaim)


def test_a_released_claim_cannot_write() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    claim = held(claims)
    claim.write(record(claims, 1))
    claim.release()
    claim.release()
    assert not claim.in_place()
    with pytest.raises(ClaimLost):
        claim.write(record(claims, 2))
    assert claims.peek(PATH) == record(claims, 1)


@pytest.mark.witness("CLAIM-1")
def test_a_claim_whose_lock_file_was_removed_cannot_write() -> None:
    disk = new_disk()
    first, second = new_claims(disk, "first"), new_claims(disk, "second")
    claim = held(first)
    claim.write(record(first, 1))
    memory_leaves(disk).files.remove(f"{PATH}.lock")
    assert not claim.in_place()
    taken = held(second)
    taken.write(record(second, 2))
    with pytest.raises(ClaimLost):
        claim.write(record(first, 3))
    assert second.peek(PATH) == record(second, 2)


def test_an_epoch_never_goes_back() -> None:
    claims = new_claims(new_disk())
    claim = held(claims)
    claim.write(record(claims, 5))
    claim.write(record(claims, 5))
    with pytest.raises(ValueError, match="epoch 4 after 5"):
        claim.write(record(claims, 4))
    assert claims.peek(PATH) == record(claims, 5)


# --- peeking ----------------------------------------------------------------------------------


def test_peek_only_reads() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    assert claims.peek(PATH) is None
    assert disk.paths() == ()
    claim = held(claims)
    claim.write(record(claims, 1))
    reader = new_claims(disk)
    calls = calls_of(disk, lambda: reader.peek(PATH))
    assert {name for name, _ in calls} == {"real_path", "open", "read_at", "close"}
    assert reader.peek(PATH) == record(claims, 1)
    disk.put(f"{PATH}.claim", b"damaged")
    assert reader.peek(PATH) is None
    assert disk.content(f"{PATH}.claim") == b"damaged"


@pytest.mark.witness("CLAIM-2")
def test_the_lock_file_is_never_removed() -> None:
    disk = new_disk()
    claims = new_claims(disk)
    for epoch in range(3):
        claim = held(claims)
        claim.write(record(claims, epoch))
        claim.release()
    assert f"{PATH}.lock" in disk.paths()
    assert not [call for call in disk.calls if call.name == "remove"]
