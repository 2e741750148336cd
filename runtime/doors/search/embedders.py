"""The embedding port: texts to vectors, and the check of whatever a provider gives."""

import array
import math
import struct
import sys
from collections.abc import Sequence
from typing import Protocol

from tenure.messages.index_work import IndexModel

KEYWORD = IndexModel(id="keyword", dimensions=0)
"""An index without vectors."""

DIMENSIONS_MAX = 16_384


class EmbedderMissing(Exception):
    """The model cannot be used here; the text says how to change that."""


class EmbeddingFailed(Exception):
    """A provider failed, or answered what is no vectors; the text says which and what."""


class Embedder(Protocol):
    """Turns texts into vectors, of one model."""

    model: IndexModel
    """Its `dimensions` are 0 until the first answer where only the provider knows them."""
    batch_max: int
    """How many texts at most in one call."""
    remote: str
    """Who sees the texts; empty where they stay on this machine."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | bytes:
        """One vector for each text, in their order: numbers, or all as packed 32-bit floats.

        Raises:
            EmbedderMissing: what it needs is not installed.
            EmbeddingFailed: the provider failed.
        """
        ...


class KeywordOnly:
    """No vectors: a keyword index."""

    model = KEYWORD
    batch_max = 1_024
    remote = ""

    async def embed(self, texts: Sequence[str]) -> bytes:
        return b""


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> tuple[IndexModel, list[bytes]]:
    """Embed and check: each vector has length 1, in half precision.

    Gives the model with its dimensions as answered.

    Raises:
        EmbedderMissing: see `Embedder.embed`.
        EmbeddingFailed: too few or too many vectors, another length than before, a
            number that is none, a vector without a direction.
    """
    model = embedder.model
    if model == KEYWORD:
        return model, [b""] * len(texts)
    rows = _rows(await embedder.embed(texts), len(texts), model)
    dimensions = model.dimensions or len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != dimensions:
            raise EmbeddingFailed(
                f"{model.id} gave a vector of {len(row)} numbers for text {number}, "
                f"and the index has {dimensions}"
            )
    known = IndexModel(id=model.id, dimensions=dimensions)
    return known, [_packed(row, number, model.id) for number, row in enumerate(rows)]


def _rows(
    answer: Sequence[Sequence[float]] | bytes, count: int, model: IndexModel
) -> Sequence[Sequence[float]]:
    if isinstance(answer, bytes):
        floats = array.array("f", answer)
        if sys.byteorder == "big":
            floats.byteswap()
        size = model.dimensions or len(floats) // max(count, 1)
        answer = [floats[at : at + size] for at in range(0, len(floats), size or 1)]
    if len(answer) != count:
        raise EmbeddingFailed(f"{model.id} gave {len(answer)} vectors for {count} texts")
    if not answer or not 0 < len(answer[0]) <= DIMENSIONS_MAX:
        raise EmbeddingFailed(f"{model.id} gave an empty vector, or one that is too long")
    return answer


def _packed(row: Sequence[float], number: int, model: str) -> bytes:
    try:
        length = math.sqrt(sum(value * value for value in row))
    except (OverflowError, TypeError):
        length = math.nan
    if not math.isfinite(length) or length == 0:
        raise EmbeddingFailed(f"{model} gave a vector that is no direction for text {number}")
    return struct.pack(f"<{len(row)}e", *[value / length for value in row])


def unpacked(vector: bytes) -> tuple[float, ...]:
    """The numbers of a packed vector."""
    return struct.unpack(f"<{len(vector) // 2}e", vector)
