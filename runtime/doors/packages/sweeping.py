"""Recovery after a crash, the sweep, and the prune.  All of it runs under the claim.

The sweep deletes what it can prove superfluous: stages and trash that bear a name we
gave, while nobody else can be writing them.  All else is kept and shown.

These functions block: they run in a worker.
"""

from tenure.messages.install import KeptVersion, Leftover
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.choices import (
    Choices,
    DamagedChoices,
    read_choices,
    write_choices,
)
from tenure.runtime.doors.packages.copies import (
    Sealed,
    Unreadable,
    Unsealed,
    is_whole,
    look_at,
    owns_its_name,
)
from tenure.runtime.doors.packages.disk import delete_tree, is_there, move_folder, names_in
from tenure.runtime.doors.packages.journal import (
    DamagedJournal,
    Removed,
    close_journal,
    read_journal,
)
from tenure.runtime.doors.packages.layout import (
    MANIFEST,
    OWN_NAMES,
    SEAL,
    Layout,
    is_job,
    kept_name,
)
from tenure.runtime.doors.packages.names import wrong_package_name
from tenure.runtime.doors.packages.placing import clear, undo

KEPT_VERSIONS_MAX = 3
"""Earlier copies of a package that a rollback can bring back."""


class Sweeping:
    """One sweep or prune, with what it did."""

    def __init__(self, files: Files, layout: Layout, job: str) -> None:
        self._files = files
        self._layout = layout
        self._job = job
        self.recovered: list[str] = []
        self.deleted: list[str] = []

    def sweep(self) -> None:
        """Recover the open transaction, restore what lost its target, delete what is ours."""
        self._recover()
        self._restore_missing()
        for folder in (self._layout.stages, self._layout.trash):
            for name, kind in names_in(self._files, folder):
                if is_job(name) and kind == "folder":
                    self._delete(f"{folder}/{name}")

    def prune(self) -> None:
        """Delete the oldest kept copies of packages that are proven whole, and old choices."""
        for name in sorted({name for name, _ in kept_copies(self._files, self._layout)}):
            self._prune_kept(name)
        choices = read_choices(self._files, self._layout)
        if isinstance(choices, Choices):
            pruned = choices.only(self._known())
            if pruned != choices:
                write_choices(self._files, self._layout, pruned)

    def _recover(self) -> None:
        match read_journal(self._files, self._layout):
            case None:
                return
            case DamagedJournal():
                # Every kept copy is still there: what lost its target is restored below.
                self._keep_aside(self._layout.journal, "journal")
            case Removed() as removed:
                self.finish(removed)
            case journal:
                self.recovered.append(undo(self._files, self._layout, journal))

    def finish(self, removed: Removed) -> None:
        """The rest of a removal that is decided."""
        choices = read_choices(self._files, self._layout)
        if isinstance(choices, Choices) and not owns_its_name(
            look_at(self._files, self._layout.target(removed.name))
        ):
            left = choices.only(frozenset(choices.packages) - {removed.name})
            if left != choices:
                write_choices(self._files, self._layout, left)
        for copy in removed.copies:
            if is_there(self._files, copy):
                self._trash(copy)
        close_journal(self._files, self._layout)
        self.recovered.append(f"{removed.name}: its removal was completed")

    def _restore_missing(self) -> None:
        """A kept copy restores a target that is missing or empty (INSTALL-3)."""
        names = sorted({name for name, _ in kept_copies(self._files, self._layout)})
        for name in names:
            target = look_at(self._files, self._layout.target(name))
            if owns_its_name(target):
                continue
            newest = _newest(self._files, self._layout, name)
            if newest is not None:
                clear(self._files, self._layout, target, name, self._job)
                move_folder(self._files, newest, self._layout.target(name))
                self.recovered.append(f"{name}: a kept version was restored")

    def _prune_kept(self, name: str) -> None:
        target = look_at(self._files, self._layout.target(name))
        kept = [
            copy
            for _, folder in kept_copies(self._files, self._layout, name)
            if isinstance(copy := look_at(self._files, folder), Sealed)
        ]
        kept.sort(key=lambda copy: copy.seal.generation, reverse=True)
        surplus = kept[KEPT_VERSIONS_MAX:]
        # The only copy that can be read must not go because another is there by name.
        if surplus and is_whole(self._files, target):  # guard: INSTALL-2
            for copy in surplus:
                self._trash(copy.folder)

    def _known(self) -> frozenset[str]:
        """Names that have a package, or a copy that may become one again."""
        names = {
            name for name, kind in names_in(self._files, self._layout.home) if kind == "folder"
        }
        kept = {name for name, _ in kept_copies(self._files, self._layout)}
        aside = {name.partition("@")[0] for name, _ in names_in(self._files, self._layout.aside)}
        return frozenset(names | kept | aside)

    def _trash(self, folder: str) -> None:
        """A rename takes it away whole; only then is it taken apart."""
        number, place = 0, f"{self._layout.trash}/{self._job}"
        while is_there(self._files, place):
            number += 1
            place = f"{self._layout.trash}/{self._job}-{number}"
        move_folder(self._files, folder, place)
        self._delete(place)

    def _delete(self, folder: str) -> None:
        delete_tree(self._files, folder, first=(SEAL, MANIFEST))
        self.deleted.append(folder.removeprefix(f"{self._layout.home}/"))

    def _keep_aside(self, path: str, name: str) -> None:
        number, place = 0, f"{self._layout.aside}/{name}@{self._job}"
        while is_there(self._files, place):
            number += 1
            place = f"{self._layout.aside}/{name}@{self._job}-{number}"
        move_folder(self._files, path, place)
        self.recovered.append(f"{name}: it could not be read and was set aside as {place}")

    def keep_damaged_choices_aside(self) -> None:
        """So that a change can write new ones."""
        if isinstance(read_choices(self._files, self._layout), DamagedChoices):
            self._keep_aside(self._layout.choices, "choices")


