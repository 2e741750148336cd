"""The conformance kit of transcripts: ours passes, and a broken one fails with its reason."""

import dataclasses
from typing import Any

import pytest
from transcript_world import ROOT

from tenure.messages.base import Outcome
from tenure.messages.transcripts import AppendRecords, RecordsAppended
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import Transcripts
from tenure.runtime.testing import conformance
from tenure.runtime.testing.conformance import Check, TranscriptDoor, TranscriptsUnderTest
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import LoseAll
from tenure.runtime.testing.leaves import memory_leaves


class Place:
    """One simulated disk; every host is a process on it."""

    def __init__(self, kind: type[Transcripts] = Transcripts, **options: Any) -> None:
        self._kind = kind
        self._options = options
        self._disk = MemoryDisk()
        self._disk.put_folder(ROOT)
        self._hosts: list[tuple[TranscriptDoor, Leaves]] = []

    def host(self) -> TranscriptDoor:
        leaves = memory_leaves(self._disk)
        name = f"host-{len(self._hosts)}"
        door = self._kind(leaves, ROOT, Claims(leaves, name), name, **self._options)
        self._hosts.append((door, leaves))
        return door

    def kill(self, door: TranscriptDoor) -> None:
        (leaves,) = [leaves for each, leaves in self._hosts if each is door]
        self._disk.processes.kill(leaves.processes.me())

    def lose_power(self) -> None:
        self._disk.crash(LoseAll())

    def tear(self, path: str, bytes_cut: int) -> None:
        self._disk.put(path, self._disk.content(path)[:-bytes_cut])


@pytest.mark.parametrize("check", conformance.TRANSCRIPTS)
def test_our_transcript_door_keeps_the_contract(check: Check[TranscriptsUnderTest]) -> None:
    check(Place())


# --- broken ones -------------------------------------------------------------------------------


class Hasty(Transcripts):
    """Says that it is written before it is."""

    async def append(self, effect: AppendRecords, context: Context) -> Outcome:
        return RecordsAppended(session_id=effect.token.session_id)


class Careless(Transcripts):
    """Appends wherever it is."""

    async def append(self, effect: AppendRecords, context: Context) -> Outcome:
        live = self.held(effect.token.session_id, context.seat)
        leaf = live.tree.leaf if live else effect.after
        placed = AppendRecords(token=effect.token, after=leaf, records=effect.records)
        return await super().append(placed, context)


class Unlocked:
    """A lock that excludes nobody."""

    def in_place(self) -> bool:
        return True

    def release(self) -> None:
        pass


class Unlocking(Transcripts):
    """On a storage where nobody is excluded."""

    def __init__(self, leaves: Leaves, root: str, claims: Claims, host_id: str) -> None:
        class Locks:
            def try_lock(self, path: str) -> Unlocked:
                return Unlocked()

        open_to_all = dataclasses.replace(leaves, locks=Locks())
        super().__init__(open_to_all, root, Claims(open_to_all, host_id), host_id)


def names_of_failures(report: conformance.Report) -> set[str]:
    return {failure.name for failure in report.failures}


def test_a_door_that_only_flushes_fails_at_durability_and_nowhere_else() -> None:
    report = conformance.transcripts(lambda: Place(sync="flush"))
    assert names_of_failures(report) == {"a receipt is given when it is durable"}
    assert "expected ['one', 'two', 'three']" in str(report) or "SessionNotFound" in str(report)


def test_a_door_that_answers_before_it_writes_fails_with_what_is_missing() -> None:
    report = conformance.transcripts(lambda: Place(Hasty))
    failed = {failure.name: failure.reason for failure in report.failures}
    assert "what was appended is there for the next host" in failed
    assert "SessionNotFound" in failed["what was appended is there for the next host"]


def test_a_door_that_compares_nothing_fails_at_compare_and_append() -> None:
    report = conformance.transcripts(lambda: Place(Careless))
    failed = {failure.name: failure.reason for failure in report.failures}
    name = "an append behind another entry is refused and leaves nothing"
    assert failed[name] == (
        "an append after None: RecordsAppended(session_id='" + failed[name].split("'")[1] + "')"
    )


def test_a_door_without_locks_lets_two_hosts_have_a_session() -> None:
    report = conformance.transcripts(lambda: Place(Unlocking))
    failed = {failure.name: failure.reason for failure in report.failures}
    reason = failed["a session is live in one seat of one host"]
    assert reason.startswith("ById(session_id=")
    assert "was opened: TranscriptOpened" in reason
