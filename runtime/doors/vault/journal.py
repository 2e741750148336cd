"""The handoff journal: what was left, delivered and taken in, in the order in which it was.

It is only appended to, under the vault's claim.  A reader takes what is whole: a torn
end is left alone, a damaged line hides nothing but itself.  A writer first keeps a torn
end in `handoffs.jsonl.torn`, synced, and cuts it.

These functions block: they run in a worker.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from tenure.messages.handoff import HandoffProblem, StageName, StageResult
from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.files import File, Files
from tenure.runtime.doors.vault.paths import VaultGround, append_all
from tenure.runtime.doors.vault.records import (
    AckRecord,
    BriefRecord,
    Damaged,
    Foreign,
    HandoffRecord,
    JournalRecord,
    MarkName,
    StagesRecord,
    decode_line,
    encode_line,
)

PERMISSIONS = 0o600
"""Handoffs are private to their user, as conversations are."""

_NUMBER = re.compile(rb'\{"type":"handoff","seq":(\d{1,12}),')


class Known(msgspec.Struct):
    """One handoff with its revisions, the newest last."""

    first: HandoffRecord
    last: HandoffRecord
    revisions: tuple[int, ...] = ()
    stages: dict[StageName, StageResult] = {}

    @property
    def seq(self) -> int:
        """Its place: the number of the handoff itself, whatever was changed since."""
        return self.first.seq


class Delivered(msgspec.Struct):
    """One brief: how often it was delivered, and whether it was taken in."""

    record: BriefRecord
    times: int
    acknowledged: AckRecord | None = None


class Journal:
    """All that a journal says, as it was read."""

    def __init__(self) -> None:
        self.handoffs: dict[int, Known] = {}
        """By number, in ascending order."""
        self.keys: dict[str, Known] = {}
        self.paths: dict[str, Known] = {}
        self.briefs: dict[str, Delivered] = {}
        self.over: set[MarkName] = set()
        """Marks that a handoff closed or an acknowledgement cleared."""
        self.last_seq = 0
        self.records = 0
        self.problems: list[HandoffProblem] = []
        self.whole = 0
        """Bytes up to the end of the last complete line."""
        self.tail = b""
        """What stands behind the last newline."""

    def newest(self) -> list[Known]:
        """The one selector: by number, the newest first."""
        return [self.handoffs[seq] for seq in sorted(self.handoffs, reverse=True)]

    def open_briefs(self) -> list[Delivered]:
        """Those that were delivered and never acknowledged, the newest first."""
        return [each for each in reversed(self.briefs.values()) if each.acknowledged is None]

    def take(self, record: JournalRecord) -> None:
        """Learn one record."""
        self.records += 1
        match record:
            case HandoffRecord():
                self._take_handoff(record)
            case StagesRecord(of=of, stages=stages) if of in self.handoffs:
                known = self.handoffs[of]
                known.stages = {**known.stages, **stages}
            case BriefRecord(id=brief_id):
                before = self.briefs.pop(brief_id, None)
                times = 1 if before is None else before.times + 1
                told = None if before is None else before.acknowledged
                self.briefs[brief_id] = Delivered(record, times, told)
            case AckRecord(brief=brief_id, cleared=cleared):
                self.over.update(cleared)
                if brief_id in self.briefs:
                    self.briefs[brief_id].acknowledged = record

    def _take_handoff(self, record: HandoffRecord) -> None:
        if record.seq <= self.last_seq:
            text = f"number {record.seq} comes after {self.last_seq}"
            self.problems.append(HandoffProblem(kind="sequence", where=record.id, text=text))
        self.last_seq = max(self.last_seq, record.seq)
        self.over.update(record.closes)
        known = self.handoffs.get(record.revises)
        if known is not None:
            known.last = record
            known.revisions = (*known.revisions, record.seq)
        else:
            known = self.handoffs[record.seq] = Known(record, record)
            if record.key:
                self.keys.setdefault(record.key, known)
        self.paths[record.path] = known


def read_journal(ground: VaultGround) -> Journal:
    """Read it; nothing is changed.

    Raises:
        OSError: it is there and cannot be read.
    """
    try:
        file = ground.files.open(ground.journal, "read")
    except (FileNotFoundError, NotADirectoryError):
        return Journal()
    try:
        return parse_journal(file.read_at(0, file.stat().size))
    finally:
        file.close()


def parse_journal(data: bytes) -> Journal:
    """What these bytes say.  Records are split at the byte 0x0A alone."""
    journal = Journal()
    *lines, journal.tail = data.split(b"\n")
    journal.whole = len(data) - len(journal.tail)
    for number, line in enumerate(lines, 1):
        _take_line(journal, number, line)
    if journal.tail:
        found = decode_line(journal.tail)
        if isinstance(found, Damaged):
            text = f"{len(journal.tail)} bytes of an unfinished line"
            where = f"line {len(lines) + 1}"
            journal.problems.append(HandoffProblem(kind="torn", where=where, text=text))
        else:
            # Only its newline is missing: the record itself is whole.
            _take_line(journal, len(lines) + 1, journal.tail)
    return journal


def _take_line(journal: Journal, number: int, line: bytes) -> None:
    found = decode_line(line)
    if isinstance(found, Damaged):
        where = f"line {number}"
        journal.problems.append(HandoffProblem(kind="damaged", where=where, text=found.reason))
        # A number that was given out once is never given out again.
        given = _NUMBER.match(line)
        journal.last_seq = max(journal.last_seq, int(given[1]) if given else 0)
    elif not isinstance(found, Foreign):
        journal.take(found)


def append(ground: VaultGround, journal: Journal, records: Iterable[JournalRecord]) -> None:
    """Append records; durable when this returns.  The claim is held, and `journal` was just read.

    Raises:
        OSError: none of them is in the journal.
        UnicodeEncodeError: a text cannot be written; nothing was.
    """
    taken = tuple(records)
    data = b"".join(encode_line(each) for each in taken)
    make_folders_durably(ground.files, ground.home)
    file = _opened(ground.files, ground.journal)
    try:
        _mend(ground, file, journal)
        _write(file, data)
        ground.files.sync_folder(ground.home)
    finally:
        file.close()
    journal.whole += len(data)
    for each in taken:
        journal.take(each)


def make_sure(ground: VaultGround) -> None:
    """Make durable what a process that died may have left in the system's memory alone."""
    file = ground.files.open(ground.journal, "write")
    try:
        file.datasync()
    finally:
        file.close()
    ground.files.sync_folder(ground.home)


