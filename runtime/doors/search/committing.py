"""How a generation takes the place of the one before it, and what is removed afterwards.

    stage the new manifest (durable) -> back up a complete target -> look at the lease
      -> rename over the target -> sync the folder

A crash anywhere leaves the last or the new generation to be read.  All of it happens under
the lease, which is asked at the moment of each replacement.
"""

import msgspec

from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.search.layout import (
    MANIFEST_BYTES_MAX,
    Broken,
    IndexLayout,
    Manifest,
    Missing,
    NamedFile,
    Newer,
    RunNote,
    complete,
    read_all,
    read_manifest,
    read_run,
)
from tenure.runtime.doors.search.leases import HeldLease
from tenure.runtime.doors.staged import TEMPORARY_PREFIX, StagedFile, stage_file

PERMISSIONS = 0o666
"""Before the umask."""


class LeaseLost(Exception):
    """The lease is not held any more: nothing further is written."""


class NewerIndex(Exception):
    """The index is of a newer version, and stays as it is."""


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer begins from."""

    base: Manifest | None
    recovered: tuple[str, ...] = ()
    """What was wrong, and what was done."""


class IndexFolder:
    """The files of one index, in the hands of the one who holds its lease."""

    def __init__(self, leaves: Leaves, layout: IndexLayout, lease: HeldLease) -> None:
        self._leaves = leaves
        self._files: Files = leaves.files
        self._layout = layout
        self._lease = lease

    def prepare(self) -> None:
        """Make the folder where it is missing."""
        make_folders_durably(self._files, self._layout.folder)

    def confirm_lease(self) -> None:
        """Go on only while the lease is held.

        Raises:
            LeaseLost: it is not, or its store cannot say.
        """
        try:
            held = self._lease.renew()
        except OSError as refused:  # INDEX-5: a store that cannot be asked is no permission
            raise LeaseLost(f"the lease store is not available: {refused}") from None
        if not held:  # guard: INDEX-2
            raise LeaseLost("the lease was lost; another writer may have it now")

    def settle(self) -> Settled:
        """The generation to go on from; what nobody can read is set aside.

        Raises:
            NewerIndex: a newer version wrote it.
        """
        target, backup = (complete(self._files, self._layout, found) for found in self._both())
        for found in (target, backup):
            if isinstance(found, Newer):
                raise NewerIndex(found.reason)
        if isinstance(target, Manifest):
            return Settled(base=target)
        if isinstance(backup, Manifest):
            why = target.reason if isinstance(target, Broken) else "index.json is missing"
            return Settled(base=backup, recovered=(f"{why}; the backup was taken",))
        broken = [found.reason for found in (target, backup) if isinstance(found, Broken)]
        return Settled(base=None, recovered=self._set_aside(broken) if broken else ())

    def place(self, named: NamedFile, data: bytes) -> None:
        """Put a file that is named by its content into the folder; durable when this returns."""
        staged = self._stage(data)
        try:
            self.confirm_lease()
        except BaseException:
            staged.discard()
            raise
        staged.put(self._layout.file(named.file))

    def note(self, run: RunNote) -> None:
        """Replace `run.json`."""
        staged = self._stage(msgspec.json.encode(run) + b"\n")
        try:
            self.confirm_lease()
        except BaseException:
            staged.discard()
            raise
        staged.put(self._layout.run)

    def replace(self, manifest: Manifest) -> None:
        """Have readers served the new generation.

        Raises:
            LeaseLost, NewerIndex, OSError: the last generation is served as before.
            NotSynced: the new one is served, and a power loss could still undo it.
        """
        staged = self._stage(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        try:
            self._save_target()
            self.confirm_lease()
        except BaseException:
            staged.discard()
            raise
        staged.put(self._layout.manifest)

    def sweep(self) -> tuple[tuple[str, ...], int]:
        """Remove what neither target, backup nor the last run names: names and bytes."""
        found = self._both()
        if not all(isinstance(each, Manifest | Missing) for each in found):
            return (), 0  # what cannot be read may name anything
        kept = {named.file for each in found if isinstance(each, Manifest) for named in each.files}
        run = read_run(self._files, self._layout)
        if run is not None:
            kept |= {named.file for named in run.segments}
        removed, size = [], 0
        for name, kind in self._files.list(self._layout.folder):
            if kind != "file" or name in kept or not _is_ours(name):
                continue
            self.confirm_lease()
            path = self._layout.file(name)
            size += self._files.stat(path).size
            self._files.remove(path)
            removed.append(name)
        return tuple(removed), size

    def _both(self) -> tuple[Manifest | Broken | Newer | Missing, ...]:
        layout = self._layout
        return tuple(read_manifest(self._files, path) for path in (layout.manifest, layout.backup))

    def _save_target(self) -> None:
        """INDEX-3: a complete target is backed up; an unreadable one only goes where a complete
        backup stands behind it."""
        layout = self._layout
        target, backup = (complete(self._files, layout, found) for found in self._both())
        if isinstance(target, Manifest):
            if target.fence > self._lease.fence:
                raise LeaseLost("a later holder of the lease wrote the index meanwhile")
            self._stage(read_all(self._files, layout.manifest, MANIFEST_BYTES_MAX)).put(
                layout.backup
            )
        elif isinstance(target, Newer):
            raise NewerIndex(target.reason)
        elif isinstance(target, Broken) and not isinstance(backup, Manifest):  # guard: INDEX-3
            self._set_aside([target.reason])

    def _set_aside(self, reasons: list[str]) -> tuple[str, ...]:
        """Keep what is damaged under another name."""
        there = {name for name, _ in self._files.list(self._layout.folder)}
        number = 1
        while any(f"{name}.damaged-{number}" in there for name in ("index.json", "index.json.bak")):
            number += 1
        moved = []
        self.confirm_lease()
        for path in (self._layout.manifest, self._layout.backup):
            name = path.rpartition("/")[2]
            if name in there:
                self._files.rename(path, f"{path}.damaged-{number}")
                moved.append(f"{name}.damaged-{number}")
        self._files.sync_folder(self._layout.folder)
        return (f"{'; '.join(reasons)}: set aside as {', '.join(moved)}, to be built anew",)

    def _stage(self, data: bytes) -> StagedFile:
        fresh = self._leaves.entropy.fresh()
        return stage_file(self._files, self._layout.folder, fresh, data, permissions=PERMISSIONS)


def _is_ours(name: str) -> bool:
    return name.startswith(TEMPORARY_PREFIX) or name.endswith((".seg", ".doc"))
