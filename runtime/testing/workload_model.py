"""The models and tools of a workload: they do what the plan's moves say."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from itertools import cycle
from typing import Any

from tenure.messages.content import UserMessage, text_of
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelThinking,
    ModelToolCall,
    ToolSpec,
)
from tenure.runtime.doors.summaries.prompts import SYSTEM as SUMMARY_SYSTEM
from tenure.runtime.doors.tools.tool import ToolCall, ToolResult, text_result
from tenure.runtime.testing.loop import SimClock
from tenure.runtime.testing.workload import Fail, Garbage, Move, Say, Stall, ToolUse, Use

LATE_MS = 400
NAME_CHARS_MAX = 60
"""Of a prompt, in what the model says of it."""


class PlannedModel:
    """One process's model: it knows the moves by the text of the prompt."""

    def __init__(
        self,
        moves: Mapping[str, tuple[Move, ...]],
        clock: SimClock,
        summaries: tuple[Move, ...] = (),
    ) -> None:
        self._moves = moves
        self._summaries = cycle(summaries or (Say(),))
        self._clock = clock
        self._calls: dict[tuple[str, str], int] = {}

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.system == SUMMARY_SYSTEM:
            return self._act(next(self._summaries), request, "summary")
        prompt = next(
            (text_of(each) for each in reversed(request.messages) if isinstance(each, UserMessage)),
            "",
        )
        place = (request.session_id, prompt)
        number = self._calls.get(place, 0)
        self._calls[place] = number + 1
        moves = self._moves.get(prompt, ())
        move: Move = moves[number] if number < len(moves) else Say()
        return self._act(move, request, f"{prompt[:NAME_CHARS_MAX]}.{number}")

    async def _act(self, move: Move, request: ModelRequest, name: str) -> AsyncIterator[ModelEvent]:
        # The text names its session: it must never be found in another one's file.
        said = f"[{request.session_id}]{name} "
        match move:
            case Say(pieces=pieces, pause_ms=pause_ms, stop=stop):
                yield ModelThinking(text=said)
                for _ in range(pieces):
                    if pause_ms:
                        await self._clock.sleep(pause_ms / 1000)
                    yield ModelText(text=said)
                yield ModelDone(stop_reason=stop)
            case Use(calls=calls, stop=stop):
                yield ModelText(text=said)
                for place, use in enumerate(calls):
                    yield _call(f"{name}#{place}", use)
                yield ModelDone(stop_reason=stop)
            case Fail(kind=kind, pieces=pieces, retry_after_ms=retry_after_ms):
                for _ in range(pieces):
                    yield ModelText(text=said)
                failure = ModelFailure(kind=kind, reason="planned", retry_after_ms=retry_after_ms)
                raise ModelCallError(failure)
            case Stall(when_cancelled=when_cancelled):
                yield ModelText(text=said)
                await self._stall(when_cancelled)
                yield ModelText(text=f"{said}late")
                yield ModelDone()
            case Garbage():
                for event in _garbage(move, said, name):
                    yield event

    async def _stall(self, when_cancelled: str) -> None:
        try:
            await self._clock.sleep(1_000_000)
        except asyncio.CancelledError:
            if when_cancelled != "late":
                raise
            await self._clock.sleep(LATE_MS / 1000)


def _call(call_id: str, use: ToolUse) -> ModelToolCall:
    arguments: dict[str, Any] = {}
    match use.tool:
        case "write":
            arguments = {"path": use.path, "content": use.text}
        case "edit":
            arguments = {"path": use.path, "edits": [{"oldText": "line", "newText": use.text}]}
        case "rename":
            arguments = {"path": use.path, "newPath": f"{use.path}.moved"}
        case "search":
            arguments = {"query": use.text or "line"}
        case "read" | "ls" | "delete":
            arguments = {"path": use.path or "."}
        case "slow" | "poke" | "stubborn" | "broken":
            arguments = {"ms": use.ms, "text": use.text}
    return ModelToolCall(id=call_id, name=use.tool, arguments=arguments)


def _garbage(move: Garbage, said: str, name: str) -> list[Any]:
    match move.kind:
        case "no_done":
            return [ModelText(text=said)]
        case "no_event":
            return [said, ModelDone()]
        case "bad_arguments":
            bad = ModelToolCall(id=f"{name}#0", name="write", arguments='{"path": ')
            return [bad, ModelDone(stop_reason="toolUse")]
        case "same_ids":
            call = ModelToolCall(id=f"{name}#0", name="ls", arguments={"path": "."})
            return [call, call, ModelDone(stop_reason="toolUse")]
        case "raises":
            raise ValueError("the model's own code is wrong")


# --- tools -----------------------------------------------------------------------------------

_PARAMETERS = {
    "type": "object",
    "properties": {"ms": {"type": "integer"}, "text": {"type": "string"}},
}


class SlowTool:
    """Takes a while.  `stubborn` takes a while longer when it is cancelled; `broken` raises."""

    def __init__(self, name: str, clock: SimClock) -> None:
        changes = name in ("poke", "stubborn")
        self.spec = ToolSpec(
            name=name,
            description="Takes a while.",
            parameters=_PARAMETERS,
            mutating=changes,
            sequential=name == "poke",
        )
        self._clock = clock

    async def run(self, call: ToolCall) -> ToolResult:
        ms = int(call.arguments.get("ms", 0))
        if call.tool == "broken":
            raise ValueError("the tool's own code is wrong")
        try:
            await self._clock.sleep(ms / 1000)
        except asyncio.CancelledError:
            if call.tool != "stubborn":
                raise
            await self._clock.sleep(LATE_MS / 1000)
        return text_result(f"took {ms} ms")


def own_tools(clock: SimClock) -> tuple[SlowTool, ...]:
    """The tools of the workload beside those of the workspace."""
    return tuple(SlowTool(name, clock) for name in ("slow", "poke", "stubborn", "broken"))
