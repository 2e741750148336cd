"""Tools that an embedder makes of plain functions.

    spec = ToolSpec(
        name="weather",
        description="The weather of a city.",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
        mutating=False,
    )

    async def weather(city: str) -> str:
        return await look_up(city)

    Tools(leaves, root, extra=(function_tool(spec, weather),))

The arguments are checked against `parameters` and given by name.  The function
returns text, a `ToolResult`, or any other value, which the model sees as JSON.
An `async` function runs on the event loop, and a stop cancels its task.  A plain
one runs in a worker: a stop does not reach it, it runs to its end, and its late
result is dropped.  What the function raises becomes an error result; raise
`ToolRefused` to choose its whole text.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from tenure.messages.models import ToolSpec
from tenure.runtime.doors.tools.schema import check_arguments
from tenure.runtime.doors.tools.tool import ToolCall, ToolResult, text_result


class BlockingFunction:
    """A tool made of a plain function."""

    def __init__(self, spec: ToolSpec, function: Callable[..., object]) -> None:
        self.spec = spec
        self._function = function

    def run(self, call: ToolCall) -> ToolResult:
        check_arguments(self.spec, call.arguments)
        return _result(self._function(**call.arguments))


class AsyncFunction:
    """A tool made of a coroutine function."""

    def __init__(self, spec: ToolSpec, function: Callable[..., Awaitable[object]]) -> None:
        self.spec = spec
        self._function = function

    async def run(self, call: ToolCall) -> ToolResult:
        check_arguments(self.spec, call.arguments)
        return _result(await self._function(**call.arguments))


def function_tool(
    spec: ToolSpec, function: Callable[..., object]
) -> BlockingFunction | AsyncFunction:
    """A tool of a function that takes the arguments by name.

    Raises:
        ValueError: `spec.parameters` is not the schema of an object.
    """
    if spec.parameters.get("type") != "object":
        raise ValueError(f"tool {spec.name}: parameters must be a JSON Schema with type 'object'")
    called = getattr(function, "__call__", function)  # noqa: B004 - an object may be the function
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return AsyncFunction(spec, cast(Callable[..., Awaitable[object]], function))
    return BlockingFunction(spec, function)


def _result(value: Any) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return text_result(value)
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the function gave a coroutine; declare it with async def")
    return text_result(msgspec.json.encode(value).decode())
