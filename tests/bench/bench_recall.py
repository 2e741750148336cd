"""What words alone, vectors alone and both find: recall@5, recall@1 and MRR.

python tests/bench/bench_recall.py
"""

import asyncio
import tempfile
from pathlib import Path

from search_set import NOTES, QUERIES

from tenure import Host
from tenure.runtime.doors.search import fusing, names
from tenure.runtime.doors.search.results import SearchResults

Ranks = dict[str, list[int]]


async def ranks_of(host: Host) -> Ranks:
    """The place of the right note, from 1, by kind of question; 0 where it is not found."""
    ranks: Ranks = {}
    for query, path, kind in QUERIES:
        found = await host.index.search(query, limit=20)
        assert isinstance(found, SearchResults), found
        paths = [hit.path for hit in found.hits]
        ranks.setdefault(kind, []).append(paths.index(path) + 1 if path in paths else 0)
    return ranks


def row(name: str, ranks: Ranks) -> str:
    every = [rank for each in ranks.values() for rank in each]
    at = lambda depth, places: sum(0 < rank <= depth for rank in places) / len(places)  # noqa: E731
    mrr = sum(1 / rank for rank in every if rank) / len(every)
    kinds = "  ".join(f"{kind} {at(5, places):.2f}" for kind, places in ranks.items())
    return f"{name:9} recall@5 {at(5, every):.2f}  @1 {at(1, every):.2f}  MRR {mrr:.3f}   {kinds}"


async def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        for path, text in NOTES.items():
            file = Path(root) / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        print(f"{len(NOTES)} notes, {len(QUERIES)} questions")
        async with Host.open(root, settings={"index": {"model": "keyword"}}) as host:
            await host.index.build()
            print(row("words", await ranks_of(host)))
        async with Host.open(root) as host:
            await host.index.build()
            print(row("both", await ranks_of(host)))
            fusing.KEYWORD_WEIGHT, names.LIFT = 0.0, 0.0
            print(row("vectors", await ranks_of(host)))


asyncio.run(main())
