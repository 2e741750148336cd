"""A workspace on a real or a simulated disk, and the tools on it."""

import asyncio
from typing import Any

from tenure.messages.approval import CallNotPreviewed, CallPreviewed, PreviewCall
from tenure.messages.content import TextBlock
from tenure.messages.tokens import CallId, RequestId, TurnId
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves, system_leaves
from tenure.runtime.doors.tools.door import Tools
from tenure.runtime.doors.tools.tool import AnyTool
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.entropy import SeededEntropy
from tenure.runtime.testing.workers import InlineWorkers

CONTEXT = Context(owner="main/turn", seat="main", progress=lambda outcome: None)


def disk_leaves() -> Leaves:
    """The real file system, with everything else simulated."""
    real = system_leaves()
    return Leaves(
        clock=ManualClock(),
        entropy=SeededEntropy("tools"),
        files=real.files,
        locks=real.locks,
        processes=real.processes,
        sockets=real.sockets,
        web=real.web,
        workers=InlineWorkers(),
    )


class Bench:
    """Makes calls on the tools of one root and gives back what came of them."""

    def __init__(self, root: object, leaves: Leaves | None = None, *extra: AnyTool) -> None:
        self.tools = Tools(leaves or disk_leaves(), str(root), extra)

    def call(self, tool: str, *, expects: str = "", **arguments: Any) -> ToolCallDone:
        effect = RunTool(
            turn_id=TurnId("s/1"),
            call_id=CallId("c1"),
            tool=tool,
            arguments=arguments,
            expects=expects,
        )
        outcome = asyncio.run(self.tools.run(effect, CONTEXT))
        assert isinstance(outcome, ToolCallDone)
        assert (outcome.turn_id, outcome.call_id) == (effect.turn_id, effect.call_id)
        return outcome

    def ok(self, tool: str, *, expects: str = "", **arguments: Any) -> str:
        """The text of a call that must succeed."""
        done = self.call(tool, expects=expects, **arguments)
        assert not done.is_error, text(done)
        return text(done)

    def error(self, tool: str, *, expects: str = "", **arguments: Any) -> str:
        """The text of a call that must be an error result."""
        done = self.call(tool, expects=expects, **arguments)
        assert done.is_error, text(done)
        return text(done)

    def preview(self, tool: str, **arguments: Any) -> CallPreviewed | CallNotPreviewed:
        effect = PreviewCall(request_id=RequestId("r1"), tool=tool, arguments=arguments)
        outcome = asyncio.run(self.tools.preview(effect, CONTEXT))
        assert isinstance(outcome, CallPreviewed | CallNotPreviewed)
        assert outcome.request_id == "r1"
        return outcome

    def shown(self, tool: str, **arguments: Any) -> CallPreviewed:
        """The preview of a call that must have one."""
        outcome = self.preview(tool, **arguments)
        assert isinstance(outcome, CallPreviewed), outcome
        return outcome


def text(done: ToolCallDone) -> str:
    return "\n".join(block.text for block in done.content if isinstance(block, TextBlock))