def kept_copies(files: Files, layout: Layout, name: str = "") -> tuple[tuple[str, str], ...]:
    """Kept copies as (package, folder); of one package, or of all."""
    return tuple(
        (of, f"{layout.kept}/{folder}")
        for folder, kind in names_in(files, layout.kept)
        if kind == "folder" and (of := kept_name(folder)) and name in ("", of)
    )


def kept_versions(files: Files, layout: Layout, name: str) -> tuple[KeptVersion, ...]:
    """What a rollback can bring back, the newest first."""
    found = []
    for _, folder in kept_copies(files, layout, name):
        copy = look_at(files, folder)
        if isinstance(copy, Sealed):
            seal = copy.seal
            found.append(
                KeptVersion(generation=seal.generation, version=seal.version, folder=folder)
            )
    return tuple(sorted(found, key=lambda each: each.generation, reverse=True))


def leftovers(files: Files, layout: Layout) -> tuple[Leftover, ...]:
    """What lies there and is neither a package nor ours to delete.  Changes nothing."""
    found: list[Leftover] = []
    for name, kind in names_in(files, layout.home):
        reason = _stray(files, layout, name, kind)
        if reason:
            found.append(Leftover(path=layout.target(name), reason=reason))
    for folder in (layout.stages, layout.trash):
        found += [
            Leftover(path=f"{folder}/{name}", reason="nobody knows what it is")
            for name, _ in names_in(files, folder)
            if not is_job(name)
        ]
    for name, kind in names_in(files, layout.kept):
        path = f"{layout.kept}/{name}"
        if not kept_name(name) or kind != "folder":
            found.append(Leftover(path=path, reason="nobody knows what it is"))
        elif not owns_its_name(look_at(files, path)):
            found.append(Leftover(path=path, reason="a kept copy that cannot be read"))
        elif isinstance(look_at(files, path), Unsealed):
            found.append(Leftover(path=path, reason="replaced, and placed by hand before"))
    found += [
        Leftover(path=f"{layout.aside}/{name}", reason="set aside: it could not be read")
        for name, _ in names_in(files, layout.aside)
    ]
    return tuple(found)


def _stray(files: Files, layout: Layout, name: str, kind: str) -> str:
    if name in OWN_NAMES:
        return ""
    if name in (".journal.json.tmp", ".choices.json.tmp"):
        return ""
    if kind == "link":
        return "a link: packages are folders of their own, and links are not followed"
    if kind != "folder" or wrong_package_name(name):
        return "nobody knows what it is"
    copy = look_at(files, layout.target(name))
    if isinstance(copy, Unreadable):
        if copy.empty == "empty":
            return "an empty folder: nothing is installed there"
        return "a folder without a readable plugin.json: nothing is installed there"
    return ""


def _newest(files: Files, layout: Layout, name: str) -> str | None:
    """The kept copy that is best to restore: whole before others, then the newest."""
    ranked: list[tuple[int, int, str]] = []
    for _, folder in kept_copies(files, layout, name):
        copy = look_at(files, folder)
        if isinstance(copy, Sealed):
            ranked.append((int(is_whole(files, copy)), copy.seal.generation, folder))
        elif isinstance(copy, Unsealed):
            ranked.append((0, 0, folder))
    return max(ranked)[2] if ranked else None


__all__ = ["KEPT_VERSIONS_MAX", "Sweeping", "kept_copies", "kept_versions", "leftovers"]
