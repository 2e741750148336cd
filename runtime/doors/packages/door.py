"""The packages door: carries out the effects of the InstallerActor.

What the file system holds is said in layout.py, how a copy counts in copies.py, how a
transaction goes in placing.py, what a sweep does in sweeping.py, what readers get in
loader.py.
"""

from tenure.messages.base import Outcome
from tenure.messages.install import (
    InstallBusy,
    InstallFailed,
    PackageName,
    PackageNotFound,
    PackageRefused,
)
from tenure.messages.install_effects import (
    ChangePackages,
    CheckPackages,
    FetchPackage,
    FindPackageSource,
    JobId,
    LoadPackages,
    PackageFetchAdvanced,
    PackageFetched,
    PackageNotFetched,
    PackagesChanged,
    PackagesChecked,
    PackagesLoaded,
    PackagesNotChanged,
    PackagesNotChecked,
    PackagesNotLoaded,
    PackageSourceFound,
    PackageSourceNotFound,
)
from tenure.runtime.doors.claims import ClaimBusy, ClaimRecord, Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.packages.changing import Changing, Refused
from tenure.runtime.doors.packages.copies import Sealed
from tenure.runtime.doors.packages.download import Download
from tenure.runtime.doors.packages.layout import Layout
from tenure.runtime.doors.packages.loader import Loader
from tenure.runtime.doors.packages.placing import IN_USE, NotPlaced
from tenure.runtime.doors.packages.skill_tool import invocation
from tenure.runtime.doors.packages.sources import Fetched, Sources
from tenure.runtime.doors.packages.tree import LIMITS, Limits, Rejected

CLAIM_WAIT_MAX_S = 20.0
CLAIM_RETRY_S = 0.05
RENAME_RETRIES_S = (0.1, 0.4, 1.0)
"""How long to wait before a rename that somebody's open file refused is tried again."""


class PackagesDoor:
    """The packages of one root.

    Args:
        root: the workspace; an absolute path.
        limits: what a source may have at most.
    """

    def __init__(
        self,
        leaves: Leaves,
        root: str,
        claims: Claims,
        limits: Limits = LIMITS,
    ) -> None:
        self._leaves = leaves
        self._claims = claims
        self._layout = Layout(root)
        self._sources = Sources(leaves, root, limits, Download(leaves.web))
        self._fetched: dict[JobId, Fetched] = {}
        self.loader = Loader(leaves.files, self._layout)

    async def fetch(self, effect: FetchPackage, context: Context) -> Outcome:
        """Get and check a package; it waits in memory for its `ChangePackages`."""

        def progress(received: int, expected: int) -> None:
            context.progress(
                PackageFetchAdvanced(
                    job=effect.job,
                    source=effect.source,
                    received_bytes=received,
                    expected_bytes=expected,
                )
            )

        try:
            fetched = await self._sources.fetch(
                effect.source, effect.digest, effect.signature, progress
            )
        except Rejected as rejected:
            refusal = PackageRefused(source=effect.source, violations=rejected.violations)
            return PackageNotFetched(job=effect.job, refusal=refusal)
        except OSError as refused:
            failed = InstallFailed(what=effect.source, reason=_why(refused))
            return PackageNotFetched(job=effect.job, refusal=failed)
        # One installation at a time: what an owner that died had fetched goes.
        self._fetched = {effect.job: fetched}
        name = PackageName(fetched.package.name)
        return PackageFetched(job=effect.job, name=name, warnings=fetched.package.warnings)

    async def change(self, effect: ChangePackages, context: Context) -> Outcome:
        """Make one change under the claim, waiting `CLAIM_WAIT_MAX_S` at most for another."""
        clock = self._leaves.clock
        ends_s = clock.monotonic_s() + CLAIM_WAIT_MAX_S
        retries = list(RENAME_RETRIES_S)
        try:
            while True:
                try:
                    done = await self._leaves.workers.run(self._change, effect)
                except NotPlaced as refused:
                    if refused.errno not in IN_USE or not retries:
                        return self._not_changed(effect, _still(refused))
                    await clock.sleep(retries.pop(0))
                    continue
                if not isinstance(done, ClaimBusy):
                    return done
                if clock.monotonic_s() >= ends_s:
                    busy = InstallBusy(holder=done.holder)
                    return PackagesNotChanged(job=effect.job, refusal=busy)
                await clock.sleep(CLAIM_RETRY_S)
        finally:
            self._fetched.pop(effect.job, None)

    async def find_source(self, effect: FindPackageSource, context: Context) -> Outcome:
        try:
            copy = await self._leaves.workers.run(self.loader.served, effect.name)
        except OSError as refused:
            return effect.failed(_why(refused))
        if isinstance(copy, Sealed):
            return PackageSourceFound(job=effect.job, source=copy.seal.source)
        missing = PackageNotFound(
            name=effect.name, reason="nothing says where it was installed from"
        )
        return PackageSourceNotFound(job=effect.job, refusal=missing)

    async def load(self, effect: LoadPackages, context: Context) -> Outcome:
        try:
            return PackagesLoaded(packages=await self._leaves.workers.run(self.loader.load))
        except OSError as refused:
            return PackagesNotLoaded(reason=_why(refused))

    async def invoke(self, skill: str, arguments: str) -> str:
        """The prompt of `/skill NAME ARGUMENTS`.  Raises `BadManifest`: there is no such skill."""
        return await self._leaves.workers.run(invocation, self.loader, skill, arguments)

    async def check(self, effect: CheckPackages, context: Context) -> Outcome:
        try:
            verified = await self._leaves.workers.run(self.loader.verify)
        except OSError as refused:
            return PackagesNotChecked(job=effect.job, reason=_why(refused))
        return PackagesChecked(job=effect.job, verified=verified)

    def _change(self, effect: ChangePackages) -> Outcome | ClaimBusy:
        fetched = self._fetched.get(effect.job)
        changing = Changing(self._leaves, self._layout, self.loader, effect.job, fetched)
        try:
            known = changing.at_once(effect.change)
            if known is not None:
                return PackagesChanged(job=effect.job, reply=known)
            claim = self._claims.take(self._layout.claim)
            if isinstance(claim, ClaimBusy):  # guard: INSTALL-5
                return claim
            try:
                claim.write(ClaimRecord(epoch=0, holder=self._claims.me()))
                return PackagesChanged(job=effect.job, reply=changing.change(effect.change, claim))
            finally:
                claim.release()
        except Refused as refused:
            return PackagesNotChanged(job=effect.job, refusal=refused.refusal)
        except NotPlaced:
            raise
        except OSError as refused:
            return self._not_changed(effect, _why(refused))

    def _not_changed(self, effect: ChangePackages, reason: str) -> PackagesNotChanged:
        refusal = InstallFailed(what=self._layout.home, reason=reason)
        return PackagesNotChanged(job=effect.job, refusal=refusal)


def _why(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _still(error: OSError) -> str:
    return (
        f"{error.strerror or error}; the version before is still in place. "
        "Close what uses it, and try again"
    )
