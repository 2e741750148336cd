"""One change of the packages, under the claim: sweep, then the change, then prune (INSTALL-5).

These functions block: they run in a worker.
"""

from msgspec.structs import replace

from tenure.messages.base import Refusal, Reply
from tenure.messages.install import (
    AllowServer,
    ChoiceSaved,
    DisablePackage,
    EnablePackage,
    ForbidServer,
    InstallFailed,
    PackageInstalled,
    PackageName,
    PackageNotFound,
    PackageRemoved,
    PackageRolledBack,
    RemovePackage,
    RollBackPackage,
    SweepPackages,
    Swept,
)
from tenure.messages.install_effects import Change, JobId, PlaceFetched
from tenure.runtime.doors.claims import HeldClaim, make_folders_durably
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.packages.choices import (
    Choice,
    Choices,
    DamagedChoices,
    Switch,
    read_choices,
    write_choices,
)
from tenure.runtime.doors.packages.copies import Sealed, is_whole, look_at, owns_its_name, seal_of
from tenure.runtime.doors.packages.disk import is_there, write_tree
from tenure.runtime.doors.packages.journal import close_journal
from tenure.runtime.doors.packages.layout import MANIFEST, SEAL, Layout
from tenure.runtime.doors.packages.loader import Loader
from tenure.runtime.doors.packages.placing import place, remove
from tenure.runtime.doors.packages.sources import Fetched
from tenure.runtime.doors.packages.sweeping import (
    Sweeping,
    kept_copies,
    kept_versions,
    leftovers,
)


