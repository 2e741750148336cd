"""Keyword and vector hits in one order.

A vector search always gives a nearest chunk and a word search always gives a list, so an
order of ranks alone lets a word that stands everywhere outweigh the right answer.  Here the
cosine leads, and words add to it only as far as they really stand in the chunk: in
proportion to the share of the query that they make up, where rare words are the most of it.
"""

from collections.abc import Mapping

import msgspec

COVERAGE_MIN = 0.0
"""Words count beside a vector from this share of the query on."""
KEYWORD_WEIGHT = 0.25
"""What words add that are the whole query; tuned with tests/bench/bench_recall.py."""
RANK_WEIGHT = 0.1
"""What BM25 adds where there are no vectors."""
COSINE_MIN = 0.0
"""What is further off is no neighbour."""


class Scored(msgspec.Struct, frozen=True):
    """A chunk with its score."""

    row: int
    score: float
    cosine: float
    """0 where it was not compared."""
    coverage: float
    """The share of the query's words that stand in it."""


def fused(
    cosines: Mapping[int, float], words: Mapping[int, tuple[float, float]], *, by_meaning: bool
) -> list[Scored]:
    """All chunks in their order, best first.

    Args:
        cosines: of the nearest chunks, and of those with words.
        words: coverage and rank of the chunks with words.
        by_meaning: whether there are vectors at all.
    """
    found = []
    for row in {**cosines, **words}:
        cosine = cosines.get(row, 0.0)
        coverage, rank = words.get(row, (0.0, 0.0))
        if by_meaning:
            lift = max(0.0, coverage - COVERAGE_MIN) / (1 - COVERAGE_MIN)
            if cosine < COSINE_MIN and not lift:
                continue
            score = cosine + lift * KEYWORD_WEIGHT
        else:
            score = coverage * (1 + RANK_WEIGHT * rank)
        found.append(Scored(row, score, cosine, coverage))
    return sorted(found, key=lambda each: (-each.score, each.row))
