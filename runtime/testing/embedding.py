"""A deterministic embedding model for tests: each word has a direction of its own."""

import hashlib
import math
from collections.abc import Awaitable, Callable, Sequence

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.search.embedders import Embedder, EmbedderMissing, KeywordOnly
from tenure.runtime.doors.search.words import words_of

DIMENSIONS = 16


class WordEmbedder:
    """Texts with the same words are near each other.

    Args:
        name: of the model; two names are two models.
        remote: who sees the texts.
    """

    def __init__(
        self,
        name: str = "words",
        *,
        dimensions: int = DIMENSIONS,
        batch_max: int = 4,
        remote: str = "",
    ) -> None:
        self.model = IndexModel(id=name, dimensions=dimensions)
        self.batch_max = batch_max
        self.remote = remote
        self.before: Callable[[], Awaitable[None]] | None = None
        """Awaited before each call: it may take time, change something, or raise."""
        self.calls = 0
        self.texts: list[str] = []
        """Everything that was embedded, in order."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """See `Embedder`."""
        self.calls += 1
        if self.before is not None:
            await self.before()
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        total = [0.0] * self.model.dimensions
        for word in words_of(text) or ["nothing"]:
            digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
            for at in range(self.model.dimensions):
                total[at] += digest[at % len(digest)] - 127.5
        length = math.sqrt(sum(value * value for value in total))
        return [value / length for value in total]


class Embedders:
    """Finds embedders by their model string, for `IndexWishes(choose=...)`."""

    def __init__(self, *known: Embedder) -> None:
        self._known = {each.model.id: each for each in known}

    def __call__(self, model: str, base_url: str) -> Embedder:
        if model == "keyword":
            return KeywordOnly()
        found = self._known.get(model)
        if found is None:
            raise EmbedderMissing(f"there is no model {model!r} in this test")
        return found