def _opened(files: Files, path: str) -> File:
    try:
        return files.open(path, "write")
    except FileNotFoundError:
        return files.open(path, "create", permissions=PERMISSIONS)


def _write(file: File, data: bytes) -> None:
    before = file.stat().size
    try:
        append_all(file, data)
        file.datasync()
    except OSError:
        # What is not promised must not be found later as if it had been.
        with suppress(OSError):
            file.truncate(before)
            file.datasync()
        raise


def _mend(ground: VaultGround, file: File, journal: Journal) -> None:
    """Finish a whole line that lacks its newline; keep and cut one that is torn."""
    if not journal.tail:
        return
    if not isinstance(decode_line(journal.tail), Damaged):
        append_all(file, b"\n")
        journal.whole += len(journal.tail) + 1
    else:
        keep_aside(ground, f"{ground.journal}.torn", journal.tail + b"\n")
        file.truncate(journal.whole)
    journal.tail = b""
    file.datasync()


def keep_aside(ground: VaultGround, path: str, data: bytes) -> None:
    """Add bytes to a file that nobody reads but people, durably."""
    kept = _opened(ground.files, path)
    try:
        append_all(kept, data)
        kept.sync()
    finally:
        kept.close()
    ground.files.sync_folder(path.rpartition("/")[0])
