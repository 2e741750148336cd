"""A vault on a simulated disk, and the HandoffActor of one process on it."""

from collections.abc import Callable
from typing import Any

from tenure.messages.base import Command, Event, Reply
from tenure.messages.handoff import (
    AcknowledgeBrief,
    Brief,
    BriefAcknowledged,
    BuildBrief,
    CheckpointSaved,
    GetHandoff,
    GetHandoffCheck,
    GetHandoffs,
    GetRecovery,
    HandoffCheck,
    HandoffList,
    HandoffSaved,
    HandoffText,
    HandoffView,
    Recovery,
    SaveCheckpoint,
    SaveHandoff,
)
from tenure.runtime.doors.blocking import BlockingWorkers
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.vault.journal import Journal, parse_journal
from tenure.runtime.system_alone import handoff_alone
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves

ROOT = "/work"
JOURNAL = f"{ROOT}/.tenure/handoffs.jsonl"


def new_disk() -> MemoryDisk:
    """A disk with an empty vault."""
    disk = MemoryDisk()
    disk.put_folder(ROOT)
    return disk


def text_of(*working_on: str, **lists: tuple[str, ...]) -> HandoffText:
    return HandoffText(working_on=working_on or ("a thing",), **lists)


class Bench:
    """One process that leaves handoffs and wakes."""

    def __init__(self, disk: MemoryDisk | None = None, leaves: Leaves | None = None) -> None:
        self.disk = disk if disk is not None else new_disk()
        own = memory_leaves(self.disk, workers=BlockingWorkers())
        self.leaves = leaves if leaves is not None else own
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda event: None
        self._alone = handoff_alone(self.leaves, ROOT, self._tell)

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def ask(self, command: Command) -> Reply:
        return self._alone.ask(command)

    def sleep(self, *working_on: str, **fields: Any) -> HandoffSaved:
        """Leave a handoff, which must succeed."""
        names = set(HandoffText.__struct_fields__)
        lists = {name: fields.pop(name) for name in list(fields) if name in names}
        reply = self.ask(SaveHandoff(text=text_of(*working_on, **lists), **fields))
        assert isinstance(reply, HandoffSaved), reply
        return reply

    def checkpoint(self, working_on: str = "w", **fields: Any) -> CheckpointSaved:
        reply = self.ask(SaveCheckpoint(working_on=working_on, **fields))
        assert isinstance(reply, CheckpointSaved), reply
        return reply

    def wake(self, **fields: Any) -> Brief:
        reply = self.ask(BuildBrief(**fields))
        assert isinstance(reply, Brief), reply
        return reply

    def ack(self, brief_id: str) -> BriefAcknowledged:
        reply = self.ask(AcknowledgeBrief(brief_id=brief_id))
        assert isinstance(reply, BriefAcknowledged), reply
        return reply

    def recover(self) -> Recovery:
        reply = self.ask(GetRecovery())
        assert isinstance(reply, Recovery), reply
        return reply

    def list(self) -> HandoffList:
        reply = self.ask(GetHandoffs())
        assert isinstance(reply, HandoffList), reply
        return reply

    def show(self, name: str) -> HandoffView:
        reply = self.ask(GetHandoff(name=name))
        assert isinstance(reply, HandoffView), reply
        return reply

    def verify(self) -> HandoffCheck:
        reply = self.ask(GetHandoffCheck())
        assert isinstance(reply, HandoffCheck), reply
        return reply

    def journal(self) -> Journal:
        """The journal as it lies on the disk."""
        return parse_journal(self.disk.content(JOURNAL))

    def notes(self) -> tuple[str, ...]:
        """The files of the vault that are not in `.tenure/`."""
        return tuple(path for path in self.disk.paths() if "/.tenure/" not in path)


def texts(brief: Brief, kind: str) -> list[str]:
    """The items of one kind."""
    return [item.text for item in brief.items if item.kind == kind]
