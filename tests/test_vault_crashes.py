"""A process that dies at any call to the disk, and the power with it: nothing promised is lost."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from vault_world import JOURNAL, ROOT, Bench, new_disk, text_of

from tenure.messages.base import Command, Event
from tenure.messages.handoff import (
    AcknowledgeBrief,
    BriefAcknowledged,
    BuildBrief,
    CheckpointSaved,
    HandoffReceipted,
    HandoffSaved,
    SaveCheckpoint,
    SaveHandoff,
)
from tenure.runtime.testing.disk import MemoryDisk
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

FATES: tuple[Callable[[int], Fate], ...] = (
    lambda _: LoseAll(),
    lambda _: KeepAll(),
    lambda seed: SeededFate(random.Random(seed)),
    lambda seed: SeededFate(random.Random(1_000 + seed)),
)
FAULTS: tuple[Fault, ...] = (KillBefore(), KillDuring(bytes_written=60), KillAfter())
CALLS_MAX = 200


def kill_at(number: int, fault: Fault, pid: int) -> Callable[[DiskCall], Fault | None]:
    """The process dies at its call, or its append, of this number, from 0."""
    made = [0]

    def before(call: DiskCall) -> Fault | None:
        if call.process.pid != pid or (isinstance(fault, KillDuring) and call.name != "append"):
            return None
        made[0] += 1
        return fault if made[0] - 1 == number else None

    return before


class Crashed:
    """One run of one command that may have been cut, and the vault that a later process finds."""

    def __init__(self, disk: MemoryDisk, command: Command, number: int, fault: Fault) -> None:
        dying = Bench(disk)
        self.receipts: list[Event] = []
        dying.on_event = self.receipts.append
        process = dying.leaves.processes.me()
        disk.before = kill_at(number, fault, process.pid)
        self.reply = None
        with suppress(ProcessKilled):
            self.reply = dying.ask(command)
        self.died = self.reply is None
        disk.before = None
        if self.died:
            disk.processes.kill(process)


def each_crash(
    prepare: Callable[[], MemoryDisk],
    command: Callable[[MemoryDisk], Command],
    fault: Fault,
    fate: Callable[[int], Fate],
    check: Callable[[MemoryDisk, Crashed], None],
) -> int:
    """Cut the command at each of its calls, half of the time with the power; the deaths."""
    deaths = 0
    for number in range(CALLS_MAX):
        disk = prepare()
        crashed = Crashed(disk, command(disk), number, fault)
        deaths += crashed.died
        if number % 2 or not crashed.died:
            disk.crash(fate(number))
        check(disk, crashed)
        if not crashed.died:
            return deaths
    return deaths


def old_vault() -> MemoryDisk:
    """A vault with a handoff and a session that died, told in no brief yet."""
    disk = new_disk()
    bench = Bench(disk)
    bench.sleep("old", idempotency_key="old")
    bench.checkpoint("dying", session="d")
    return disk


crashes = pytest.mark.parametrize(
    ("fault", "fate"),
    [(fault, fate) for fault in FAULTS for fate in FATES],
    ids=[f"{type(a).__name__}-{b}" for a in FAULTS for b in ("lose", "keep", "seed", "other")],
)


@crashes
@pytest.mark.witness("HANDOFF-1")
def test_handoff_that_was_receipted_is_there_and_a_retry_gives_it_again(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    wish = SaveHandoff(text=text_of("new", next_steps=("n",)), idempotency_key="new")

    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        after = Bench(disk)
        if crashed.receipts:
            (receipt,) = crashed.receipts
            assert isinstance(receipt, HandoffReceipted)
            assert after.show(receipt.id).text == wish.text
        retried = after.ask(wish)
        assert isinstance(retried, HandoffSaved)
        if crashed.receipts:
            assert (retried.seq, retried.id) == (receipt.seq, receipt.id)
        rows = after.list().handoffs
        assert [row.summary for row in rows] == ["new", "old"]
        after.wake()
        assert after.verify().sound, after.verify()
        assert len(after.notes()) == 2
        assert [each.checkpoint.working_on for each in after.recover().notices if each.checkpoint]

    assert each_crash(old_vault, lambda disk: wish, fault, fate, check) > 0


@crashes
def test_first_handoff_of_a_vault_is_there_when_it_was_receipted(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    wish = SaveHandoff(text=text_of("new"))

    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        after = Bench(disk)
        after.wake()
        seen = [row.summary for row in after.list().handoffs]
        assert seen == ["new"] if crashed.receipts else seen in (["new"], [])
        assert after.verify().sound

    assert each_crash(new_disk, lambda disk: wish, fault, fate, check) > 0


@crashes
def test_checkpoint_that_was_answered_is_there_and_none_is_lost(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    wish = SaveCheckpoint(working_on="new", session="d")

    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        found = Bench(disk).recover()
        assert found.died
        assert found.checkpoint is not None
        assert found.skipped == ()
        if isinstance(crashed.reply, CheckpointSaved):
            assert found.checkpoint.id == crashed.reply.id
        assert found.checkpoint.working_on in ("new", "dying")
        assert Bench(disk).checkpoint("later").seq >= 2

    assert each_crash(old_vault, lambda disk: wish, fault, fate, check) > 0


@crashes
@pytest.mark.witness("HANDOFF-2")
def test_wake_that_dies_clears_nothing(fault: Fault, fate: Callable[[int], Fate]) -> None:
    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        again = Bench(disk).wake()
        assert again.died
        assert again.brief_id
        assert [item.text for item in again.items if item.kind == "working_on"] == ["old"]
        if crashed.reply is not None:
            assert crashed.reply.brief_id == again.brief_id  # type: ignore[attr-defined]

    assert each_crash(old_vault, lambda disk: BuildBrief(), fault, fate, check) > 0


@crashes
@pytest.mark.witness("HANDOFF-2")
def test_acknowledgement_that_dies_has_cleared_all_of_its_notices_or_none(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    def woken(disk: MemoryDisk) -> Command:
        return AcknowledgeBrief(brief_id=Bench(disk).wake().brief_id)

    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        bench = Bench(disk)
        if isinstance(crashed.reply, BriefAcknowledged):
            assert not bench.wake().died
            return
        brief = bench.wake()
        if brief.died:
            bench.ack(brief.brief_id)
        assert not Bench(disk).wake().died

    assert each_crash(old_vault, woken, fault, fate, check) > 0


@crashes
def test_revision_of_a_file_is_never_lost_and_counted_once(
    fault: Fault, fate: Callable[[int], Fate]
) -> None:
    def changed() -> MemoryDisk:
        disk = old_vault()
        bench = Bench(disk)
        path = f"{ROOT}/{bench.show('1').path}"
        disk.put(path, disk.content(path).replace(b'"old"', b'"by hand"'))
        return disk

    def check(disk: MemoryDisk, crashed: Crashed) -> None:
        bench = Bench(disk)
        bench.wake()
        view = bench.show("1")
        assert (view.text.working_on, len(view.revisions)) == (("by hand",), 1)
        assert bench.verify().sound

    assert each_crash(changed, lambda disk: BuildBrief(), fault, fate, check) > 0


@pytest.mark.witness("HANDOFF-1")
def test_line_is_synced_before_the_file_is_made_and_both_before_the_answer() -> None:
    bench = Bench()
    bench.sleep("old")
    bench.disk.calls.clear()
    said: list[int] = []
    bench.on_event = lambda event: said.append(len(bench.disk.calls))
    path = bench.sleep("new").path
    calls = [(call.name, call.target or call.path) for call in bench.disk.calls]
    folder = f"{ROOT}/handoffs"
    written = calls.index(("append", JOURNAL))
    synced = calls.index(("datasync", JOURNAL))
    moved = calls.index(("rename", path))
    named = calls.index(("sync_folder", folder))
    assert written < synced < moved < named < said[0]
    stage = next(
        at
        for at, (name, target) in enumerate(calls)
        if name == "sync" and target.startswith(f"{folder}/.tenure-stage-")
    )
    assert synced < stage < moved
    locked = next(at for at, call in enumerate(calls) if call[0] == "lock")
    freed = next(at for at, call in enumerate(calls) if call[0] == "unlock")
    assert locked < written
    assert named < freed
