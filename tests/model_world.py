"""What the tests of the models door share: a door in a simulated world, and one call of it."""

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tenure.messages.base import Outcome
from tenure.messages.content import ChatMessage, UserMessage
from tenure.messages.models import Model, ToolSpec
from tenure.messages.tokens import SessionId, turn_id
from tenure.messages.turn_effects import (
    CallModel,
    ModelCallDone,
    ModelCallFailed,
    ModelDelta,
    PrepareTurn,
    TurnNotPrepared,
    TurnPrepared,
)
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.answer import ANSWER_BYTES_MAX
from tenure.runtime.doors.models.door import Models
from tenure.runtime.testing.clock import ManualClock
from tenure.runtime.testing.leaves import memory_leaves

SESSION = SessionId("0b54cc8e-6f8b-4a5e-9d51-5e5a1f9f6a01")
TURN = turn_id(SESSION, 1)
NO_KEYS: Mapping[str, str] = MappingProxyType({})


class World:
    """A models door, what its sources hold, and what came out of it."""

    def __init__(
        self,
        default: str | Model = "librarian",
        *,
        base_url: str = "",
        environ: Mapping[str, str] = NO_KEYS,
        messages: tuple[ChatMessage, ...] = (UserMessage(content="Hello"),),
        tools: tuple[ToolSpec, ...] = (),
        leaves: Leaves | None = None,
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self.leaves = leaves or memory_leaves()
        self.messages = messages
        self.tools = tools
        self.progress: list[Outcome] = []
        self.on_progress: Callable[[Outcome], None] = self.progress.append
        self.models = Models(
            self.leaves, self, self, default, base_url, environ=environ, bytes_max=bytes_max
        )

    @property
    def clock(self) -> ManualClock:
        clock = self.leaves.clock
        assert isinstance(clock, ManualClock)
        return clock

    def context(self, session_id: SessionId) -> tuple[ChatMessage, ...]:
        return self.messages

    def specs(self) -> tuple[ToolSpec, ...]:
        return self.tools

    async def prepare(self, model: str = "") -> TurnPrepared | TurnNotPrepared:
        effect = PrepareTurn(turn_id=TURN, model=model)
        return await self.models.prepare(effect, self._door_context())

    async def call(self, model: str = "host", call: int = 1) -> ModelCallDone | ModelCallFailed:
        effect = CallModel(
            turn_id=TURN,
            call=call,
            session_id=SESSION,
            model=model,
            system="Be brief.",
            tools=self.tools,
        )
        return await self.models.call(effect, self._door_context())

    def start(self, model: str = "host") -> "asyncio.Task[ModelCallDone | ModelCallFailed]":
        return asyncio.get_running_loop().create_task(self.call(model))

    @property
    def deltas(self) -> list[str]:
        return [delta.text for delta in self.progress if isinstance(delta, ModelDelta)]

    def _door_context(self) -> Context:
        return Context(owner="main/turn", seat="main", progress=self.on_progress)


async def until(condition: Callable[[], bool], loops_max: int = 2_000) -> None:
    """Let the loop run until something holds; fails where it never does."""
    for _ in range(loops_max):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be")
