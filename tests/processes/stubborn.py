"""A command whose work does not end by itself: what its signals do is printed."""

import asyncio

from tenure.runtime.cli.hosting import launch
from tenure.runtime.cli.terminal import Interrupts


async def work(interrupts: Interrupts) -> int:
    interrupts.first(lambda: print("stopping", flush=True))
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("ended in order", flush=True)
    return 0


launch(work)
