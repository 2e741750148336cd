"""Our messages as the library's.  Imports pydantic-ai; see providers.py."""

import base64
import binascii
from collections.abc import Iterable

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as LibraryRequest
from pydantic_ai.tools import ToolDefinition

from tenure.messages.content import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from tenure.messages.models import ModelRequest, ToolSpec
from tenure.runtime.doors.models.provider_part import response_of

NO_RESULT = "No result of this call was recorded."


def library_tools(tools: tuple[ToolSpec, ...]) -> list[ToolDefinition]:
    return [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
        )
        for tool in tools
    ]


def library_messages(request: ModelRequest) -> list[ModelMessage]:
    """The conversation, with calls and results in the pairs that every provider demands.

    A call without a result gets one that says so, and a result without a call is
    told as text: one missing half would make the provider refuse everything.
    """
    messages: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    open_calls: dict[str, ToolCallPart] = {}

    def say() -> None:
        unanswered = [
            ToolReturnPart(
                tool_name=call.tool_name,
                content=NO_RESULT,
                tool_call_id=call_id,
                outcome="interrupted",
            )
            for call_id, call in open_calls.items()
        ]
        open_calls.clear()
        if parts or unanswered:
            said = [*unanswered, *parts]
            messages.append(LibraryRequest(parts=said, instructions=request.system or None))
            parts.clear()

    for message in request.messages:
        match message:
            case UserMessage():
                parts.append(UserPromptPart(content=_content(message.content)))
            case ToolResultMessage() if message.tool_call_id in open_calls:
                del open_calls[message.tool_call_id]
                parts.append(_result(message))
            case ToolResultMessage():
                parts.append(UserPromptPart(content=_stray(message)))
            case AssistantMessage():
                response = response_of(message) or _response(message)
                if response.parts:
                    say()
                    messages.append(response)
                    calls = (p for p in response.parts if isinstance(p, ToolCallPart))
                    open_calls.update({call.tool_call_id: call for call in calls})
    say()
    return messages


def _response(message: AssistantMessage) -> ModelResponse:
    provider = message.provider or None
    parts: list[ModelResponsePart] = []
    for block in message.content:
        match block:
            case TextBlock() if block.text:
                parts.append(TextPart(content=block.text))
            case ThinkingBlock() if block.thinking_signature and provider:
                parts.append(
                    ThinkingPart(
                        content=block.thinking,
                        signature=block.thinking_signature,
                        provider_name=provider,
                    )
                )
            case ThinkingBlock() if block.thinking:
                parts.append(ThinkingPart(content=block.thinking))
            case ToolCallBlock():
                parts.append(
                    ToolCallPart(tool_name=block.name, args=block.arguments, tool_call_id=block.id)
                )
    return ModelResponse(parts=parts, model_name=message.model or None, provider_name=provider)


def _result(message: ToolResultMessage) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=message.tool_name,
        content=_content(message.content),
        tool_call_id=message.tool_call_id,
        outcome="failed" if message.is_error else "success",
    )


def _stray(message: ToolResultMessage) -> str | list[UserContent]:
    told = f"A result of the tool {message.tool_name}, whose call is not shown:"
    return [told, *_items(message.content)]


def _content(content: tuple[UserBlock, ...] | str) -> str | list[UserContent]:
    if isinstance(content, str):
        return content
    items = list(_items(content))
    if all(isinstance(item, str) for item in items):
        return "\n".join(item for item in items if isinstance(item, str))
    return items


def _items(content: tuple[UserBlock, ...]) -> Iterable[UserContent]:
    for block in content:
        if isinstance(block, ImageBlock):
            yield _image(block)
        elif block.text:
            yield block.text


def _image(block: ImageBlock) -> UserContent:
    try:
        data = base64.b64decode(block.data, validate=True)
    except binascii.Error:
        return "[an image that could not be read]"
    return BinaryContent(data=data, media_type=block.mime_type)
