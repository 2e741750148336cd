"""What the InstallerActor has done outside, and how that went."""

from typing import ClassVar, NewType

import msgspec

from tenure.messages.base import Effect, Outcome, Refusal, Reply
from tenure.messages.install import (
    AllowServer,
    DisablePackage,
    EnablePackage,
    ForbidServer,
    InstallFailed,
    PackageName,
    Packages,
    RemovePackage,
    RollBackPackage,
    Signature,
    SweepPackages,
    Unsigned,
    Verified,
)

JobId = NewType("JobId", str)
"""Names one thing that the owner does; also the name of its stage."""


class FetchPackage(Effect, frozen=True, kw_only=True):
    """Get the bytes, check digest, signature and every rule, and keep them for the job."""

    concurrent: ClassVar[bool] = True
    job: JobId
    source: str
    digest: str = ""
    signature: Signature = Unsigned()

    @property
    def key(self) -> str:
        return self.job

    def failed(self, reason: str) -> Outcome:
        return PackageNotFetched(
            job=self.job, refusal=InstallFailed(what=self.source, reason=reason)
        )


class PackageFetchAdvanced(Outcome, frozen=True, kw_only=True):
    job: JobId
    source: str
    received_bytes: int
    expected_bytes: int

    def joined(self, later: Outcome) -> "PackageFetchAdvanced | None":
        same = isinstance(later, PackageFetchAdvanced) and later.job == self.job
        return later if same and isinstance(later, PackageFetchAdvanced) else None


class PackageFetched(Outcome, frozen=True, kw_only=True):
    job: JobId
    name: PackageName
    warnings: tuple[str, ...] = ()


class PackageNotFetched(Outcome, frozen=True, kw_only=True):
    job: JobId
    refusal: Refusal


class PlaceFetched(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Put what was fetched for the job in its place."""

    warnings: tuple[str, ...] = ()


Change = (
    PlaceFetched
    | RollBackPackage
    | RemovePackage
    | EnablePackage
    | DisablePackage
    | AllowServer
    | ForbidServer
    | SweepPackages
)


class ChangePackages(Effect, frozen=True, kw_only=True):
    """Under the packages' claim: sweep, make one change through the journal, prune."""

    job: JobId
    change: Change

    def failed(self, reason: str) -> Outcome:
        return PackagesNotChanged(
            job=self.job, refusal=InstallFailed(what="the packages", reason=reason)
        )


class PackagesChanged(Outcome, frozen=True, kw_only=True):
    """It is durable."""

    job: JobId
    reply: Reply


class PackagesNotChanged(Outcome, frozen=True, kw_only=True):
    job: JobId
    refusal: Refusal


class FindPackageSource(Effect, frozen=True, kw_only=True):
    """Where a package was installed from."""

    job: JobId
    name: PackageName

    def failed(self, reason: str) -> Outcome:
        return PackageSourceNotFound(
            job=self.job, refusal=InstallFailed(what=self.name, reason=reason)
        )


class PackageSourceFound(Outcome, frozen=True, kw_only=True):
    job: JobId
    source: str


class PackageSourceNotFound(Outcome, frozen=True, kw_only=True):
    job: JobId
    refusal: Refusal


class LoadPackages(Effect, frozen=True, kw_only=True):
    """Read every package; changes nothing."""

    concurrent: ClassVar[bool] = True

    def failed(self, reason: str) -> Outcome:
        return PackagesNotLoaded(reason=reason)


class PackagesLoaded(Outcome, frozen=True, kw_only=True):
    packages: Packages


class PackagesNotLoaded(Outcome, frozen=True, kw_only=True):
    reason: str


class CheckPackages(Effect, frozen=True, kw_only=True):
    """Read every file of every package and compare its digest."""

    concurrent: ClassVar[bool] = True
    job: JobId

    @property
    def key(self) -> str:
        return self.job

    def failed(self, reason: str) -> Outcome:
        return PackagesNotChecked(job=self.job, reason=reason)


class PackagesChecked(Outcome, frozen=True, kw_only=True):
    job: JobId
    verified: Verified


class PackagesNotChecked(Outcome, frozen=True, kw_only=True):
    job: JobId
    reason: str
