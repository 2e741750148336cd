"""Reading the packages that lie there.  It changes nothing, and needs no claim.

A reader finds the target, else the backup that the open journal names (INSTALL-2).
Where a transaction moves a copy away while it is read, it is read again.

These functions block: they run in a worker.
"""

import hashlib

import msgspec

from tenure.messages.install import (
    CopyStatus,
    Leftover,
    PackageName,
    Packages,
    PackageVerified,
    PackageView,
    ServerView,
    SkillView,
    Verified,
)
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.choices import Choice, Choices, DamagedChoices, read_choices
from tenure.runtime.doors.packages.copies import (
    Copy,
    Sealed,
    Unsealed,
    changes_of,
    damage_of,
    look_at,
    owns_its_name,
)
from tenure.runtime.doors.packages.disk import names_in, read_file
from tenure.runtime.doors.packages.journal import Placing, Removing, backup_of, read_journal
from tenure.runtime.doors.packages.layout import MANIFEST, Layout
from tenure.runtime.doors.packages.manifest import BadManifest, read_manifest
from tenure.runtime.doors.packages.names import wrong_package_name
from tenure.runtime.doors.packages.servers import read_servers
from tenure.runtime.doors.packages.skills import read_skill
from tenure.runtime.doors.packages.sweeping import kept_copies, kept_versions, leftovers

TRIES_MAX = 20
SKILL_BYTES_MAX = 1_048_576
DAMAGE_SHOWN_MAX = 5


