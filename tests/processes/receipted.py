"""An embedder whose tool never returns, with a list of receipts of its own, each synced.

receipted.py ROOT MODEL RECEIPTS MARKER
"""

import asyncio
import os
import sys
from typing import TextIO

from tenure import Host
from tenure.messages.models import ToolSpec
from tenure.messages.session import EntriesAppended
from tenure.runtime.doors.tools.functions import function_tool

BLOCK = ToolSpec(
    name="block",
    description="Never returns.",
    parameters={"type": "object", "properties": {}},
    mutating=False,
)


async def main(root: str, model: str, receipts: TextIO, marker: str) -> None:
    def block() -> str:
        with open(marker, "w"):
            pass
        return sys.stdin.read()  # nothing comes

    async with Host.open(root, model=model, tools=(function_tool(BLOCK, block),)) as host:
        seat = await host.seat()
        async for event in seat.prompt("go"):
            if isinstance(event, EntriesAppended):
                receipts.writelines(f"{entry_id}\n" for entry_id in event.entry_ids)
                receipts.flush()
                os.fsync(receipts.fileno())


root, model, receipts, marker = sys.argv[1:]
with open(receipts, "w") as file:
    asyncio.run(main(root, model, file, marker))
