"""What a tool is: a spec that the model sees, and something that runs.

A tool has `spec` and `run(call)`, which blocks or is a coroutine function.  It
returns a `ToolResult`, or raises `ToolRefused` with a sentence that tells the
model what was wrong and what to do.  An embedder makes one of a plain function
with `function_tool` (functions.py).
"""

from functools import cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

from tenure.messages.approval import Preview
from tenure.messages.content import TextBlock, UserBlock
from tenure.messages.models import ToolSpec
from tenure.messages.tokens import CallId, TurnId

A = TypeVar("A", bound=msgspec.Struct)


ABSENT = "absent"
"""The digest of a file that does not exist."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as the model made it and the approval let it pass."""

    tool: str
    arguments: dict[str, Any]
    expects: str = ""
    """SHA-256 (hexadecimal) of the bytes of the file that a preview showed, or `ABSENT`.

    Empty where nobody saw a preview.
    """
    turn_id: TurnId = TurnId("")
    call_id: CallId = CallId("")


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the model gets to see."""

    content: tuple[UserBlock, ...]
    is_error: bool = False
    details: dict[str, Any] = {}
    """For programs, not shown to the model; plain JSON values."""


class ToolRefused(Exception):
    """The call cannot be carried out, and nothing was changed.

    Its text goes to the model: what was wrong, where, and what to do.
    """


class Tool(Protocol):
    """A tool whose `run` blocks; it is called in a worker."""

    @property
    def spec(self) -> ToolSpec: ...

    def run(self, call: ToolCall) -> ToolResult: ...


class AsyncTool(Protocol):
    """A tool whose `run` is a coroutine function; a stop cancels its task."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall) -> ToolResult: ...


AnyTool = Tool | AsyncTool


@runtime_checkable
class PreviewingTool(Protocol):
    """A tool that can show what a call would do to a file."""

    def preview(self, call: ToolCall) -> Preview:
        """Blocks; raises `ToolRefused` where the call would not apply."""
        ...


def text_result(text: str, details: dict[str, Any] | None = None) -> ToolResult:
    """A result of one text."""
    return ToolResult(content=(TextBlock(text=text),), details=details or {})


def error_result(text: str) -> ToolResult:
    """A result that tells the model what went wrong."""
    return ToolResult(content=(TextBlock(text=text),), is_error=True)


def read_arguments(kind: type[A], call: ToolCall) -> A:
    """The arguments of a call as the tool's own struct.

    Raises:
        ToolRefused: an argument is missing, unknown or of the wrong type.
    """
    try:
        return msgspec.convert(call.arguments, kind)
    except msgspec.ValidationError as wrong:
        known = ", ".join(kind.__struct_encode_fields__)
        raise ToolRefused(
            f"wrong arguments for {call.tool}: {wrong}. "
            f"The arguments of {call.tool} are: {known}. Correct the call and make it again."
        ) from None


@cache
def parameters_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a tool's argument struct, references resolved; not to be changed.

    Models and providers cope with a plain object schema; few follow `$ref`.
    """
    (schema,), definitions = msgspec.json.schema_components([kind], ref_template="{name}")
    resolved: dict[str, Any] = _inlined(schema, definitions)
    resolved.pop("title", None)
    resolved.pop("description", None)  # the struct's docstring is not for the model
    return resolved


def _inlined(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"]], definitions)
    return {key: _inlined(value, definitions) for key, value in node.items()}
