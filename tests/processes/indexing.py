"""A process that indexes a folder with a slow model of words.

indexing.py ROOT SECONDS_A_BATCH

It prints its start, refusal or end, one JSON object a line.
"""

import asyncio
import sys

import msgspec

from tenure import Host
from tenure.messages.index_work import IndexProgress, IndexWork
from tenure.runtime.doors.search.wiring import IndexWishes
from tenure.runtime.errors import Refused
from tenure.runtime.testing.embedding import Embedders, WordEmbedder


def say(value: object) -> None:
    print(msgspec.json.encode(value).decode(), flush=True)


async def main(root: str, batch_s: float) -> None:
    embedder = WordEmbedder(batch_max=8)

    async def slowly() -> None:
        await asyncio.sleep(batch_s)

    embedder.before = slowly
    wishes = IndexWishes(choose=Embedders(embedder))

    def told(what: IndexWork | IndexProgress) -> None:
        kind = "begun" if isinstance(what, IndexWork) else "progress"
        say({"type": kind, "what": msgspec.to_builtins(what)})

    async with Host.open(root, settings={"index": {"model": "words"}}, index=wishes) as host:
        try:
            say(await host.index.build(told=told))
        except Refused as refused:
            say(refused.reply)


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
