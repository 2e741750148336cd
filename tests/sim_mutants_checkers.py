"""Breakages that one checker alone notices, for those that share theirs in `sim_mutants`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from tenure.messages.base import Event
from tenure.messages.turn_effects import ToolCallDone
from tenure.runtime.doors.tools.door import Tools
from tenure.runtime.doors.transcripts import repair
from tenure.runtime.streams import OpenStreams


def the_turn_of_a_lost_owner_is_never_ended() -> AbstractContextManager[object]:
    def lost(self: OpenStreams, owner: str) -> list[Event]:
        self._open.pop(owner, None)
        return []

    return patch.object(OpenStreams, "lost", lost)


def a_torn_end_makes_the_opening_raise() -> AbstractContextManager[object]:
    own = repair._mend

    def mend(file: Any, found: Any) -> None:
        if found.tail.state != "clean":
            raise ValueError("nobody thought of a torn end")
        own(file, found)

    return patch.object(repair, "_mend", mend)


def a_refused_tool_says_that_it_worked() -> AbstractContextManager[object]:
    own = Tools.run

    async def run(self: Tools, effect: Any, context: Any) -> Any:
        outcome = await own(self, effect, context)
        return replace(outcome, is_error=False) if isinstance(outcome, ToolCallDone) else outcome

    return patch.object(Tools, "run", run)


Alone = tuple[Callable[[], AbstractContextManager[object]], str, int]
"""The breakage, and a seed of a workload in which nothing else notices it."""

ALONE: dict[str, Alone] = {
    "Streams": (the_turn_of_a_lost_owner_is_never_ended, "seats", 20),
    "Openings": (a_torn_end_makes_the_opening_raise, "seats", 19),
    "Fences": (a_refused_tool_says_that_it_worked, "seats", 52),
}
