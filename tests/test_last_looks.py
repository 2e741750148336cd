"""Checks that are made once more at the last moment, each on its own: what they keep away."""

import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest
from packages_world import CONTEXT, DEMO, HOME, ROOT, PackagesWorld, at_once
from seat_world import Seated, seated
from test_undo_host import FREE, does, has, phases, put, undo

from tenure.actors.approval import approval_step
from tenure.actors.approval_state import Gate
from tenure.messages.approval import ExpiryReached
from tenure.messages.base import Refusal
from tenure.messages.checkpoints import (
    ChangeUndone,
    FileImage,
    FileRestore,
    FilesNotKept,
    KeepFiles,
    NothingToUndo,
)
from tenure.messages.install import SweepPackages
from tenure.messages.install_effects import JobId
from tenure.messages.tokens import CallId, RequestId, TurnId
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.doors.checkpoints.planning import NoWayBack
from tenure.runtime.doors.checkpoints.restoring import Restorer
from tenure.runtime.doors.checkpoints.stack import undo_stack
from tenure.runtime.doors.packages.changing import Changing
from tenure.runtime.doors.packages.copies import Sealed, look_at
from tenure.runtime.doors.packages.download import bounded_body
from tenure.runtime.doors.packages.journal import Removing, write_journal
from tenure.runtime.doors.packages.layout import Layout
from tenure.runtime.doors.packages.placing import undo as undo_placing
from tenure.runtime.doors.packages.tree import Limits, Rejected, TreeBuilder
from tenure.runtime.doors.tools.door import Tools
from tenure.runtime.doors.vault.frontmatter import split_front
from tenure.runtime.step import Taken
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import DiskCall, Fail, Fault, FaultRule, FaultRules
from tenure.runtime.testing.leaves import memory_leaves

NO_SPACE = Fail(errno=errno.ENOSPC)
WRITE = does("write", path="a.md", content="new")


def changed(s: Seated) -> bytes | None:
    return has(s, "a.md")


def full(nth: int = 1, **where: str) -> FaultRules:
    return FaultRules(FaultRule(fault=NO_SPACE, calls=("append",), nth=nth, **where))


def no_checkpoints(call: DiskCall) -> Fault | None:
    return NO_SPACE if call.name == "append" and "/checkpoints/" in call.path else None


# --- approvals and undo ----------------------------------------------------------------------


@pytest.mark.witness("APPROVE-4")
def test_expiry_of_a_request_that_was_answered_changes_nothing() -> None:
    gone = ExpiryReached(request_id=RequestId("answered"))
    step = approval_step(Gate(), gone, Taken(asker=None, now_ms=1, fresh="0" * 16))
    assert (step.state, step.replies, step.events) == (Gate(), (), ())


