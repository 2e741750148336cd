"""Following a session that any process writes, without its claim and without its host."""

from collections.abc import AsyncIterator
from typing import Literal

from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts import EntryView, Follower

LOOK_AGAIN_S = 0.1
LOOK_AGAIN_S_MAX = 1.0
"""How long a quiet session is left alone: each look that finds nothing waits twice as long."""


async def follow(
    leaves: Leaves, path: str, since: Literal["now", "start"]
) -> AsyncIterator[EntryView]:
    """The entries of a transcript as they are written; it does not end by itself."""
    follower = Follower(leaves.files, path)
    run = leaves.workers.run
    if since == "now":
        while await run(follower.look):
            pass
    pause_s = LOOK_AGAIN_S
    while True:
        views = await run(follower.look)
        for view in views:
            yield view
        if not views:
            await leaves.clock.sleep(pause_s)
        pause_s = LOOK_AGAIN_S if views else min(2 * pause_s, LOOK_AGAIN_S_MAX)
