"""The InstallerActor's vocabulary: packages, installed whole or not at all."""

from typing import ClassVar, Literal, NewType

import msgspec

from tenure.messages.base import Command, Event, Query, Refusal, Reply
from tenure.messages.tokens import Holder

PackageName = NewType("PackageName", str)
"""Names a package, and the folder that it lies in: 1 to 64 of `[a-z0-9.-]`."""

FETCH_DEADLINE_S = 600.0
"""How long an asker waits for an installation, its download included."""

CopyStatus = Literal["ok", "partial", "unverified", "damaged", "failed"]
"""ok: all of it can be used.  partial: some component was skipped.  unverified: placed
by hand, so nobody knows what it was.  damaged: files are missing or changed.  failed: it
has no manifest that can be used."""


class Unsigned(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The source gives no signature."""


class Ed25519(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """A detached signature of the archive's bytes; key and signature in base64."""

    key: str
    signature: str


Signature = Unsigned | Ed25519


# --- what there is -------------------------------------------------------------------------


class SkillView(msgspec.Struct, frozen=True, kw_only=True):
    """A skill, and where it comes from."""

    name: str
    description: str
    package: PackageName
    path: str
    """From the package's folder: `skills/review/SKILL.md`."""
    shadowed_by: str = ""
    """The package whose skill of this name goes first; this one is `package:name`."""


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server that a package brings.  It is off until somebody allows it."""

    id: str
    """Stable over updates: of the package, the key and nothing else."""
    package: PackageName
    key: str
    """Its name in the package's `mcp.json`."""
    url: str
    headers: dict[str, str] = {}
    allowed: bool = False


class KeptVersion(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier copy that a rollback can bring back."""

    generation: int
    version: str
    folder: str


class PackageView(msgspec.Struct, frozen=True, kw_only=True):
    """One package as it lies there."""

    name: PackageName
    status: CopyStatus
    version: str = ""
    description: str = ""
    source: str = ""
    """Where it was installed from."""
    digest: str = ""
    """Of the archive, or of the folder's files: `sha256:...`."""
    generation: int = 0
    """Counts the installations of this name; 0 where it was placed by hand."""
    enabled: bool = True
    skills: tuple[SkillView, ...] = ()
    servers: tuple[ServerView, ...] = ()
    kept: tuple[KeptVersion, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong with it or was left out, a sentence each."""
    served_from: str = ""
    """The folder that readers get: the target, or the backup that an open journal names."""


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """Something in the plugins folder that nobody can prove superfluous; it is kept."""

    path: str
    reason: str


# --- commands and queries ------------------------------------------------------------------


class InstallPackage(Command, frozen=True, kw_only=True):
    """Install from a folder, an archive or a URL; one of that name is updated.

    Answered `PackageInstalled`.
    """

    ask_deadline_s: ClassVar[float | None] = FETCH_DEADLINE_S
    source: str
    digest: str = ""
    """What the archive must have: `sha256:HEX` or `sha512-BASE64`; empty asks for nothing."""
    signature: Signature = Unsigned()


class UpdatePackage(Command, frozen=True, kw_only=True):
    """Install again from where it came.  Answered `PackageInstalled`."""

    ask_deadline_s: ClassVar[float | None] = FETCH_DEADLINE_S
    name: PackageName


class RollBackPackage(Command, frozen=True, kw_only=True):
    """Bring an earlier copy back; the present one is kept.  Answered `PackageRolledBack`."""

    name: PackageName
    generation: int = 0
    """Which; 0 takes the newest one that is older than the present."""


class RemovePackage(Command, frozen=True, kw_only=True):
    """Remove a package with its kept copies and choices.  Answered `PackageRemoved`."""

    name: PackageName


class EnablePackage(Command, frozen=True, kw_only=True):
    """Answered `ChoiceSaved`."""

    name: PackageName


class DisablePackage(Command, frozen=True, kw_only=True):
    """Its skills and servers are not offered any more.  Answered `ChoiceSaved`."""

    name: PackageName


class AllowServer(Command, frozen=True, kw_only=True):
    """Let an MCP server of a package be used.  Answered `ChoiceSaved`."""

    server_id: str


class ForbidServer(Command, frozen=True, kw_only=True):
    """Answered `ChoiceSaved`."""

    server_id: str


class SweepPackages(Command, frozen=True, kw_only=True):
    """Recover what a crash left, and delete what is proven superfluous.  Answered `Swept`."""


class ReloadPackages(Command, frozen=True, kw_only=True):
    """Read all packages anew.  Answered `Packages`; those who ask at once share one load."""


class GetPackages(Query, frozen=True, kw_only=True):
    """Answered `Packages`."""


class VerifyPackages(Command, frozen=True, kw_only=True):
    """Compare every file with the digest that it was installed with.  Answered `Verified`."""


# --- replies -------------------------------------------------------------------------------


class Packages(Reply, frozen=True, kw_only=True):
    """All packages, the skills and servers that they give, and what else lies there."""

    packages: tuple[PackageView, ...] = ()
    skills: tuple[SkillView, ...] = ()
    """Of the enabled packages, in their order of precedence."""
    servers: tuple[ServerView, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


class PackageInstalled(Reply, frozen=True, kw_only=True):
    name: PackageName
    version: str
    generation: int
    replaced: str = ""
    """The version that was there; empty where there was none, or none that says."""
    warnings: tuple[str, ...] = ()


class PackageRolledBack(Reply, frozen=True, kw_only=True):
    name: PackageName
    version: str
    generation: int


class PackageRemoved(Reply, frozen=True, kw_only=True):
    name: PackageName


class ChoiceSaved(Reply, frozen=True, kw_only=True):
    name: PackageName


class Swept(Reply, frozen=True, kw_only=True):
    """What a sweep did, a sentence each."""

    recovered: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


class FileDamaged(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    reason: str


class PackageVerified(msgspec.Struct, frozen=True, kw_only=True):
    name: PackageName
    status: CopyStatus
    files: int
    damaged: tuple[FileDamaged, ...] = ()


class Verified(Reply, frozen=True, kw_only=True):
    packages: tuple[PackageVerified, ...] = ()


class PackageRefused(Refusal, frozen=True, kw_only=True):
    """What was offered is no package that may be installed; nothing was written."""

    source: str
    violations: tuple[str, ...]
    """Each: what was wrong, and where."""

    @property
    def remedy(self) -> str:
        return f"{self.source}: {'; '.join(self.violations)}. Nothing was installed"


class PackageNotFound(Refusal, frozen=True, kw_only=True):
    name: str
    reason: str = "there is no package of this name"

    @property
    def remedy(self) -> str:
        return f"{self.name}: {self.reason}. `tenure plugin ls` shows what there is"


class InstallBusy(Refusal, frozen=True, kw_only=True):
    """Another process is changing the packages of this root."""

    holder: Holder | None = None

    @property
    def remedy(self) -> str:
        who = f"process {self.holder.process.pid}" if self.holder else "another process"
        return f"{who} is changing the packages; try again"


class InstallFailed(Refusal, frozen=True, kw_only=True):
    """It could not be done; what was there before is still there."""

    what: str
    reason: str

    @property
    def remedy(self) -> str:
        return f"{self.what}: {self.reason}"


# --- events --------------------------------------------------------------------------------


class DownloadAdvanced(Event, frozen=True, kw_only=True):
    """How far a download is."""

    source: str
    received_bytes: int
    expected_bytes: int
    """0 where the server does not say."""


class PackageChanged(Event, frozen=True, kw_only=True):
    """A package was installed, updated, rolled back, removed, enabled or disabled."""

    name: PackageName
    change: Literal["installed", "updated", "rolled_back", "removed", "chosen"]
    version: str = ""
