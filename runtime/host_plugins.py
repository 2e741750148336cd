"""The packages of a root, as an embedder installs, reads and removes them."""

from tenure.messages.base import Command
from tenure.messages.install import (
    AllowServer,
    ChoiceSaved,
    DisablePackage,
    EnablePackage,
    ForbidServer,
    GetPackages,
    InstallPackage,
    PackageInstalled,
    PackageName,
    PackageNotFound,
    PackageRemoved,
    PackageRolledBack,
    Packages,
    PackageView,
    ReloadPackages,
    RemovePackage,
    RollBackPackage,
    ServerView,
    Signature,
    SkillView,
    SweepPackages,
    Swept,
    Unsigned,
    UpdatePackage,
    Verified,
    VerifyPackages,
)
from tenure.runtime.doors.packages.door import PackagesDoor
from tenure.runtime.doors.packages.manifest import BadManifest
from tenure.runtime.seat import AskHost, refused

UNSIGNED = Unsigned()


class HostPlugins:
    """Packages of skills and MCP servers; every change goes through their one owner.

    What is refused raises `Refused` with the reply inside: `PackageRefused` names every
    violation, `InstallFailed` says why what was there is still there.
    """

    def __init__(self, ask: AskHost, door: PackagesDoor) -> None:
        self._ask = ask
        self._door = door

    async def list(self) -> tuple[PackageView, ...]:
        """Every package, the broken ones too."""
        return (await self.loaded()).packages

    async def loaded(self) -> Packages:
        """Packages, the skills and servers of the enabled ones, and leftovers."""
        return await self._loaded(GetPackages())

    async def reload(self) -> Packages:
        """The same, read anew; those who ask at once share one load."""
        return await self._loaded(ReloadPackages())

    async def skills(self) -> tuple[SkillView, ...]:
        """The skills of the enabled packages, in their order of precedence."""
        return (await self.loaded()).skills

    async def prompt_of(self, skill: str, arguments: str = "") -> str:
        """The prompt that uses a skill: its text, with `$ARGUMENTS` replaced.

        Args:
            skill: its name, or `package:name`.
        """
        try:
            return await self._door.invoke(skill, arguments)
        except BadManifest as bad:
            raise refused(PackageNotFound(name=skill, reason=str(bad))) from None

    async def servers(self) -> tuple[ServerView, ...]:
        """The MCP servers of the enabled packages.  Only those that are `allowed` may be used."""
        return (await self.loaded()).servers

    async def install(
        self, source: str, *, digest: str = "", signature: Signature = UNSIGNED
    ) -> PackageInstalled:
        """Install a package, or update the one of its name.

        Args:
            source: a folder, a .zip, .tar.gz or .tgz, a SKILL.md, or an address of one
                (https, or http of this machine).
            digest: `sha256:HEX` or `sha512-BASE64`; what has another is refused.
            signature: of the archive's bytes.
        """
        command = InstallPackage(source=source, digest=digest, signature=signature)
        reply = await self._ask(command)
        if isinstance(reply, PackageInstalled):
            return reply
        raise refused(reply)

    async def update(self, name: str) -> PackageInstalled:
        """Install again from where it came."""
        reply = await self._ask(UpdatePackage(name=PackageName(name)))
        if isinstance(reply, PackageInstalled):
            return reply
        raise refused(reply)

    async def rollback(self, name: str, generation: int = 0) -> PackageRolledBack:
        """Bring an earlier copy back; 0 takes the newest one older than the present."""
        command = RollBackPackage(name=PackageName(name), generation=generation)
        reply = await self._ask(command)
        if isinstance(reply, PackageRolledBack):
            return reply
        raise refused(reply)

    async def remove(self, name: str) -> PackageRemoved:
        """Remove a package, its kept copies, and what was chosen about it."""
        reply = await self._ask(RemovePackage(name=PackageName(name)))
        if isinstance(reply, PackageRemoved):
            return reply
        raise refused(reply)

    async def enable(self, name: str) -> ChoiceSaved:
        """Offer its skills and servers."""
        return await self._choose(EnablePackage(name=PackageName(name)))

    async def disable(self, name: str) -> ChoiceSaved:
        """Offer them no more; the package stays."""
        return await self._choose(DisablePackage(name=PackageName(name)))

    async def allow_server(self, server_id: str) -> ChoiceSaved:
        """Let an MCP server of a package be used."""
        return await self._choose(AllowServer(server_id=server_id))

    async def forbid_server(self, server_id: str) -> ChoiceSaved:
        """Take that back."""
        return await self._choose(ForbidServer(server_id=server_id))

    async def verify(self) -> Verified:
        """Compare every file with the digest that it was installed with."""
        reply = await self._ask(VerifyPackages())
        if isinstance(reply, Verified):
            return reply
        raise refused(reply)

    async def sweep(self) -> Swept:
        """Recover what a crash left, and delete what is proven superfluous."""
        reply = await self._ask(SweepPackages())
        if isinstance(reply, Swept):
            return reply
        raise refused(reply)

    async def _loaded(self, command: Command) -> Packages:
        reply = await self._ask(command)
        if isinstance(reply, Packages):
            return reply
        raise refused(reply)

    async def _choose(self, command: Command) -> ChoiceSaved:
        reply = await self._ask(command)
        if isinstance(reply, ChoiceSaved):
            return reply
        raise refused(reply)
