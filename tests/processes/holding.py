"""An embedder that has a session and does something with it until it is told to end.

holding.py ROOT MODE FILE      MODE: idle, stream, tool, ask

It prints its session, its turn and its events, one JSON object a line.  A tool
does not end before FILE is there; the model of `stream` never ends by itself.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import msgspec

from tenure import Host
from tenure.messages.models import (
    ModelDone,
    ModelEvent,
    ModelRequest,
    ModelText,
    ModelToolCall,
    ToolSpec,
)
from tenure.runtime.doors.tools.functions import function_tool

STUBBORN = ToolSpec(
    name="stubborn",
    description="Ends when it likes.",
    parameters={"type": "object", "properties": {}},
    mutating=False,
)


def say(value: object) -> None:
    print(msgspec.json.encode(value).decode(), flush=True)


async def talks(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    number = 0
    while True:
        yield ModelText(text=f"word{number} ")
        number += 1
        await asyncio.sleep(0.002)


async def calls(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    if request.messages[-1].__struct_config__.tag == "toolResult":
        yield ModelText(text="done")
        yield ModelDone()
        return
    yield ModelToolCall(id="c1", name="stubborn", arguments={})
    yield ModelDone(stop_reason="toolUse")


async def writes(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    if request.messages[-1].__struct_config__.tag == "toolResult":
        yield ModelText(text="done")
        yield ModelDone()
        return
    yield ModelToolCall(id="c1", name="write", arguments={"path": "new.txt", "content": "x\n"})
    yield ModelDone(stop_reason="toolUse")


def is_there(file: str) -> bool:
    return os.path.exists(file)


async def main(root: str, mode: str, file: str) -> None:
    async def stubborn() -> str:
        while not is_there(file):
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue  # it is in the middle of something
        return "ended"

    model = {"stream": talks, "tool": calls, "ask": writes}.get(mode)
    async with Host.open(
        root, model=model or "librarian", tools=(function_tool(STUBBORN, stubborn),)
    ) as host:
        seat = await host.seat()
        if mode == "idle":
            async for _ in seat.prompt("hello"):
                pass
        say({"type": "Ready", "session": seat.token.session_id, "socket": host.socket_path})
        if mode == "idle":
            async for published in host.events():
                say(published.event)
        async for event in seat.prompt("go"):
            say(event)
        async for published in host.events():
            say(published.event)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