class Loader:
    """Reads the packages of one root."""

    def __init__(self, files: Files, layout: Layout) -> None:
        self._files = files
        self._layout = layout

    def load(self) -> Packages:
        """All packages; one bad package never hides another."""
        choices = read_choices(self._files, self._layout)
        chosen = Choices() if isinstance(choices, DamagedChoices) else choices
        packages = tuple(
            found for name in self.names() if (found := self._load_one(name, chosen)) is not None
        )
        stray = leftovers(self._files, self._layout)
        if isinstance(choices, DamagedChoices):
            reason = "it cannot be read: every server is off until the next choice"
            stray = (*stray, Leftover(path=self._layout.choices, reason=reason))
        enabled = [each for each in packages if each.enabled]
        return Packages(
            packages=packages,
            skills=_by_precedence([skill for each in enabled for skill in each.skills]),
            servers=tuple(server for each in enabled for server in each.servers),
            leftovers=stray,
        )

    def names(self) -> tuple[str, ...]:
        """Every name that may have a package, also while one is being replaced."""
        files, layout = self._files, self._layout
        found = {name for name, kind in names_in(files, layout.home) if kind == "folder"}
        journal = read_journal(files, layout)
        if isinstance(journal, Placing | Removing):
            found.add(journal.name)
        found |= {name for name, _ in kept_copies(files, layout)}
        # What was restored from a kept copy between the two looks is found by the third.
        found |= {name for name, kind in names_in(files, layout.home) if kind == "folder"}
        return tuple(sorted(name for name in found if not wrong_package_name(name)))

    def served(self, name: str) -> Copy:
        """The copy that readers get."""
        target = self._layout.target(name)
        for _ in range(TRIES_MAX):
            copy = look_at(self._files, target)
            if owns_its_name(copy):
                return copy
            journal = read_journal(self._files, self._layout)
            backup = backup_of(journal, name)
            if backup:  # guard: INSTALL-2
                kept = look_at(self._files, backup)
                if owns_its_name(kept):
                    return kept
            elif look_at(self._files, target) == copy:
                return copy
        return copy

    def text_of(self, name: str, path: str, bytes_max: int = SKILL_BYTES_MAX) -> bytes:
        """A file of a package, as it was installed.

        Raises:
            BadManifest: there is none, it is too large, or it was changed since.
        """
        for _ in range(TRIES_MAX):
            copy = self.served(name)
            try:
                return self._checked(copy, path, bytes_max)
            except BadManifest:
                if self.served(name) == copy:
                    raise
        raise BadManifest(f"{path}: the package is being replaced all the time")

    def verify(self) -> Verified:
        """Every file of every package against its digest."""
        return Verified(
            packages=tuple(each for name in self.names() for each in self._verify_one(name))
        )

    def _verify_one(self, name: str) -> tuple[PackageVerified, ...]:
        for _ in range(TRIES_MAX):
            copy = self.served(name)
            if isinstance(copy, Unsealed):
                return (PackageVerified(name=PackageName(name), status="unverified", files=0),)
            if not isinstance(copy, Sealed):
                return ()
            damaged = changes_of(self._files, copy)
            if damaged and self.served(name) != copy:
                continue
            status: CopyStatus = "damaged" if damaged else "ok"
            count = len(copy.seal.files)
            return (
                PackageVerified(
                    name=PackageName(name), status=status, files=count, damaged=damaged
                ),
            )
        return ()

    def _load_one(self, name: str, choices: Choices) -> PackageView | None:
        """A package as it was at one moment; None where there is none."""
        for _ in range(TRIES_MAX):
            copy = self.served(name)
            if not owns_its_name(copy):
                return None
            try:
                view = self._view(name, copy, choices)
            except OSError as refused:
                view = _failed(name, copy, f"it cannot be read: {refused.strerror or refused}")
            if view.status in ("ok", "unverified") or self.served(name) == copy:
                return view
        return _failed(name, copy, "it is being replaced all the time; look again")

    def _view(self, name: str, copy: Copy, choices: Choices) -> PackageView:
        base = self._base(name, copy, choices)
        if isinstance(copy, Sealed) and (damage := damage_of(self._files, copy)):
            shown = [f"{each.path}: {each.reason}" for each in damage[:DAMAGE_SHOWN_MAX]]
            whole = f"{len(damage):,} of {len(copy.seal.files):,} files are damaged"
            return msgspec.structs.replace(
                base, status="damaged", problems=(f"{whole}; install it again", *shown)
            )
        try:
            manifest = read_manifest(self._checked(copy, MANIFEST, SKILL_BYTES_MAX))
        except BadManifest as bad:
            return msgspec.structs.replace(base, status="failed", problems=bad.violations)
        problems = list(manifest.warnings)
        if manifest.name != name:
            problems.append(f"plugin.json says {manifest.name!r}; it goes by its folder's name")
        skills, wrong = self._skills(name, copy)
        servers, left = self._servers(name, copy, choices)
        status: CopyStatus = "partial" if wrong or left else base.status
        return msgspec.structs.replace(
            base,
            status=status,
            version=manifest.version,
            description=manifest.description,
            skills=skills,
            servers=servers,
            problems=(*problems, *wrong, *left),
        )

    def _base(self, name: str, copy: Copy, choices: Choices) -> PackageView:
        seal = copy.seal if isinstance(copy, Sealed) else None
        return PackageView(
            name=PackageName(name),
            status="ok" if seal else "unverified",
            version=seal.version if seal else "",
            source=seal.source if seal else choices.packages.get(name, Choice()).source,
            digest=seal.digest if seal else "",
            generation=seal.generation if seal else 0,
            enabled=choices.is_enabled(name),
            kept=kept_versions(self._files, self._layout, name),
            served_from=copy.folder,
        )

    def _skills(self, name: str, copy: Copy) -> tuple[tuple[SkillView, ...], list[str]]:
        skills: list[SkillView] = []
        wrong: list[str] = []
        for folder, kind in names_in(self._files, f"{copy.folder}/skills"):
            if kind != "folder":
                continue
            path = f"skills/{folder}/SKILL.md"
            try:
                skill = read_skill(self._checked(copy, path, SKILL_BYTES_MAX), folder)
            except BadManifest as bad:
                wrong += bad.violations
                continue
            skills.append(
                SkillView(
                    name=skill.name,
                    description=skill.description,
                    package=PackageName(name),
                    path=path,
                )
            )
        return tuple(skills), wrong

    def _servers(
        self, name: str, copy: Copy, choices: Choices
    ) -> tuple[tuple[ServerView, ...], list[str]]:
        try:
            data = self._checked(copy, "mcp.json", SKILL_BYTES_MAX)
        except BadManifest as bad:
            names = {each for each, _ in names_in(self._files, copy.folder)}
            return (), list(bad.violations) if "mcp.json" in names else []
        found = read_servers(data, name)
        views = tuple(
            ServerView(
                id=each.id,
                package=PackageName(name),
                key=each.key,
                url=each.url,
                headers=each.headers,
                allowed=choices.allowed.get(each.id) == name,
            )
            for each in found.servers
        )
        return views, [*found.skipped]

    def _checked(self, copy: Copy, path: str, bytes_max: int) -> bytes:
        data = read_file(self._files, f"{copy.folder}/{path}", bytes_max)
        if data is None:
            raise BadManifest(f"{path}: there is no such file, or it is too large")
        if isinstance(copy, Sealed):
            sealed = copy.seal.files.get(path)
            if sealed is None:
                raise BadManifest(f"{path}: it is not one of the files that were installed")
            if hashlib.sha256(data).hexdigest() != sealed.sha256:
                raise BadManifest(f"{path}: it was changed since it was installed")
        return data


def _by_precedence(skills: list[SkillView]) -> tuple[SkillView, ...]:
    """The first package by name has a skill's plain name; later ones say who has it."""
    first: dict[str, str] = {}
    ordered = []
    for skill in skills:
        owner = first.setdefault(skill.name, skill.package)
        shadowed = "" if owner == skill.package else owner
        ordered.append(msgspec.structs.replace(skill, shadowed_by=shadowed))
    return tuple(ordered)


def _failed(name: str, copy: Copy, reason: str) -> PackageView:
    return PackageView(
        name=PackageName(name), status="failed", problems=(reason,), served_from=copy.folder
    )
