"""One copy of a package on the disk: whether it is whole, and what it says of itself.

A copy counts by what can be read, never by being there.  Its seal is written last and
lists every file with its digest.  A folder without a seal but with a manifest was
placed by hand: it owns its name, and nobody can say whether it is whole.

These functions block: they run in a worker.
"""

import hashlib
from typing import Literal

import msgspec

from tenure.messages.install import FileDamaged
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.disk import names_in, read_file
from tenure.runtime.doors.packages.layout import MANIFEST, SEAL
from tenure.runtime.doors.packages.tree import Tree

SEAL_BYTES_MAX = 8 * 1_048_576
MANIFEST_BYTES_MAX = 1_048_576


class SealedFile(msgspec.Struct, frozen=True, kw_only=True):
    size: int
    """Bytes."""
    sha256: str


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """What was installed: the last file of a stage."""

    format: Literal[1] = 1
    name: str
    version: str
    job: str
    """The installation that wrote it; tells one copy from another."""
    generation: int
    source: str
    digest: str
    installed_ms: int
    warnings: tuple[str, ...] = ()
    files: dict[str, SealedFile]


class Sealed(msgspec.Struct, frozen=True):
    """A copy with a readable seal."""

    folder: str
    seal: Seal


class Unsealed(msgspec.Struct, frozen=True):
    """A copy that was placed by hand: it has a manifest and no seal."""

    folder: str


class Unreadable(msgspec.Struct, frozen=True):
    """Something is there, and it has neither."""

    folder: str
    empty: Literal["empty", "not empty"]


class Missing(msgspec.Struct, frozen=True):
    folder: str


Copy = Sealed | Unsealed | Unreadable | Missing


def seal_of(tree: Tree, **about: object) -> bytes:
    """The seal of these files."""
    files = {
        path: SealedFile(size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for path, data in sorted(tree.items())
    }
    seal = msgspec.convert({**about, "files": {}}, Seal)
    return msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(seal, files=files)))


def look_at(files: Files, folder: str) -> Copy:
    """What kind of copy lies there.  Raises `OSError` where that cannot be told."""
    try:
        kind = files.lstat(folder).kind
    except (FileNotFoundError, NotADirectoryError):
        return Missing(folder)
    if kind != "folder":
        return Unreadable(folder, "not empty")
    data = read_file(files, f"{folder}/{SEAL}", SEAL_BYTES_MAX)
    if data is not None:
        try:
            return Sealed(folder, msgspec.json.decode(data, type=Seal))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Unreadable(folder, "not empty")
    manifest = read_file(files, f"{folder}/{MANIFEST}", MANIFEST_BYTES_MAX)
    if manifest is not None and _is_object(manifest):
        return Unsealed(folder)
    return Unreadable(folder, "not empty" if names_in(files, folder) else "empty")


def owns_its_name(copy: Copy) -> bool:
    """A target with a readable manifest owns its name (INSTALL-3)."""
    return isinstance(copy, Sealed | Unsealed)


def damage_of(files: Files, copy: Sealed) -> tuple[FileDamaged, ...]:
    """Which files are not as they were installed, by size: cheap, for every load."""
    return tuple(
        FileDamaged(path=path, reason=reason)
        for path, sealed in copy.seal.files.items()
        if (reason := _size_damage(files, f"{copy.folder}/{path}", sealed))
    )


def changes_of(files: Files, copy: Sealed) -> tuple[FileDamaged, ...]:
    """Which files are not as they were installed, by digest: reads everything."""
    return tuple(
        FileDamaged(path=path, reason=reason)
        for path, sealed in copy.seal.files.items()
        if (reason := _digest_damage(files, f"{copy.folder}/{path}", sealed))
    )


def is_whole(files: Files, copy: Copy) -> bool:
    """Proven complete, byte for byte.  A copy without a seal never is."""
    return isinstance(copy, Sealed) and not changes_of(files, copy)


def _size_damage(files: Files, path: str, sealed: SealedFile) -> str:
    try:
        found = files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "it is missing"
    if found.kind != "file":
        return f"it is a {found.kind}"
    return "" if found.size == sealed.size else "it has another size"


def _digest_damage(files: Files, path: str, sealed: SealedFile) -> str:
    reason = _size_damage(files, path, sealed)
    if reason:
        return reason
    data = read_file(files, path, sealed.size)
    same = data is not None and hashlib.sha256(data).hexdigest() == sealed.sha256
    return "" if same else "its content was changed"


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(data), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
