"""`subagent`: a tool call that runs a conversation of its own, one level deep.

Its calls are decided where the turn's are; it has its own tools and a bound on its
model calls; what it used and what it said stand in the details of the call's result.
A stop of the call, or of the turn, ends it with all that it has under way.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    calls_of,
    text_of,
)
from tenure.messages.limits import Spent
from tenure.messages.models import ModelCallError, ToolSpec
from tenure.messages.subagents import ChildCalled, ChildGated, ChildNotGated, GateChild
from tenure.messages.tokens import CallId, SessionId, turn_session
from tenure.messages.turn_effects import RunTool
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.tools.tool import (
    ToolCall,
    ToolRefused,
    ToolResult,
    error_result,
    parameters_of,
    read_arguments,
    text_result,
)

NAME = "subagent"
NOT_FOR_CHILDREN = frozenset({NAME, "ask_user"})
RUNNING_MAX = 10
"""Subagents of one host that run at a time; further ones wait."""
REQUESTS_MAX = 20
"""Model calls of one subagent, unless it is given fewer."""
SUMMARY_CHARS_MAX = 20_000
CALL_S_MAX = 600.0

SYSTEM = (
    "You are a subagent. Do the one task that you are given with the tools that you have, and "
    "answer with what was found or done; nobody can answer questions of yours."
)


class Asks(Protocol):
    """The models door, as a subagent needs it."""

    async def converse(
        self,
        system: str,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolSpec, ...],
        session_id: SessionId,
        within_s: float,
    ) -> AssistantMessage: ...


RunCall = Callable[[ToolCall], Awaitable[ToolResult]]


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    task: str
    tools: list[str] = []
    requests_max: int = REQUESTS_MAX


class Subagents:
    """Runs subagents, and hands them the decisions about their calls."""

    spec = ToolSpec(
        name=NAME,
        label="Subagent",
        description=(
            "Give one self-contained task to a subagent with a conversation of its own, and get "
            "its answer. `tools` names the tools that it may use; without it, those that only "
            "read. `requests_max` bounds its model calls."
        ),
        parameters=parameters_of(_Task),
        mutating=False,
    )

    def __init__(self, models: Asks, specs: Callable[[], tuple[ToolSpec, ...]]) -> None:
        self._models = models
        self._specs = specs
        self._room = asyncio.Semaphore(RUNNING_MAX)
        self._waiting: dict[str, asyncio.Future[GateChild]] = {}

    async def run(self, effect: RunTool, context: Context, run_call: RunCall) -> ToolResult:
        """The whole conversation, to its answer or its bound."""
        given = read_arguments(_Task, ToolCall(tool=NAME, arguments=effect.arguments))
        if not given.task.strip():
            raise ToolRefused("the task is empty; say what is to be done")
        if given.requests_max < 1:
            raise ToolRefused("requests_max must be at least 1")
        tools = self._tools(given.tools)
        async with self._room:
            child = _Child(effect, context, tools, run_call, self._decide)
            return await child.run(self._models, given.task, min(given.requests_max, REQUESTS_MAX))

    async def gate(self, effect: GateChild, context: Context) -> Outcome:
        """Hand a decision to the subagent that waits for it."""
        future = self._waiting.get(_name(context, effect.child_call_id))
        if future is None or future.done():
            return ChildNotGated(turn_id=effect.turn_id, child_call_id=effect.child_call_id)
        future.set_result(effect)
        return ChildGated(turn_id=effect.turn_id, child_call_id=effect.child_call_id)

    async def _decide(self, context: Context, called: ChildCalled) -> GateChild:
        name = _name(context, called.child_call_id)
        future: asyncio.Future[GateChild] = asyncio.get_running_loop().create_future()
        self._waiting[name] = future
        context.progress(called)
        try:
            return await future
        finally:
            self._waiting.pop(name, None)

    def _tools(self, names: list[str]) -> tuple[ToolSpec, ...]:
        # What changes something would need its checkpoint, which is bound to a turn's own call.
        there = {
            spec.name: spec
            for spec in self._specs()
            if not spec.mutating and spec.name not in NOT_FOR_CHILDREN
        }
        unknown = [name for name in names if name not in there]
        if unknown:
            raise ToolRefused(
                f"a subagent has no tool {', '.join(unknown)}; there are: {', '.join(there)}"
            )
        if not names:
            return tuple(there.values())
        return tuple(there[name] for name in dict.fromkeys(names))


class _Child:
    """One conversation."""

    def __init__(
        self,
        effect: RunTool,
        context: Context,
        tools: tuple[ToolSpec, ...],
        run_call: RunCall,
        decide: Callable[[Context, ChildCalled], Awaitable[GateChild]],
    ) -> None:
        self._effect = effect
        self._context = context
        self._tools = {tool.name: tool for tool in tools}
        self._run_call = run_call
        self._decide = decide
        self._messages: list[ChatMessage] = []
        self._spent = Spent()
        self._calls = 0

    async def run(self, models: Asks, task: str, requests_max: int) -> ToolResult:
        self._messages.append(UserMessage(content=task))
        session_id = turn_session(self._effect.turn_id)
        for _ in range(requests_max):
            try:
                said = await models.converse(
                    SYSTEM,
                    tuple(self._messages),
                    tuple(self._tools.values()),
                    session_id,
                    CALL_S_MAX,
                )
            except ModelCallError as error:
                return self._ended(error_result(f"The subagent's model failed: {error}"))
            calls = calls_of(said)
            self._spent = self._spent.plus(
                Spent(usage=said.usage, requests=1, tool_calls=len(calls))
            )
            self._messages.append(said)
            if not calls:
                text = text_of(said)
                cut = text[:SUMMARY_CHARS_MAX] + "…" if len(text) > SUMMARY_CHARS_MAX else text
                return self._ended(text_result(cut or "The subagent ended without a word."))
            for call in calls:
                self._messages.append(await self._result(call))
        why = f"The subagent used up its {requests_max} model calls before it came to an answer."
        return self._ended(error_result(why))

    async def _result(self, block: ToolCallBlock) -> ToolResultMessage:
        result = await self._carry_out(block)
        return ToolResultMessage(
            tool_call_id=block.id,
            tool_name=block.name,
            content=result.content,
            is_error=result.is_error,
        )

    async def _carry_out(self, block: ToolCallBlock) -> ToolResult:
        spec = self._tools.get(block.name)
        if spec is None:
            return error_result(f"There is no tool {block.name!r} here.")
        self._calls += 1
        child_call_id = CallId(f"{NAME}:{self._effect.call_id}:{self._calls}")
        called = ChildCalled(
            turn_id=self._effect.turn_id,
            call_id=self._effect.call_id,
            child_call_id=child_call_id,
            tool=spec,
            arguments=block.arguments,
        )
        decision = await self._decide(self._context, called)
        if decision.verdict == "deny":
            return error_result(f"Denied: {decision.reason}")
        return await self._run_call(
            ToolCall(
                tool=block.name,
                arguments=block.arguments,
                expects=decision.expects,
                turn_id=self._effect.turn_id,
                call_id=child_call_id,
            )
        )

    def _ended(self, result: ToolResult) -> ToolResult:
        details: dict[str, Any] = {
            "usage": msgspec.to_builtins(self._spent),
            "messages": msgspec.to_builtins(self._messages),
        }
        return ToolResult(content=result.content, is_error=result.is_error, details=details)


def _name(context: Context, child_call_id: CallId) -> str:
    return f"{context.seat} {child_call_id}"
