"""What files held, by content: `<root>/.tenure/checkpoints/<2 digits>/<SHA-256>`.

A file there is written once, whole, under the name of its own bytes; two
processes that write the same one write the same bytes, so no claim is needed.
"""

import hashlib

from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.staged import folder_of, stage_file

CHECKPOINT_BYTES_MAX = 16_777_216
"""A larger file is not kept, and a change of its content cannot be undone."""
_PERMISSIONS = 0o600
"""It may hold what the file's own permissions hid from others."""


class Damaged(Exception):
    """What is kept is not what was kept; its text says so."""


class Store:
    """Blocks; runs in a worker."""

    def __init__(self, files: Files, entropy: Entropy, root: str) -> None:
        self._files = files
        self._entropy = entropy
        self._home = f"{root.rstrip('/')}/.tenure/checkpoints"

    def keep(self, data: bytes) -> str:
        """Make the bytes durable; gives their SHA-256.

        Raises:
            OSError: they are not durable.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        folder = folder_of(path)
        if self._has(path, data):
            # Whoever wrote it may have died before its name was durable.
            self._files.sync_folder(folder)
            return digest
        make_folders_durably(self._files, folder)
        staged = stage_file(
            self._files, folder, self._entropy.fresh(), data, permissions=_PERMISSIONS
        )
        staged.put(path)
        return digest

    def read(self, digest: str) -> bytes:
        """The bytes with this digest.

        Raises:
            Damaged: they are gone, or are others by now.
            OSError: the disk refused.
        """
        try:
            file = self._files.open(self._path(digest), "read")
        except (FileNotFoundError, NotADirectoryError):
            raise Damaged("what it held is not in .tenure/checkpoints any more") from None
        try:
            data = file.read_at(0, CHECKPOINT_BYTES_MAX + 1)
        finally:
            file.close()
        if hashlib.sha256(data).hexdigest() != digest:
            raise Damaged("what is kept of it in .tenure/checkpoints is damaged")
        return data

    def _has(self, path: str, data: bytes) -> bool:
        try:
            file = self._files.open(path, "read")
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            return file.read_at(0, len(data) + 1) == data
        finally:
            file.close()

    def _path(self, digest: str) -> str:
        return f"{self._home}/{digest[:2]}/{digest}"
