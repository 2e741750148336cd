"""Checkpoints: one file each, so that no damage of one touches another.

`.tenure/checkpoints/<number>-<id>.json` is written beside its place and moved there.  A
file that cannot be read is passed over and named; nothing is ever saved over it.

These functions block: they run in a worker.
"""

from contextlib import suppress

import msgspec

from tenure.messages.handoff import Checkpoint
from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.staged import TEMPORARY_PREFIX, stage_file
from tenure.runtime.doors.vault.names import moment_of
from tenure.runtime.doors.vault.paths import VaultGround, reason_of

KEPT_MIN = 50
KEPT_DAYS = 7
PERMISSIONS = 0o600
FILE_BYTES_MAX = 1_048_576
_DAY_MS = 86_400_000


class StoredCheckpoint(Checkpoint, frozen=True, kw_only=True):
    """The content of a checkpoint's file."""

    at_ms: int
    key: str = ""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The names in the folder, the oldest first, and the highest number that was given out."""

    names: tuple[str, ...]
    last_seq: int
    left: tuple[str, ...]
    """Temporary files of processes that died."""


def history_of(ground: VaultGround) -> History:
    """What is in the folder of checkpoints.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found = [name for name, _ in ground.files.list(ground.checkpoints)]
    except (FileNotFoundError, NotADirectoryError):
        found = []
    names = sorted((name for name in found if _number(name) > 0), key=_number)
    return History(
        names=tuple(names),
        last_seq=_number(names[-1]) if names else 0,
        left=tuple(name for name in found if name.startswith(TEMPORARY_PREFIX)),
    )


def read_checkpoint(ground: VaultGround, name: str) -> StoredCheckpoint:
    """One of them.

    Raises:
        OSError, ValueError: it cannot be read, or is damaged.
    """
    file = ground.files.open(f"{ground.checkpoints}/{name}", "read")
    try:
        data = file.read_at(0, FILE_BYTES_MAX)
    finally:
        file.close()
    try:
        return msgspec.json.decode(data, type=StoredCheckpoint)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is damaged: {error}") from None


def newest_checkpoint(ground: VaultGround) -> tuple[StoredCheckpoint | None, tuple[str, ...]]:
    """The newest that can be read, and what was passed over on the way.

    Raises:
        OSError: the folder cannot be read.
    """
    skipped: list[str] = []
    for name in reversed(history_of(ground).names):
        try:
            return read_checkpoint(ground, name), tuple(skipped)
        except OSError as error:
            skipped.append(f"{ground.checkpoints}/{name}: {reason_of(error)}")
        except ValueError as error:
            skipped.append(f"{ground.checkpoints}/{name}: {error}")
    return None, tuple(skipped)


def with_key(ground: VaultGround, history: History, key: str) -> StoredCheckpoint | None:
    """The one that this key has saved; None where none is kept."""
    for name in reversed(history.names):
        with suppress(OSError, ValueError):
            found = read_checkpoint(ground, name)
            if found.key == key:
                return found
    return None


def checkpoint_path(ground: VaultGround, seq: int, checkpoint_id: str) -> str:
    return f"{ground.checkpoints}/{seq:08d}-{checkpoint_id}.json"


def write_checkpoint(ground: VaultGround, stored: StoredCheckpoint) -> None:
    """Write a new one; durable when this returns.  The claim is held.

    Raises:
        OSError: it is not there, or it may be undone by a power loss.
    """
    make_folders_durably(ground.files, ground.checkpoints)
    staged = stage_file(
        ground.files,
        ground.checkpoints,
        stored.id,
        msgspec.json.encode(stored) + b"\n",
        permissions=PERMISSIONS,
    )
    staged.put(checkpoint_path(ground, stored.seq, stored.id))


def prune(ground: VaultGround, history: History, now_ms: int) -> int:
    """Remove what is old and has many behind it; what cannot be removed stays.  The count."""
    removed = 0
    for name in history.left:
        with suppress(OSError):
            ground.files.remove(f"{ground.checkpoints}/{name}")
    for name in history.names[: max(0, len(history.names) + 1 - KEPT_MIN)]:
        # One that is damaged is kept: somebody may still read something in it.
        with suppress(OSError, ValueError):
            if now_ms - read_checkpoint(ground, name).at_ms > KEPT_DAYS * _DAY_MS:
                ground.files.remove(f"{ground.checkpoints}/{name}")
                removed += 1
    return removed


def _number(name: str) -> int:
    """The number that a file's name begins with; 0 for a file that is none of ours."""
    begin, dash, rest = name.partition("-")
    return int(begin) if dash and begin.isdecimal() and rest.endswith(".json") else 0


def age_of(at_ms: int, now_ms: int) -> str:
    """How long ago, for people; a clock that went back is said to have done so."""
    if at_ms > now_ms:
        return f"dated {moment_of(at_ms):%Y-%m-%d %H:%M} UTC, later than now"
    minutes = (now_ms - at_ms) // 60_000
    if minutes < 120:
        return f"{minutes} min ago"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"
