"""What ClawVault leaves in `.clawvault/`: its dirty flag and its checkpoints.

They are ClawVault's: they are read as they are, and only the flag is ever removed, where
it is still the one that was acknowledged.

These functions block: they run in a worker.
"""

import json
from typing import Any

import msgspec

from tenure.messages.handoff import Checkpoint
from tenure.runtime.doors.vault.names import digest_of
from tenure.runtime.doors.vault.paths import OutsideVault, VaultGround, reason_of

FLAG = ".clawvault/dirty-death.flag"
LAST = ".clawvault/last-checkpoint.json"
HISTORY = ".clawvault/checkpoints"
FILE_BYTES_MAX = 1_048_576


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """The dirty flag as it was found."""

    digest: str
    since: str


def read_flag(ground: VaultGround) -> Flag | None:
    """The flag; None where there is none.

    Raises:
        OSError: there is something, and it cannot be read.
    """
    try:
        data, _ = ground.read(FLAG, FILE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Flag(digest=digest_of(data), since=data.decode("utf-8", "replace").strip()[:40])


def remove_flag(ground: VaultGround, digest: str) -> bool:
    """Remove the flag where it is still this one; whether it is gone.

    Raises:
        OSError: it could not be read, or removed.
    """
    found = read_flag(ground)
    if found is None:
        return True
    if found.digest != digest:
        return False
    path = ground.at(FLAG)
    ground.files.remove(path)
    ground.files.sync_folder(path.rpartition("/")[0])
    return True


def clawvault_checkpoint(ground: VaultGround) -> tuple[Checkpoint | None, tuple[str, ...]]:
    """Its newest checkpoint that can be read, and what was passed over."""
    skipped: list[str] = []
    try:
        names = ground.names(HISTORY, ".json")
    except OSError as error:
        names = ()
        skipped.append(f"{HISTORY}: {reason_of(error)}")
    for path in (LAST, *(f"{HISTORY}/{name}" for name in reversed(names))):
        try:
            return _read(ground, path), tuple(skipped)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OutsideVault, OSError) as error:
            skipped.append(f"{path}: {reason_of(error)}")
        except ValueError as error:
            skipped.append(f"{path}: {error}")
    return None, tuple(skipped)


def _read(ground: VaultGround, path: str) -> Checkpoint:
    data, _ = ground.read(path, FILE_BYTES_MAX)
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("it is damaged: no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is damaged: no object")
    texts = {name: found.get(name) for name in ("timestamp", "workingOn", "focus", "blocked")}
    wrong = [name for name, each in texts.items() if not isinstance(each, str | None)]
    if wrong:
        raise ValueError(f"it is damaged: {wrong[0]} is no text")
    return Checkpoint(
        seq=0,
        id=path.rpartition("/")[2].removesuffix(".json"),
        at=texts["timestamp"] or "",
        working_on=texts["workingOn"] or "",
        focus=texts["focus"] or "",
        blocked=texts["blocked"] or "",
        urgency="urgent" if found.get("urgent") is True else "normal",
        session=str(found.get("sessionKey") or ""),
    )
