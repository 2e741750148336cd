"""The secrets door: the one place where tokens and clients' secrets are kept.

In the keyring of the operating system where there is one, else in files that
only this user can read.  Which of the two has a secret is written beside what it
belongs to, and the other is never asked instead: a keyring that is locked today
must not lead to a second copy in a file.

All methods block: they run in a worker.
"""

import re
from typing import Literal, Protocol

from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.keyring import Keyring
from tenure.runtime.doors.staged import stage_file

StoreName = Literal["keyring", "file"]

SECRET_BYTES_MAX = 65_536
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")


class Secrets(Protocol):
    """A store of named texts.  A name is made of letters, digits, `_`, `-` and `.`."""

    def read(self, name: str) -> str | None:
        """The text, whole; None where there is none.  Raises `OSError`."""
        ...

    def write(self, name: str, value: str) -> None:
        """Durable when this returns; the old text or the new one, never a mixture.

        Raises:
            OSError: it may or may not be written.
            ValueError: the name or the text cannot be kept.
        """
        ...

    def remove(self, name: str) -> None:
        """Harmless where there is none.  Raises `OSError`."""
        ...


class FileSecrets:
    """One file for each secret, with mode 600."""

    def __init__(self, files: Files, entropy: Entropy, folder: str) -> None:
        self._files = files
        self._entropy = entropy
        self._folder = folder

    def read(self, name: str) -> str | None:
        try:
            file = self._files.open(self._path(name), "read")
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            data = file.read_at(0, SECRET_BYTES_MAX + 1)
        finally:
            file.close()
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise OSError(f"{self._path(name)}: this is no text; remove it") from None

    def write(self, name: str, value: str) -> None:
        path, data = self._path(name), _encoded(value)
        make_folders_durably(self._files, self._folder)
        fresh = self._entropy.fresh()
        staged = stage_file(self._files, self._folder, fresh, data, permissions=0o600)
        staged.put(path)

    def remove(self, name: str) -> None:
        try:
            self._files.remove(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return
        self._files.sync_folder(self._folder)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{_checked(name)}"


class KeyringSecrets:
    """The keyring, as a store."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring

    def read(self, name: str) -> str | None:
        return self._keyring.get(_checked(name))

    def write(self, name: str, value: str) -> None:
        _encoded(value)
        self._keyring.put(_checked(name), value)

    def remove(self, name: str) -> None:
        self._keyring.remove(_checked(name))


class SecretStores:
    """Both stores, and which one new secrets go to.

    Args:
        folder: of the files; made on the first write.
    """

    def __init__(self, files: Files, entropy: Entropy, keyring: Keyring, folder: str) -> None:
        self._keyring = keyring
        self.folder = folder
        self._stores: dict[StoreName, Secrets] = {
            "keyring": KeyringSecrets(keyring),
            "file": FileSecrets(files, entropy, folder),
        }

    def of(self, name: StoreName) -> Secrets:
        """The store that was written down."""
        return self._stores[name]

    def preferred(self) -> StoreName:
        """Where a new secret goes."""
        return "keyring" if self._keyring.usable() else "file"


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError("a secret's name has letters, digits, `_`, `-` and `.` only")
    return name


def _encoded(value: str) -> bytes:
    data = value.encode(errors="strict")
    if len(data) > SECRET_BYTES_MAX:
        raise ValueError(f"a secret has {SECRET_BYTES_MAX:,} bytes at most")
    return data
