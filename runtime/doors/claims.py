"""Claims: the one door for every file that two processes could write.

A claim of `<path>` is the kernel lock of `<path>.lock`, and the record in
`<path>.claim` that says who took it and since which epoch.  Whoever changes the
file does so in this order:

    take (lock) -> read the record and the file -> decide -> write -> sync -> release

The lock alone excludes.  The record is for what comes after: the epoch that the
next holder counts on from, and the name that a refused one is shown.  A record
that is lost costs a number, never a file.

These functions block: they run in a worker.
"""

from typing import TYPE_CHECKING

import msgspec

from tenure.messages.tokens import Holder
from tenure.runtime.doors.files import Files, FileStat

if TYPE_CHECKING:
    from tenure.runtime.doors.leaves import Leaves
    from tenure.runtime.doors.locks import HeldLock

RECORD_BYTES_MAX = 65_536


class FileMark(msgspec.Struct, frozen=True, kw_only=True):
    """What identifies a file as it was left: another one, or another length, is a change."""

    device: int
    inode: int
    size: int
    """Bytes."""

    @classmethod
    def of(cls, found: FileStat) -> "FileMark":
        return cls(device=found.device, inode=found.inode, size=found.size)


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What lies beside the lock, as JSON."""

    epoch: int
    """Grows for ever; 0 where nobody counts."""
    holder: Holder
    parked: FileMark | None = None
    """The holder let go of its own accord and left the file like this; None while it holds."""


class ClaimBusy(msgspec.Struct, frozen=True, kw_only=True):
    """Another holds the claim: another process, or another seat of this one."""

    holder: Holder | None
    """None where the holder has not written its record yet."""


class ClaimLost(OSError):
    """The claim is not held any more: released, or its lock file was removed or replaced."""


class HeldClaim:
    """A claim in this process's hands, until `release` or the end of the process."""

    path: str
    """The claimed file, links followed."""
    record: ClaimRecord | None
    """As found under the lock, then as last written; None where missing or damaged."""
    damaged: bool
    """Whether there was a record that cannot be read."""

    def __init__(
        self, files: Files, lock: "HeldLock", path: str, found: "ClaimRecord | DamagedRecord | None"
    ) -> None:
        self._files = files
        self._lock = lock
        self.path = path
        self.damaged = isinstance(found, DamagedRecord)
        self.record = None if isinstance(found, DamagedRecord) else found

    def in_place(self) -> bool:
        """Whether the claim still excludes others.

        False after `release`, in a forked child, and where the lock file was
        removed or replaced by somebody: the claimed file must then not be
        written.
        """
        return self._lock.in_place()

    def write(self, record: ClaimRecord) -> None:
        """Replace the record; durable when this returns.

        Raises:
            ClaimLost: the claim does not exclude others any more; nothing was written.
            ValueError: the epoch is lower than the recorded one; nothing was written.
            OSError: it may or may not be written.
        """
        if not self.in_place():
            raise ClaimLost(f"{self.path}: the claim was lost; take it again")
        if self.record is not None and record.epoch < self.record.epoch:
            raise ValueError(f"{self.path}: epoch {record.epoch} after {self.record.epoch}")
        data = msgspec.json.encode(record) + b"\n"
        replace_durably(self._files, _record_path(self.path), data)
        self.record = record
        self.damaged = False

    def release(self) -> None:
        """Let go; harmless when released.  The record stays."""
        self._lock.release()


class Claims:
    """Takes claims for one host of this process.

    Args:
        host_id: names the host to whoever is refused.
    """

    def __init__(self, leaves: "Leaves", host_id: str) -> None:
        self._leaves = leaves
        self._host_id = host_id

    def me(self) -> Holder:
        """This host as a holder from now on."""
        return Holder(
            host_id=self._host_id,
            process=self._leaves.processes.me(),
            since_ms=self._leaves.clock.now_ms(),
        )

    def take(self, path: str) -> HeldClaim | ClaimBusy:
        """Take the claim of a file, which need not exist; never waits for another holder.

        Missing folders are made, durably.  The record is not changed: the
        caller reads what it needs, decides the epoch, and writes it.  Two takes
        in one process exclude each other as two processes do.

        Raises:
            OSError: it cannot be locked here, or the record cannot be read.  The
                file must then not be written.
        """
        files = self._leaves.files
        path = files.real_path(path)
        make_folders_durably(files, _folder(path))
        lock = self._leaves.locks.try_lock(_lock_path(path))
        if lock is None:  # guard: CLAIM-1
            return ClaimBusy(holder=self._current_holder(path))
        try:
            found = read_record(files, path)
            if found is None:
                # The first claim here.  A process that died between making the
                # folder and syncing its name left it for us to do.
                sync_name(files, _folder(path))
        except BaseException:
            lock.release()
            raise
        return HeldClaim(files, lock, path, found)

    def peek(self, path: str) -> ClaimRecord | None:
        """The record as it lies there; None where missing or damaged.  Changes nothing.

        It tells who claimed last, not whether the claim is held now.
        """
        found = read_record(self._leaves.files, self._leaves.files.real_path(path))
        return None if isinstance(found, DamagedRecord) else found

    def _current_holder(self, path: str) -> Holder | None:
        """Who holds a busy claim, for people.

        The record is of an earlier holder where that one parked or is dead:
        the present one then has not written yet.
        """
        try:
            record = self.peek(path)
        except OSError:
            return None
        if record is None or record.parked is not None:
            return None
        return record.holder if self._leaves.processes.alive(record.holder.process) else None


class DamagedRecord:
    """There is a record, and it cannot be read."""


def read_record(files: Files, path: str) -> ClaimRecord | DamagedRecord | None:
    """The claim record of a file; None where there is none."""
    try:
        data = _read(files, _record_path(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return msgspec.json.decode(data, type=ClaimRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return DamagedRecord()


def make_folders_durably(files: Files, path: str) -> None:
    """Make a folder and those above it that are missing; their names survive a power loss."""
    missing: list[str] = []
    at = path
    while not _is_there(files, at):
        missing.append(at)
        at = _folder(at)
    if missing:
        # Whoever made the last one that exists may have died before its sync.
        sync_name(files, at)
    for folder in reversed(missing):
        try:
            files.make_folder(folder)
        except FileExistsError:
            if files.stat(folder).kind != "folder":
                raise
        files.sync_folder(_folder(folder))


def sync_name(files: Files, path: str) -> None:
    """Make the name of an existing folder durable, where its parent may be opened."""
    try:
        files.sync_folder(_folder(path))
    except PermissionError:
        # Who may not read the parent did not make this name either.
        return


def replace_durably(files: Files, path: str, data: bytes) -> None:
    """Replace a file, whole or not at all, under its claim: temporary file, sync, rename, sync."""
    temporary = f"{path}.tmp"
    try:
        file = files.open(temporary, "create")
    except FileExistsError:
        files.remove(temporary)  # of a holder that died; the claim makes it ours
        file = files.open(temporary, "create")
    try:
        written = 0
        while written < len(data):
            written += file.append(data[written:])
        file.sync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.sync_folder(_folder(path))


def _read(files: Files, path: str) -> bytes:
    file = files.open(path, "read")
    try:
        return file.read_at(0, RECORD_BYTES_MAX)
    finally:
        file.close()


def _is_there(files: Files, path: str) -> bool:
    try:
        files.stat(path)
    except FileNotFoundError:
        return False
    return True


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _lock_path(path: str) -> str:
    return f"{path}.lock"


def _record_path(path: str) -> str:
    return f"{path}.claim"
