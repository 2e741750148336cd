"""What a run goes on from: the notes and chunks of the last generation, and what an
interrupted run left embedded."""

from collections.abc import Iterator, Sequence

import msgspec

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.search.chunks import CHUNKING
from tenure.runtime.doors.search.layout import (
    Document,
    IndexLayout,
    Manifest,
    NamedFile,
    named_rightly,
    read_all,
)
from tenure.runtime.doors.search.scanning import Draft, DraftChunk
from tenure.runtime.doors.search.segments import OpenSegment, SegmentDamaged

DOCUMENTS_BYTES_MAX = 1_073_741_824
SEGMENT_BYTES_MAX = 4_294_967_296

Place = tuple[str, int]
"""The segment of a chunk, by name, and its row there."""


class Base:
    """The last generation, as far as the next one can use it."""

    def __init__(self) -> None:
        self.drafts: dict[str, Draft] = {}
        self.places: dict[bytes, Place] = {}
        """Of every chunk that has a vector of the model."""
        self.segments: dict[str, NamedFile] = {}
        """Of these chunks."""
        self.rows: dict[str, int] = {}
        """How many each segment has."""
        self.salvaged: tuple[NamedFile, ...] = ()
        """Segments that no manifest names: an interrupted run left them."""
        self.anew = False
        """Whether every note is looked at: the model changed, or chunks are damaged."""
        self.model: IndexModel | None = None
        """Of the chunks, with its dimensions."""
        self.problems: list[str] = []


def same_model(one: IndexModel, other: IndexModel) -> bool:
    """Whether the vectors of two models may meet; unknown dimensions fit all."""
    fit = not one.dimensions or not other.dimensions or one.dimensions == other.dimensions
    return one.id == other.id and fit and one.normalised == other.normalised


def load_base(
    files: Files,
    layout: IndexLayout,
    manifest: Manifest | None,
    model: IndexModel,
) -> Base:
    """Read what there is.  Damage costs the chunks that it hit, and is said.

    Raises:
        OSError: something that is there cannot be read.
    """
    base = Base()
    if manifest is not None:
        usable = same_model(manifest.model, model) and manifest.chunking == CHUNKING
        base.anew = not usable
        names = manifest.segments if usable else ()
        digests = [_take_segment(files, layout, base, named, model) for named in names]
        base.anew = base.anew or any(each is None for each in digests)
        _take_documents(files, layout, base, manifest, digests)
    base.salvaged = tuple(_salvaged(files, layout, base, model))
    return base


def _salvaged(
    files: Files, layout: IndexLayout, base: Base, model: IndexModel
) -> Iterator[NamedFile]:
    """Segments that lie there and that nobody names: what they hold is not embedded again."""
    try:
        there = files.list(layout.folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, kind in there:
        if kind != "file" or not name.endswith(".seg") or name in base.segments:
            continue
        problems = len(base.problems)
        named = NamedFile(file=name, bytes=files.stat(layout.file(name)).size)
        if _take_segment(files, layout, base, named, model) is not None:
            yield named
        del base.problems[problems:]  # nobody needs it, so its damage costs nothing


def _take_segment(
    files: Files, layout: IndexLayout, base: Base, named: NamedFile, model: IndexModel
) -> list[bytes] | None:
    """The digests of a segment that is whole; None of any other."""
    try:
        data = read_all(files, layout.file(named.file), SEGMENT_BYTES_MAX)
        if not named_rightly(named.file, data):
            raise SegmentDamaged(f"{named.file} is damaged")
        del data
        segment = OpenSegment(files, layout, named)
    except (FileNotFoundError, ValueError) as wrong:
        base.problems.append(f"{wrong}; its chunks are embedded again")
        return None
    try:
        digests = list(segment.digests())
        found = segment.model
    except SegmentDamaged as wrong:
        base.problems.append(f"{wrong}; its chunks are embedded again")
        return None
    finally:
        segment.close()
    if (
        not same_model(found, model)
        or segment.header.chunking != CHUNKING
        or (base.model and not same_model(found, base.model))
    ):
        return None
    base.model = base.model or found
    base.segments[named.file] = named
    base.rows[named.file] = len(digests)
    for row, digest in enumerate(digests):
        base.places.setdefault(digest, (named.file, row))
    return digests


def _take_documents(
    files: Files,
    layout: IndexLayout,
    base: Base,
    manifest: Manifest,
    digests: Sequence[list[bytes] | None],
) -> None:
    try:
        documents = read_documents(files, layout, manifest.documents)
    except (FileNotFoundError, ValueError) as wrong:
        base.problems.append(f"{wrong}; every note is looked at again")
        base.anew = True
        return
    for document in documents:
        chunks = tuple(_draft_chunks(document, digests))
        base.drafts[document.path] = Draft(
            document.path,
            document.digest,
            document.mtime_ns,
            document.title,
            document.tags,
            chunks,
        )


def _draft_chunks(
    document: Document, digests: Sequence[list[bytes] | None]
) -> Iterator[DraftChunk]:
    numbers = document.chunks
    for at in range(0, len(numbers), 4):
        segment, row, first, last = numbers[at : at + 4]
        known = digests[segment] if segment < len(digests) else None
        digest = known[row] if known is not None and row < len(known) else b""
        yield DraftChunk(digest, first, last)


def read_documents(files: Files, layout: IndexLayout, named: NamedFile) -> list[Document]:
    """The notes of a generation.

    Raises:
        FileNotFoundError: the file is not there (any more).
        ValueError: it is damaged.
    """
    data = read_all(files, layout.file(named.file), DOCUMENTS_BYTES_MAX)
    if not named_rightly(named.file, data):
        raise ValueError(f"{named.file} is damaged")
    try:
        return msgspec.msgpack.decode(data, type=list[Document])
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise ValueError(f"{named.file} cannot be read: {wrong}") from None
