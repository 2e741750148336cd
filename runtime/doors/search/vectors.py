"""Nearest neighbours among the vectors of a generation, by looking at all of them.

Up to `EXACT_ROWS_MAX` every product is taken.  Beyond, the signs of the numbers are compared
first, 64 of them in one machine word, and only the best of that are multiplied.
"""

import importlib
from collections.abc import Sequence
from typing import Any

EXACT_ROWS_MAX = 40_000
SHORTLIST = 4_000
BLOCK_ROWS = 8_192


class NoNumpy(Exception):
    """Vectors cannot be searched without numpy."""


class VectorTable:
    """All vectors of a generation.

    Args:
        sections: the `vectors` of each segment.
        dimensions: of each vector.

    Raises:
        NoNumpy: numpy is not installed.
    """

    def __init__(self, sections: Sequence[bytes], dimensions: int) -> None:
        try:
            self._np: Any = importlib.import_module("numpy")
        except ModuleNotFoundError:
            raise NoNumpy(
                "searching by meaning needs numpy, which is not installed: "
                "pip install 'tenure[search]'"
            ) from None
        np = self._np
        self._parts = [
            np.frombuffer(data, dtype="<f2").reshape(-1, dimensions) for data in sections
        ]
        self.rows = sum(len(part) for part in self._parts)
        self._floats: Any = None
        self._signs: Any = None
        if self.rows <= EXACT_ROWS_MAX:
            self._floats = np.concatenate(
                [part.astype(np.float32) for part in self._parts]
                or [np.empty((0, dimensions), np.float32)]
            )
        else:
            self._signs = np.concatenate([self._signs_of(part) for part in self._parts])
            self._halves = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts)
            self._parts = []

    def nearest(self, vector: Sequence[float], count: int, allowed: Any) -> list[tuple[int, float]]:
        """The `count` rows with the greatest cosine, greatest first.

        Args:
            allowed: a numpy mask of the rows that may be given.
        """
        np = self._np
        query = np.asarray(vector, dtype=np.float32)
        if not self.rows or not allowed.any():
            return []
        if self._floats is not None:
            return self._best(np.arange(self.rows), self._floats @ query, count, allowed)
        distance = np.bitwise_count(self._signs ^ self._signs_of(query[None, :])).sum(
            axis=1, dtype=np.uint16
        )
        distance[~allowed] = np.iinfo(np.uint16).max
        size = min(SHORTLIST, self.rows)
        rows = np.argpartition(distance, size - 1)[:size]
        products = self._halves[rows].astype(np.float32) @ query
        return self._best(rows, products, count, allowed[rows])

    def mask(self, rows: Sequence[int]) -> Any:
        """A mask that allows these rows."""
        np = self._np
        allowed = np.zeros(self.rows, dtype=bool)
        allowed[np.asarray(rows, dtype=np.int64)] = True
        return allowed

    def products(self, vector: Sequence[float], rows: Sequence[int]) -> list[float]:
        """The cosine of each of these rows."""
        np = self._np
        query = np.asarray(vector, dtype=np.float32)
        chosen = np.asarray(rows, dtype=np.int64)
        table = self._floats if self._floats is not None else self._halves
        return [float(each) for each in table[chosen].astype(np.float32) @ query]

    def _best(self, rows: Any, products: Any, count: int, allowed: Any) -> list[tuple[int, float]]:
        np = self._np
        products = np.where(allowed, products, -2.0)
        size = min(count, len(products))
        top = np.argpartition(-products, size - 1)[:size]
        top = top[np.argsort(-products[top], kind="stable")]
        return [(int(rows[at]), float(products[at])) for at in top if products[at] > -2.0]

    def _signs_of(self, part: Any) -> Any:
        np = self._np
        packed = np.packbits(part > 0, axis=1)
        short = -packed.shape[1] % 8
        if short:
            packed = np.pad(packed, ((0, 0), (0, short)))
        return np.ascontiguousarray(packed).view(np.uint64)
