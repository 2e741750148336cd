"""The states of the IndexWriterActor."""

from typing import Literal

import msgspec

from tenure.messages.base import Reply
from tenure.messages.index import StartIndex
from tenure.messages.index_work import (
    IndexProgress,
    IndexResult,
    IndexRunId,
    IndexWork,
    RunRefused,
    ViewName,
)
from tenure.messages.tokens import Holder
from tenure.runtime.step import AskId

Wish = Literal["go", "pause", "cancel"]
"""What was asked of a run; it is heeded between two batches."""


class Beginning(msgspec.Struct, frozen=True):
    """A start that was not answered yet."""

    run_id: IndexRunId
    command: StartIndex
    asker: AskId | None


class Lease(msgspec.Struct, frozen=True):
    """What is held, for whoever is refused."""

    path: str
    holder: Holder


class Run(msgspec.Struct, frozen=True):
    """A run that was begun."""

    run_id: IndexRunId
    view: ViewName
    lease: Lease
    work: IndexWork
    wish: Wish = "go"
    done: int = 0
    """Chunks that were embedded."""
    batch: int = 0
    """The next one."""
    embedding_ms: int = 0

    @property
    def progress(self) -> IndexProgress:
        total = self.work.to_embed
        if not self.done or not self.embedding_ms:
            return IndexProgress(done=self.done, total=total)
        rate = self.done * 1000 / self.embedding_ms
        left_s = (total - self.done) / rate
        return IndexProgress(
            done=self.done, total=total, chunks_per_s=round(rate, 1), left_s=round(left_s, 1)
        )


class Idle(msgspec.Struct, frozen=True):
    """Nothing is under way, and no lease is held."""


class Claiming(msgspec.Struct, frozen=True):
    """The lease is being taken."""

    beginning: Beginning
    wish: Wish = "go"


class Scanning(msgspec.Struct, frozen=True):
    """The notes are being looked at, under the lease."""

    beginning: Beginning
    lease: Lease
    wish: Wish = "go"


class Embedding(msgspec.Struct, frozen=True):
    """A batch is with the model."""

    run: Run


class Storing(msgspec.Struct, frozen=True):
    """A batch is being made durable."""

    run: Run


class Paused(msgspec.Struct, frozen=True):
    """Between two batches, with the lease held."""

    run: Run


class Committing(msgspec.Struct, frozen=True):
    """The new generation takes the place of the last one."""

    run: Run


class Releasing(msgspec.Struct, frozen=True):
    """The lease is being let go."""

    run_id: IndexRunId
    view: ViewName
    lease: Lease
    result: IndexResult | RunRefused
    asker: AskId | None = None
    """Who is still to be answered, with `reply`: then a second start finds the lease free."""
    reply: tuple[Reply, ...] = ()


class Sweeping(msgspec.Struct, frozen=True):
    """What no index names is being removed."""

    asker: AskId | None


State = (
    Idle | Claiming | Scanning | Embedding | Storing | Paused | Committing | Releasing | Sweeping
)
