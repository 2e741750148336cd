"""What lies under `.tenure/index/`, and what its small files say.

index.json            the manifest: which files are the last complete generation
index.json.bak        the manifest before it
run.json              how the last run went, or that one runs
seg-<digest>.seg      chunks with their vectors and their keyword index; never changed
doc-<digest>.doc      which chunks each note has; never changed
"""

import hashlib

import msgspec

from tenure.messages.index_work import IndexModel, IndexResult, IndexRunId, RunActive
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.search.chunks import CHUNKING

VERSION = 1
MANIFEST_BYTES_MAX = 16_777_216
SMALL_BYTES_MAX = 16_777_216
READ_BYTES = 16_777_216


class NamedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is named by its content."""

    file: str
    bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One complete generation."""

    version: int = VERSION
    generation: int
    fence: int
    """The epoch of the lease under which it was written; an older writer does not replace it."""
    committed_ms: int
    model: IndexModel
    chunking: int = CHUNKING
    notes: int
    chunks: int
    documents: NamedFile
    segments: tuple[NamedFile, ...]

    @property
    def files(self) -> tuple[NamedFile, ...]:
        return (self.documents, *self.segments)


class RunNote(msgspec.Struct, frozen=True, kw_only=True):
    """What `run.json` says."""

    version: int = VERSION
    run_id: IndexRunId
    fence: int
    model: IndexModel
    chunking: int = CHUNKING
    state: RunActive | IndexResult
    segments: tuple[NamedFile, ...] = ()
    """What the run embedded and no manifest names yet: the next run takes it up."""


class Document(msgspec.Struct, frozen=True, array_like=True):
    """One note of a generation."""

    path: str
    digest: bytes
    """Of the file's bytes."""
    mtime_ns: int
    title: str
    tags: tuple[str, ...]
    chunks: tuple[int, ...]
    """Four numbers for each chunk: its segment in the manifest, its row there, first and last
    line."""


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest that is there and cannot be served."""

    reason: str


class Newer(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest of a later version of the program: not ours to replace."""

    version: int

    @property
    def reason(self) -> str:
        return (
            f"the index was written by a newer version (format {self.version}, this one knows "
            f"{VERSION}); upgrade, or remove the folder to build it anew"
        )


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """There is no manifest."""


Found = Manifest | Broken | Newer | Missing


class _Version(msgspec.Struct, frozen=True):
    version: int


class IndexLayout:
    """The paths of the index of one root."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self.folder = f"{self.root}/.tenure/index"
        self.manifest = f"{self.folder}/index.json"
        self.backup = f"{self.folder}/index.json.bak"
        self.run = f"{self.folder}/run.json"
        self.lease = f"{self.root}/.tenure/claims/index"

    def file(self, name: str) -> str:
        return f"{self.folder}/{name}"


def digest_name(kind: str, data: bytes) -> str:
    """The name of a file by its content."""
    return f"{kind}-{hashlib.sha256(data).hexdigest()[:32]}.{kind}"


def named_rightly(name: str, data: bytes) -> bool:
    """Whether a file's content is still the one that it is named by."""
    return name == digest_name(name.partition("-")[0], data)


def read_all(files: Files, path: str, bytes_max: int) -> bytes:
    """A whole file.  Raises `OSError`, and `ValueError` where it is larger."""
    file = files.open(path, "read")
    try:
        parts, size = [], 0
        while part := file.read_at(size, READ_BYTES):
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                raise ValueError(f"{path} has more than {bytes_max:,} bytes")
        return b"".join(parts)
    finally:
        file.close()


def read_manifest(files: Files, path: str) -> Found:
    """A manifest as it lies there; whether its files are whole is for `complete` to say.

    Raises:
        OSError: it is there and cannot be read.
    """
    try:
        data = read_all(files, path, MANIFEST_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return Missing()
    except ValueError as wrong:
        return Broken(reason=str(wrong))
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version > VERSION:
            return Newer(version=version)
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        return Broken(reason=f"{path} cannot be read: {wrong}")


def complete(files: Files, layout: IndexLayout, found: Found) -> Found:
    """The manifest, where every file that it names is there in its whole length."""
    if not isinstance(found, Manifest):
        return found
    for named in found.files:
        if "/" in named.file:
            return Broken(reason=f"{named.file} is no name of a file of the index")
        try:
            size = files.stat(layout.file(named.file)).size
        except (FileNotFoundError, NotADirectoryError):
            return Broken(reason=f"{named.file} is missing")
        if size != named.bytes:
            return Broken(reason=f"{named.file} has {size:,} bytes, not {named.bytes:,}")
    return found


def read_run(files: Files, layout: IndexLayout) -> RunNote | None:
    """How the last run went; None where nothing that we can read says so."""
    try:
        return msgspec.json.decode(read_all(files, layout.run, SMALL_BYTES_MAX), type=RunNote)
    except (OSError, ValueError, RecursionError):
        return None
