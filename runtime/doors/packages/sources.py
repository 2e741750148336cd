"""From what the user names to a checked package in memory; nothing is written."""

import msgspec

from tenure.messages.install import Signature
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.packages.archives import read_archive
from tenure.runtime.doors.packages.checks import (
    check_digest,
    check_signature,
    digest_of,
    tree_digest,
)
from tenure.runtime.doors.packages.contents import Package, package_of
from tenure.runtime.doors.packages.download import Download, Progress
from tenure.runtime.doors.packages.folders import read_folder
from tenure.runtime.doors.packages.layout import SEAL
from tenure.runtime.doors.packages.tree import Limits, Rejected, Tree

_ARCHIVES = (".tar.gz", ".tgz", ".zip", ".whl")


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A package that keeps every rule, and where it came from."""

    package: Package
    source: str
    digest: str


class Sources:
    """Reads folders, archives and addresses.

    Args:
        root: relative sources begin there.
    """

    def __init__(self, leaves: Leaves, root: str, limits: Limits, download: Download) -> None:
        self._leaves = leaves
        self._root = root.rstrip("/")
        self._limits = limits
        self._download = download

    async def fetch(
        self, source: str, digest: str, signature: Signature, progress: Progress
    ) -> Fetched:
        """The package that a source holds.

        Raises:
            Rejected: every violation is named.
            OSError: a file or folder cannot be read.
        """
        run = self._leaves.workers.run
        if "://" in source:
            data = await self._download(source, self._limits, progress)
            name = source.partition("?")[0].partition("#")[0].rpartition("/")[2]
            return await run(self._from_bytes, source, name, data, digest, signature)
        path = source if source.startswith("/") else f"{self._root}/{source}"
        return await run(self._from_path, path.rstrip("/") or "/", digest, signature)

    def _from_path(self, path: str, digest: str, signature: Signature) -> Fetched:
        files = self._leaves.files
        name = path.rpartition("/")[2]
        try:
            kind = files.stat(path).kind
        except (FileNotFoundError, NotADirectoryError):
            raise Rejected("there is no such file or folder") from None
        if kind == "folder":
            tree = read_folder(files, files.real_path(path), self._limits)
            found = tree_digest(tree)
            if digest and digest != found:
                raise Rejected(f"the digest of the folder is {found}, not {digest}")
            return self._packed(tree, name, path, found)
        if kind != "file":
            raise Rejected("it is neither a file nor a folder")
        data = _read(files, path, self._limits.download_bytes)
        return self._from_bytes(path, name, data, digest, signature)

    def _from_bytes(
        self, source: str, name: str, data: bytes, digest: str, signature: Signature
    ) -> Fetched:
        check_digest(data, digest)
        check_signature(data, signature)
        if name.lower().endswith(".md"):
            tree: Tree = {"SKILL.md": data}
        else:
            tree = read_archive(data, self._limits)
        return self._packed(tree, _stem(name), source, digest_of(data))

    def _packed(self, tree: Tree, name: str, source: str, digest: str) -> Fetched:
        package = package_of(tree, name)
        package.tree.pop(SEAL, None)  # ours is written at the end
        return Fetched(package=package, source=source, digest=digest)


def _read(files: Files, path: str, bytes_max: int) -> bytes:
    file = files.open(path, "read")
    try:
        data = file.read_at(0, bytes_max + 1)
    finally:
        file.close()
    if len(data) > bytes_max:
        raise Rejected(f"more than {bytes_max:,} bytes")
    return data


def _stem(name: str) -> str:
    ending = next((each for each in _ARCHIVES if name.lower().endswith(each)), "")
    return name[: len(name) - len(ending)] if ending else name.removesuffix(".md")
