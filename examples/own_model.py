"""A model of your own: any async callable that takes a request and yields events.

It looks at the names in the workspace with a tool, and says how many there are.

    python examples/own_model.py examples/notes
"""

import asyncio
import sys
from collections.abc import AsyncIterator

from tenure import Host
from tenure.messages.content import ToolResultMessage, text_of
from tenure.messages.models import ModelDone, ModelEvent, ModelRequest, ModelText, ModelToolCall
from tenure.messages.turn import TextDelta


async def counting(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    """First a tool call; then, with its result at the end of the conversation, the answer."""
    last = request.messages[-1]
    if isinstance(last, ToolResultMessage):
        names = text_of(last).splitlines()
        yield ModelText(text=f"There are {len(names)} names here, ")
        yield ModelText(text=f"the first is {names[0]}.")
        yield ModelDone()
        return
    yield ModelToolCall(id=f"look_{len(request.messages)}", name="ls", arguments={"path": "."})
    yield ModelDone(stop_reason="toolUse")


async def main(root: str) -> None:
    async with Host.open(root, model=counting) as host:
        seat = await host.seat()
        async for event in seat.prompt("How many?"):
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
    print()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "notes"))
