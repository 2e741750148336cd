"""The part of a conversation that is summarised, as text for a summariser, in parts that fit."""

from collections.abc import Iterable, Iterator, Sequence

from tenure.messages.content import (
    ChatMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tenure.runtime.doors.summaries.sizes import CHARS_A_TOKEN, arguments_text

RESULT_CHARS_MAX = 8_000
"""Of one tool result; its beginning and its end are kept."""


def written(messages: Iterable[ChatMessage]) -> tuple[str, ...]:
    """Each message as tagged text, with a newline at its end."""
    return tuple(_written(message) for message in messages)


def parted(texts: Sequence[str], tokens_max: int) -> tuple[str, ...]:
    """The texts, joined in order into parts of this size at most; none is lost.

    A text that is larger than a part is cut into several.
    """
    chars_max = max(tokens_max, 1) * CHARS_A_TOKEN
    parts: list[str] = []
    part: list[str] = []
    size = 0
    for text in texts:
        if part and size + len(text) > chars_max:
            parts.append("".join(part))
            part, size = [], 0
        if len(text) > chars_max:
            *whole, text = _slices(text, chars_max)
            parts += whole
        part.append(text)
        size += len(text)
    if part:
        parts.append("".join(part))
    return tuple(parts)


def cut_middle(text: str, chars_max: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= chars_max:
        return text
    half = chars_max // 2
    left_out = len(text) - 2 * half
    return (
        f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:] if half else ''}"
    )


# --- pure parts ----------------------------------------------------------------------------


def _slices(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _written(message: ChatMessage) -> str:
    match message:
        case UserMessage(content=content) if isinstance(content, str):
            return f"[User]: {content}\n"
        case UserMessage(content=content):
            return "".join(_block("User", block) for block in content if not isinstance(block, str))
        case ToolResultMessage(tool_name=name, is_error=is_error):
            text = "\n".join(
                block.text if isinstance(block, TextBlock) else "[image]"
                for block in message.content
            )
            failed = ", failed" if is_error else ""
            return f"[Result of {name}{failed}]: {cut_middle(text, RESULT_CHARS_MAX)}\n"
        case _:
            return "".join(_block("Assistant", block) for block in message.content)


def _block(who: str, block: TextBlock | ThinkingBlock | ImageBlock | ToolCallBlock) -> str:
    match block:
        case TextBlock(text=text):
            return f"[{who}]: {text}\n"
        case ThinkingBlock(thinking=thinking):
            return f"[{who} thinking]: {thinking}\n"
        case ImageBlock():
            return f"[{who}]: [image]\n"
        case ToolCallBlock(name=name):
            return f"[{who} calls]: {name}({arguments_text(block)})\n"