class Refused(Exception):
    """The change cannot be made; nothing was changed by it."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.remedy)


class Changing:
    """One job."""

    def __init__(
        self, leaves: Leaves, layout: Layout, loader: Loader, job: JobId, fetched: Fetched | None
    ) -> None:
        self._files = leaves.files
        self._clock = leaves.clock
        self._layout = layout
        self._loader = loader
        self._job = job
        self._fetched = fetched

    def at_once(self, change: Change) -> Reply | None:
        """The answer where there is nothing to change; None where the claim is needed.

        A root without packages stays as it is.

        Raises:
            Refused: it names what is not there.
        """
        if isinstance(change, PlaceFetched) or is_there(self._files, self._layout.home):
            return None
        match change:
            case RollBackPackage(name=name) | RemovePackage(name=name):
                raise Refused(PackageNotFound(name=name))
            case EnablePackage(name=name) | DisablePackage(name=name):
                raise Refused(PackageNotFound(name=name))
            case AllowServer(server_id=server_id) | ForbidServer(server_id=server_id):
                raise Refused(_no_server(server_id))
            case SweepPackages():
                return Swept()

    def change(self, change: Change, claim: HeldClaim) -> Reply:
        """Carry it out.

        Raises:
            Refused: it cannot be meant.
            NotPlaced: a rename was refused; what was there is there.
            OSError: the disk refused; a later sweep completes or undoes what was begun.
        """
        make_folders_durably(self._files, self._layout.home)
        sweeping = Sweeping(self._files, self._layout, self._job)
        sweeping.sweep()
        if not claim.in_place():  # guard: CLAIM-1
            raise OSError("the claim was lost; try again")
        reply = self._apply(change, sweeping)
        try:
            sweeping.prune()
        except OSError as refused:
            # What was changed stands; the next change prunes again.
            return _with_warning(reply, f"old versions are still there: {refused}")
        if isinstance(reply, Swept):
            return Swept(
                recovered=tuple(sweeping.recovered),
                deleted=tuple(sweeping.deleted),
                leftovers=leftovers(self._files, self._layout),
            )
        return reply

    def _apply(self, change: Change, sweeping: Sweeping) -> Reply:
        match change:
            case PlaceFetched(warnings=warnings):
                return self._install(warnings)
            case RollBackPackage(name=name, generation=generation):
                return self._roll_back(name, generation)
            case RemovePackage(name=name):
                return self._remove(name, sweeping)
            case EnablePackage(name=name):
                return self._switch(name, "enabled", sweeping)
            case DisablePackage(name=name):
                return self._switch(name, "disabled", sweeping)
            case AllowServer(server_id=server_id):
                return self._allow(server_id, sweeping)
            case ForbidServer(server_id=server_id):
                return self._forbid(server_id, sweeping)
            case SweepPackages():
                return Swept()

    def _install(self, warnings: tuple[str, ...]) -> Reply:
        fetched = self._fetched
        if fetched is None:
            reason = "what was fetched is gone; install it again"
            raise Refused(InstallFailed(what="the package", reason=reason))
        package = fetched.package
        there = look_at(self._files, self._layout.target(package.name))
        replaced = there.seal.version if isinstance(there, Sealed) else ""
        incoming = self._stage(fetched, self._next_generation(package.name), warnings)
        place(self._files, self._layout, incoming, self._job)
        unrecorded = self._record(package.name, fetched.source)
        return PackageInstalled(
            name=PackageName(package.name),
            version=package.version,
            generation=incoming.seal.generation,
            replaced=replaced,
            warnings=(*warnings, *unrecorded),
        )

    def _stage(self, fetched: Fetched, generation: int, warnings: tuple[str, ...]) -> Sealed:
        """Write the new copy, its manifest and seal last (INSTALL-1)."""
        package = fetched.package
        seal = seal_of(
            package.tree,
            name=package.name,
            version=package.version,
            job=self._job,
            generation=generation,
            source=fetched.source,
            digest=fetched.digest,
            installed_ms=self._clock.now_ms(),
            warnings=warnings,
        )
        make_folders_durably(self._files, self._layout.stages)
        stage = self._layout.stage(self._job)
        write_tree(self._files, stage, {**package.tree, SEAL: seal}, last=(MANIFEST, SEAL))
        self._files.sync_folder(self._layout.stages)
        staged = look_at(self._files, stage)
        if not isinstance(staged, Sealed):
            raise OSError(f"{stage}: it cannot be read again after it was written")
        return staged

    def _next_generation(self, name: str) -> int:
        there = look_at(self._files, self._layout.target(name))
        newest = there.seal.generation if isinstance(there, Sealed) else 0
        kept = [each.generation for each in kept_versions(self._files, self._layout, name)]
        return max([newest, *kept]) + 1

    def _record(self, name: str, source: str) -> tuple[str, ...]:
        """Write down the choice and close the journal; the package is in place whatever happens."""
        try:
            choices = read_choices(self._files, self._layout)
            if isinstance(choices, Choices):
                before = choices.packages.get(name, Choice())
                choice = replace(before, source=source or before.source)
                if choices.packages.get(name) != choice:
                    write_choices(self._files, self._layout, choices.with_package(name, choice))
            close_journal(self._files, self._layout)
        except OSError as refused:
            return (f"it is in place, and the record was not closed: {refused}",)
        return ()

    def _roll_back(self, name: str, generation: int) -> Reply:
        target = look_at(self._files, self._layout.target(name))
        if not owns_its_name(target):
            raise Refused(PackageNotFound(name=name))
        present = target.seal.generation if isinstance(target, Sealed) else 0
        kept = kept_versions(self._files, self._layout, name)
        wanted = [
            each
            for each in kept
            if (each.generation == generation if generation else each.generation < present)
        ]
        if not wanted:
            said = f"generation {generation}" if generation else "an earlier version"
            raise Refused(PackageNotFound(name=name, reason=f"{said} is not kept"))
        incoming = look_at(self._files, wanted[0].folder)
        if not isinstance(incoming, Sealed) or not is_whole(self._files, incoming):
            reason = f"{wanted[0].folder} is damaged; the present version stays"
            raise Refused(InstallFailed(what=name, reason=reason))
        place(self._files, self._layout, incoming, self._job)
        self._record(name, "")
        return PackageRolledBack(
            name=PackageName(name),
            version=incoming.seal.version,
            generation=incoming.seal.generation,
        )

    def _remove(self, name: str, sweeping: Sweeping) -> Reply:
        if not owns_its_name(look_at(self._files, self._layout.target(name))):
            raise Refused(PackageNotFound(name=name))
        kept = tuple(folder for _, folder in kept_copies(self._files, self._layout, name))
        removed = remove(self._files, self._layout, name, self._job, kept)
        sweeping.finish(removed)
        return PackageRemoved(name=PackageName(name))

    def _switch(self, name: str, switch: Switch, sweeping: Sweeping) -> Reply:
        if not owns_its_name(look_at(self._files, self._layout.target(name))):
            raise Refused(PackageNotFound(name=name))
        choices = self._choices(sweeping)
        before = choices.packages.get(name, Choice())
        choice = replace(before, switch=switch)
        write_choices(self._files, self._layout, choices.with_package(name, choice))
        return ChoiceSaved(name=PackageName(name))

    def _allow(self, server_id: str, sweeping: Sweeping) -> Reply:
        server = next(
            (
                server
                for package in self._loader.load().packages
                for server in package.servers
                if server.id == server_id
            ),
            None,
        )
        if server is None:
            raise Refused(_no_server(server_id))
        choices = self._choices(sweeping).with_allowed(server_id, server.package)
        write_choices(self._files, self._layout, choices)
        return ChoiceSaved(name=server.package)

    def _forbid(self, server_id: str, sweeping: Sweeping) -> Reply:
        choices = self._choices(sweeping)
        name = choices.allowed.get(server_id)
        if name is None:
            raise Refused(_no_server(server_id))
        write_choices(self._files, self._layout, choices.without_allowed(server_id))
        return ChoiceSaved(name=PackageName(name))

    def _choices(self, sweeping: Sweeping) -> Choices:
        """What was chosen, to be changed.  What cannot be read is set aside, not lost."""
        choices = read_choices(self._files, self._layout)
        if isinstance(choices, DamagedChoices):
            sweeping.keep_damaged_choices_aside()
            return Choices()
        return choices


def _no_server(server_id: str) -> PackageNotFound:
    return PackageNotFound(name=server_id, reason="no package brings a server of this id")


def _with_warning(reply: Reply, warning: str) -> Reply:
    if isinstance(reply, PackageInstalled):
        return replace(reply, warnings=(*reply.warnings, warning))
    return reply
