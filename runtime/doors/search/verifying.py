"""Reading an index from end to end: is every file of it what its name says?"""

import msgspec

from tenure.runtime.doors.files import Files
from tenure.runtime.doors.search.base import SEGMENT_BYTES_MAX
from tenure.runtime.doors.search.layout import (
    IndexLayout,
    Manifest,
    Missing,
    NamedFile,
    complete,
    named_rightly,
    read_all,
    read_manifest,
)
from tenure.runtime.doors.search.reading import Generation
from tenure.runtime.doors.search.segments import SegmentDamaged


class IndexReport(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """What a check found."""

    path: str
    generation: int
    """The last one; 0 where there is none."""
    notes: int
    chunks: int
    files: int
    """That were read."""
    bytes: int
    unused: tuple[str, ...]
    """Files that nothing names; `tenure index gc` removes them."""
    problems: tuple[str, ...]
    """Empty where the index is sound."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_index(files: Files, root: str) -> IndexReport:
    """Read all files that the index and its backup name.  Blocks; changes nothing."""
    layout = IndexLayout(root)
    problems: list[str] = []
    named: dict[str, NamedFile] = {}
    target: Manifest | None = None
    for path in (layout.manifest, layout.backup):
        found = complete(files, layout, read_manifest(files, path))
        if isinstance(found, Manifest):
            named |= {each.file: each for each in found.files}
            target = found if path == layout.manifest else target
        elif not isinstance(found, Missing):
            problems.append(f"{path}: {found.reason}")
    for each in named.values():
        problems += _problems_of(files, layout, each)
    if target is not None and not problems:
        try:
            Generation(files, layout, target, "").close()
        except (SegmentDamaged, ValueError, OSError) as wrong:
            problems.append(str(wrong))
    return IndexReport(
        path=layout.folder,
        generation=target.generation if target is not None else 0,
        notes=target.notes if target is not None else 0,
        chunks=target.chunks if target is not None else 0,
        files=len(named),
        bytes=sum(each.bytes for each in named.values()),
        unused=_unused(files, layout, set(named)),
        problems=tuple(problems),
    )


def _problems_of(files: Files, layout: IndexLayout, named: NamedFile) -> list[str]:
    try:
        data = read_all(files, layout.file(named.file), SEGMENT_BYTES_MAX)
    except (OSError, ValueError) as wrong:
        return [f"{named.file}: {wrong}"]
    return [] if named_rightly(named.file, data) else [f"{named.file} is damaged"]


def _unused(files: Files, layout: IndexLayout, named: set[str]) -> tuple[str, ...]:
    try:
        there = files.list(layout.folder)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(name for name, _ in there if name.endswith((".seg", ".doc")) and name not in named)
