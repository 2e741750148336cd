"""Where things lie in a vault, and the one way to a file in it.

No name and no link leads outside: a path is taken only where it, with every link
followed, lies inside the vault, and what was opened is the file that was looked at.

These functions block: they run in a worker.
"""

import errno
from typing import TYPE_CHECKING

from tenure.runtime.doors.claims import Claims, make_folders_durably
from tenure.runtime.doors.files import File, Files, FileStat
from tenure.runtime.doors.staged import folder_of, stage_file

if TYPE_CHECKING:
    from tenure.runtime.doors.leaves import Leaves

NOTE_BYTES_MAX = 4_194_304
"""A note that is longer is not read: it is shown as too long, and left alone."""

NOTE_PERMISSIONS = 0o666
"""Before the umask: notes are the user's."""


class OutsideVault(OSError):
    """The path, or a link on it, leads outside the vault."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EPERM, "it leads outside the vault", path)


class NotPlainFile(OSError):
    """There is something else than a file, or it changed while it was opened."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(errno.EINVAL, f"it is no plain file but a {kind}", path)


class TooLong(OSError):
    """The file is longer than what is read at once."""

    def __init__(self, path: str, size: int, bytes_max: int) -> None:
        text = f"it has {size:,} bytes; {bytes_max:,} are read at most"
        super().__init__(errno.EFBIG, text, path)


class VaultGround:
    """What every part of the vault door stands on.

    Args:
        root: the vault: an absolute path with its links followed.
        claims: of this host; every change is made under the vault's claim.
    """

    def __init__(self, leaves: "Leaves", root: str, claims: Claims) -> None:
        self.leaves = leaves
        self.files: Files = leaves.files
        self.claims = claims
        self.root = root.rstrip("/") or "/"
        self.home = f"{root.rstrip('/')}/.tenure"
        self.journal = f"{self.home}/handoffs.jsonl"
        self.claim = f"{self.home}/claims/handoffs"
        self.checkpoints = f"{self.home}/checkpoints"
        self.marks = f"{self.home}/marks"
        self.cache = f"{self.home}/cache"

    def at(self, relative: str) -> str:
        """The path of a note from the vault.  Raises `OutsideVault`; follows no link."""
        parts = relative.split("/")
        if relative.startswith("/") or not relative or {"", ".", ".."} & set(parts):
            raise OutsideVault(relative)
        return f"{self.root.rstrip('/')}/{relative}"

    def inside(self, relative: str) -> str:
        """The real path of a note, which need not exist.  Raises `OutsideVault`."""
        real = self.files.real_path(self.at(relative))
        if not real.startswith(f"{self.root.rstrip('/')}/"):  # guard: HANDOFF-8
            raise OutsideVault(relative)
        return real

    def open(self, relative: str) -> File:
        """Open a file of the vault for reading.

        Raises:
            OutsideVault: it is a link, or lies behind one, that leads outside.
            NotPlainFile: it is a folder, a pipe, a device.
            OSError: it is missing, or cannot be read.
        """
        real = self.inside(relative)
        before = self.files.lstat(real)
        if before.kind != "file":
            raise NotPlainFile(relative, before.kind)
        file = self.files.open(real, "read")
        opened = file.stat()
        # A link that took the file's place between the two looks is another file.
        if (opened.device, opened.inode) != (before.device, before.inode):
            file.close()
            raise OutsideVault(relative)
        return file

    def read(self, relative: str, bytes_max: int = NOTE_BYTES_MAX) -> tuple[bytes, FileStat]:
        """The bytes of a file of the vault, with what it looked like before they were read.

        Raises:
            TooLong: it has more bytes than that.
            OSError: as `open`.
        """
        file = self.open(relative)
        try:
            found = file.stat()
            if found.size > bytes_max:
                raise TooLong(relative, found.size, bytes_max)
            return file.read_at(0, bytes_max), found
        finally:
            file.close()

    def names(self, folder: str, suffix: str = ".md") -> tuple[str, ...]:
        """The names in a folder of the vault that end so, hidden ones left out.

        A folder that is missing has none.

        Raises:
            OutsideVault: the folder leads outside.
            OSError: it cannot be read.
        """
        try:
            found = self.files.list(self.inside(folder))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(
            name
            for name, kind in found
            if name.endswith(suffix) and not name.startswith(".") and kind in ("file", "link")
        )

    def create(self, relative: str, data: bytes) -> None:
        """Make a new file of the vault, durably, and never over another.

        Raises:
            FileExistsError: there is something under that name.
            OSError: it is not there, or a power loss could still undo it.
        """
        folder = relative.rpartition("/")[0]
        make_folders_durably(self.files, self.inside(folder))
        path = f"{self.inside(folder)}/{relative.rpartition('/')[2]}"
        # Half a file must never be seen under its name: somebody's words are told by it.
        staged = stage_file(
            self.files,
            folder_of(path),
            self.leaves.entropy.fresh(),
            data,
            permissions=NOTE_PERMISSIONS,
        )
        try:
            self.files.lstat(path)
        except FileNotFoundError:
            staged.put(path)
            return
        except BaseException:
            staged.discard()
            raise
        staged.discard()
        raise FileExistsError(errno.EEXIST, "there is something under this name", relative)


def append_all(file: File, data: bytes) -> None:
    """Write all of it at the end, in as many calls as it takes."""
    written = 0
    while written < len(data):
        written += file.append(data[written:])


def reason_of(error: OSError) -> str:
    """What the system said, in a few words."""
    return error.strerror or str(error)