@pytest.mark.witness("APPROVE-7")
def test_file_is_not_changed_where_what_it_holds_cannot_be_kept() -> None:
    with seated([WRITE], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.world.disk.before = no_checkpoints
        s.run()
        assert changed(s) == b"old"
        assert phases(s) == []


@pytest.mark.witness("APPROVE-7")
@pytest.mark.parametrize("nth", range(2, 8))
def test_file_is_not_changed_where_it_cannot_be_written_down_that_it_will_be(nth: int) -> None:
    """Behind the prompt: the answer, the audit, the intent, the results."""
    with seated("hello", [WRITE], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run("so that the file is there")
        s.world.disk.before = full(nth, path_ends=".jsonl")
        s.run()
        s.settle()
        assert changed(s) == b"old" or "intent" in phases(s)


@pytest.mark.witness("APPROVE-7")
def test_undo_that_cannot_be_written_down_changes_no_file() -> None:
    with seated([WRITE], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        s.world.disk.before = full(path_ends=".jsonl")
        assert isinstance(undo(s), Refusal)
        assert changed(s) == b"new"
        s.world.disk.before = None
        assert isinstance(undo(s), ChangeUndone)
        assert changed(s) == b"old"


@pytest.mark.witness("APPROVE-7")
def test_what_was_undone_is_not_undone_again() -> None:
    with seated([WRITE], "done", settings=FREE) as s:
        put(s, "a.md", b"old")
        s.run()
        assert isinstance(undo(s), ChangeUndone)
        assert undo_stack(s.lines(), s.seat.token.session_id) == ()
        assert isinstance(undo(s), NothingToUndo)


def the_tools(disk: MemoryDisk) -> Tools:
    disk.put_folder(ROOT)
    disk.put(f"{ROOT}/a.md", b"a")
    disk.put(f"{ROOT}/b.md", b"b")
    return Tools(memory_leaves(disk), ROOT)


@pytest.mark.witness("APPROVE-4")
def test_files_that_lie_elsewhere_than_when_it_was_decided_are_not_kept() -> None:
    keep = KeepFiles(
        request_id=RequestId("r"),
        tool="write",
        arguments={"path": "a.md", "content": "x"},
        paths=("b.md",),
    )
    kept = at_once(the_tools(MemoryDisk()).keeping.keep(keep, CONTEXT))
    assert isinstance(kept, FilesNotKept)
    assert "elsewhere" in kept.reason


@pytest.mark.witness("APPROVE-4")
def test_call_whose_links_lead_elsewhere_than_when_it_was_allowed_does_not_run() -> None:
    disk = MemoryDisk()
    run = RunTool(
        turn_id=TurnId("s/1"),
        call_id=CallId("c"),
        tool="write",
        arguments={"path": "a.md", "content": "x"},
        paths=("b.md",),
    )
    done = at_once(the_tools(disk).run(run, CONTEXT))
    assert isinstance(done, ToolCallDone)
    assert done.is_error
    assert disk.content(f"{ROOT}/a.md") == b"a"


@pytest.mark.witness("APPROVE-7")
def test_undo_leaves_a_file_alone_that_changed_after_it_was_planned() -> None:
    disk = MemoryDisk()
    tools = the_tools(disk)
    leaves = memory_leaves(disk)
    before = FileImage(path="a.md", kind="absent", digest="absent")
    planned = FileImage(path="a.md", kind="file", digest="of other bytes")
    step = FileRestore(does="remove", path="a.md", before=before, now=planned)
    with pytest.raises(NoWayBack, match="changed while"):
        Restorer(leaves.files, leaves.entropy, ROOT, tools.store).restore((step,))
    assert disk.content(f"{ROOT}/a.md") == b"a"


# --- packages --------------------------------------------------------------------------------


@pytest.mark.witness("INSTALL-7")
@pytest.mark.parametrize(
    "limits", [Limits(file_bytes=3), Limits(total_bytes=5)], ids=["one file", "all files"]
)
def test_bytes_over_a_limit_are_refused_when_they_are_taken(limits: Limits) -> None:
    builder = TreeBuilder(limits)
    builder.fill("a", b"123")
    with pytest.raises(Rejected, match="more than"):
        builder.fill("b", b"1234")


@pytest.mark.witness("INSTALL-7")
def test_download_without_a_length_is_stopped_at_the_limit() -> None:
    taken = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(100):
            taken += 10
            yield b"0123456789"

    def progress(received: int, expected: int) -> None:
        assert received <= 25

    with pytest.raises(Rejected, match="more than"):
        at_once(bounded_body("https://x.example", chunks(), 0, Limits(download_bytes=25), progress))
    assert taken == 30


class Lost:
    """A claim that is held no more."""

    def in_place(self) -> bool:
        return False


@pytest.mark.witness("CLAIM-1")
def test_packages_are_not_changed_where_the_claim_was_lost_on_the_way() -> None:
    world = PackagesWorld()
    world.put_versions("1")
    world.install("/src/1")
    before = world.disk.paths()
    door = world.door()
    job = Changing(door._leaves, Layout(ROOT), door.loader, JobId("0" * 16), None)
    lost: Any = Lost()
    with pytest.raises(OSError, match="claim was lost"):
        job.change(SweepPackages(), lost)
    assert world.disk.paths() == before


@pytest.mark.witness("INSTALL-3")
def test_target_that_can_be_read_is_not_replaced_by_its_backup() -> None:
    world = PackagesWorld()
    world.put_versions("1", "2")
    world.install("/src/1")
    world.install("/src/2")
    (kept,) = world.load().packages[0].kept
    files = world.door()._leaves.files
    journal = Removing(job="0" * 16, name=DEMO, backup=kept.folder)
    write_journal(files, Layout(ROOT), journal)
    undo_placing(files, Layout(ROOT), journal)
    target = look_at(files, f"{HOME}/{DEMO}")
    assert isinstance(target, Sealed)
    assert b"data of 2" in world.disk.content(f"{HOME}/{DEMO}/skills/review/data.txt")


# --- vault -----------------------------------------------------------------------------------


@pytest.mark.witness("HANDOFF-8")
def test_rule_in_the_middle_of_a_text_begins_no_front_matter() -> None:
    text = "Title\nkind: secret\n---\nbody\n"
    assert split_front(text) == (None, text)
