"""Which generation is on the disk, without a lock: the last complete one."""

import msgspec

from tenure.messages.index_work import IndexOnDisk, IndexReady, NoIndex
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.search.layout import (
    Broken,
    IndexLayout,
    Manifest,
    Missing,
    Newer,
    complete,
    read_manifest,
)

LOOKS_MAX = 10
"""A writer replaces generations; so often a reader looks again for one that stands."""


class OnDisk(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader may serve."""

    manifest: Manifest | None
    problem: str = ""
    """What is wrong; with a manifest, that it is the backup's."""


def generation_on_disk(files: Files, layout: IndexLayout) -> OnDisk:
    """The target where it is complete, else the backup.  Blocks; changes nothing."""
    for _ in range(LOOKS_MAX):
        found = _look(files, layout)
        if found is not None:
            return found
    return OnDisk(manifest=None, problem="the index changes faster than it can be read")


def _look(files: Files, layout: IndexLayout) -> OnDisk | None:
    """None where the target was replaced while it was looked at."""
    try:
        read = read_manifest(files, layout.manifest)
        target = complete(files, layout, read)
        if isinstance(target, Manifest):
            return OnDisk(manifest=target)
        if isinstance(target, Newer):
            return OnDisk(manifest=None, problem=target.reason)
        if isinstance(read, Manifest) and read_manifest(files, layout.manifest) != read:
            return None  # its files were swept, because a later generation is there
        backup = complete(files, layout, read_manifest(files, layout.backup))
    except OSError as refused:
        return OnDisk(manifest=None, problem=refused.strerror or str(refused))
    why = target.reason if isinstance(target, Broken) else ""
    if isinstance(backup, Manifest):  # guard: INDEX-4
        return OnDisk(manifest=backup, problem=f"{why or 'index.json is missing'}; the one before")
    if isinstance(target, Missing) and isinstance(backup, Missing):
        return OnDisk(manifest=None)
    return OnDisk(manifest=None, problem=why or "the index is damaged; build it anew")


def served(found: OnDisk) -> IndexOnDisk:
    """The same for people."""
    manifest = found.manifest
    if manifest is None:
        return NoIndex(problem=found.problem)
    return IndexReady(
        generation=manifest.generation,
        notes=manifest.notes,
        chunks=manifest.chunks,
        model=manifest.model,
        committed_ms=manifest.committed_ms,
        bytes=sum(named.bytes for named in manifest.files),
        problem=found.problem,
    )
