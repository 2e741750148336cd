"""What a conversation is made of: messages and their blocks, as a transcript holds them.

The field names on disk are those of the pi v3 session dialect (camel case), so
the published pi coding agent reads what we write.  A block or field that we do
not know never passes through these types: the transcript door keeps the bytes.
"""

from typing import Any, Literal

import msgspec

StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]
"""Why the model stopped, in the words of the dialect."""


class TextBlock(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="text", omit_defaults=True
):
    text: str


class ThinkingBlock(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="thinking",
    rename="camel",
    omit_defaults=True,
):
    thinking: str
    thinking_signature: str = ""
    """The provider's opaque proof of this thought; sent back as it came."""


class ImageBlock(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="image", rename="camel"
):
    data: str
    """Base64."""
    mime_type: str


class ToolCallBlock(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="toolCall",
    rename="camel",
):
    id: str
    name: str
    arguments: dict[str, Any]


AssistantBlock = TextBlock | ThinkingBlock | ToolCallBlock
UserBlock = TextBlock | ImageBlock


class Cost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens of one model call, or a sum of calls."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = Cost()
    """Zero where the price is unknown: `priced` tells the two apart."""
    priced: bool = False

    def plus(self, other: "Usage") -> "Usage":
        """The sum of two usages; priced only where both are."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            total_tokens=self.total_tokens + other.total_tokens,
            cost=Cost(
                input=self.cost.input + other.cost.input,
                output=self.cost.output + other.cost.output,
                cache_read=self.cost.cache_read + other.cost.cache_read,
                cache_write=self.cost.cache_write + other.cost.cache_write,
                total=self.cost.total + other.cost.total,
            ),
            priced=self.priced and other.priced,
        )


class UserMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="user", rename="camel"
):
    content: tuple[UserBlock, ...] | str
    timestamp: int = 0
    """Wall-clock milliseconds since the epoch."""


class AssistantMessage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="role",
    tag="assistant",
    rename="camel",
    omit_defaults=False,
):
    content: tuple[AssistantBlock, ...]
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    stop_reason: StopReason = "stop"
    error_message: str | msgspec.UnsetType = msgspec.UNSET
    provider_part: Any | msgspec.UnsetType = msgspec.UNSET
    """What the provider needs back unchanged when this message is replayed."""
    timestamp: int = 0


class ToolResultMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="role", tag="toolResult", rename="camel"
):
    tool_call_id: str
    tool_name: str
    content: tuple[UserBlock, ...]
    details: Any | msgspec.UnsetType = msgspec.UNSET
    is_error: bool = False
    timestamp: int = 0


ChatMessage = UserMessage | AssistantMessage | ToolResultMessage


def text_of(message: ChatMessage) -> str:
    """The plain text of a message: its text blocks, joined by newlines."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def calls_of(message: AssistantMessage) -> tuple[ToolCallBlock, ...]:
    """The tool calls of a message, in the order the model made them."""
    return tuple(block for block in message.content if isinstance(block, ToolCallBlock))
