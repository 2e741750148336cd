"""For tests of packages: sources, archives, and the packages door of simulated processes."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.messages.base import Reply
from tenure.messages.install import (
    PackageName,
    Packages,
    RemovePackage,
    RollBackPackage,
    Signature,
    SweepPackages,
    Unsigned,
)
from tenure.messages.install_effects import (
    Change,
    ChangePackages,
    FetchPackage,
    JobId,
    PackageFetched,
    PackageNotFetched,
    PackagesChanged,
    PackagesNotChanged,
    PlaceFetched,
)
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.packages.door import PackagesDoor
from tenure.runtime.doors.packages.manifest import SCHEMA
from tenure.runtime.doors.packages.tree import LIMITS, Limits, Tree
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.leaves import memory_leaves

T = TypeVar("T")

YIELDS_MAX = 20
ROOT = "/work"
HOME = "/work/.tenure/plugins"
DEMO = PackageName("demo")


def manifest(name: str = "demo", version: str = "1", **more: Any) -> bytes:
    return json.dumps({"$schema": SCHEMA, "name": name, "version": version, **more}).encode()


def skill(name: str = "review", body: str = "Do it.", description: str = "Reviews.") -> bytes:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n".encode()


def tree(name: str = "demo", version: str = "1", **more: bytes) -> Tree:
    """A native package; every version has other bytes in every file."""
    return {
        "plugin.json": manifest(name, version),
        "skills/review/SKILL.md": skill(body=f"Version {version}."),
        "skills/review/data.txt": f"data of {version}".encode(),
        **{path.replace("__", "/"): data for path, data in more.items()},
    }


def zipped(files: Tree | list[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items() if isinstance(files, dict) else files:
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(files: Tree | list[tuple[str, bytes]], *odd: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in files.items() if isinstance(files, dict) else files:
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in odd:
            archive.addfile(info)
    return gzip.compress(out.getvalue(), mtime=0)


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of what waits for nothing: a loop of its own for each would cost more."""
    for _ in range(YIELDS_MAX):
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
    raise AssertionError("it waits")


class PackagesWorld:
    """One disk, and as many processes on it as a test makes."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.disk = MemoryDisk()
        self.disk.put_folder(ROOT)
        self.limits = limits
        self._jobs = 0

    def put(self, path: str, files: Tree) -> str:
        for name, data in files.items():
            self.disk.put(f"{path}/{name}", data)
        return path

    def put_versions(self, *versions: str) -> None:
        for version in versions:
            self.put(f"/src/{version}", tree(version=version))

    def door(self) -> PackagesDoor:
        """The door of a new process."""
        leaves = memory_leaves(self.disk)
        return PackagesDoor(leaves, ROOT, Claims(leaves, "host"), self.limits)

    def job(self) -> JobId:
        self._jobs += 1
        return JobId(f"{self._jobs:016x}")

    def install(
        self,
        source: str,
        door: PackagesDoor | None = None,
        digest: str = "",
        signature: Signature | None = None,
    ) -> Reply:
        """Fetch and place; the reply, or the refusal."""
        door, job = door or self.door(), self.job()
        fetch = FetchPackage(
            job=job, source=source, digest=digest, signature=signature or Unsigned()
        )
        outcome = at_once(door.fetch(fetch, CONTEXT))
        if isinstance(outcome, PackageNotFetched):
            return outcome.refusal
        assert isinstance(outcome, PackageFetched)
        return self.change(PlaceFetched(warnings=outcome.warnings), door, job)

    def change(
        self, change: Change, door: PackagesDoor | None = None, job: JobId | None = None
    ) -> Reply:
        door = door or self.door()
        effect = ChangePackages(job=job or self.job(), change=change)
        outcome = at_once(door.change(effect, CONTEXT))
        if isinstance(outcome, PackagesNotChanged):
            return outcome.refusal
        assert isinstance(outcome, PackagesChanged)
        return outcome.reply

    def remove(self, name: str = "demo") -> Reply:
        return self.change(RemovePackage(name=PackageName(name)))

    def roll_back(self, name: str = "demo", generation: int = 0) -> Reply:
        return self.change(RollBackPackage(name=PackageName(name), generation=generation))

    def sweep(self) -> Reply:
        return self.change(SweepPackages())

    def load(self) -> Packages:
        """What the reader of a new process finds."""
        return self.door().loader.load()

    def version(self, name: str = "demo") -> str:
        """The version that a reader finds, whole; empty for none."""
        door = self.door()
        found = {each.name: each for each in door.loader.load().packages}
        view = found.get(PackageName(name))
        if view is None:
            return ""
        assert view.status == "ok", view
        text = door.loader.text_of(name, "skills/review/SKILL.md").decode()
        assert f"Version {view.version}." in text
        verified = [each for each in door.loader.verify().packages if each.name == name]
        assert [each.status for each in verified] == ["ok"]
        return view.version

    def names(self, path: str) -> set[str]:
        """What lies below a folder, from that folder."""
        top = path.rstrip("/") + "/"
        return {each.removeprefix(top) for each in self.disk.paths() if each.startswith(top)}


def ignore(_: object) -> None:
    """Progress that nobody looks at."""


CONTEXT = Context(owner="installer", seat="", progress=ignore)
