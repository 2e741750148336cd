"""Messages that other programs wrote: whatever of them fits our types, and nothing lost that does.

The transcript keeps their bytes; these are only the views that a model is shown.
"""

from math import isfinite
from typing import Any

import msgspec

from tenure.messages.content import (
    AssistantBlock,
    AssistantMessage,
    ChatMessage,
    StopReason,
    TextBlock,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
)


def message_of(fields: object) -> ChatMessage | None:
    """The message in the JSON object of one; None where a model is shown nothing of it."""
    if not isinstance(fields, dict):
        return None
    moment = _number(fields, "timestamp")
    match fields.get("role"):
        case "user" | "custom":
            return UserMessage(content=content_of(fields.get("content")), timestamp=moment)
        case "assistant":
            return _assistant(fields, moment)
        case "toolResult":
            return ToolResultMessage(
                tool_call_id=_text(fields, "toolCallId"),
                tool_name=_text(fields, "toolName"),
                content=content_of(fields.get("content")),
                is_error=fields.get("isError") is True,
                timestamp=moment,
            )
        case "bashExecution" if fields.get("excludeFromContext") is not True:
            return _user(_shell_text(fields), moment)
        case "compactionSummary":
            summary = _text(fields, "summary")
            return _user(f"<conversation-summary>\n{summary}\n</conversation-summary>", moment)
        case "branchSummary":
            return _user(f"<branch-summary>\n{_text(fields, 'summary')}\n</branch-summary>", moment)
        case _:
            return None


def content_of(content: object) -> tuple[UserBlock, ...]:
    """The text and image blocks of a content; blocks of other kinds are left out."""
    if isinstance(content, str):
        return (TextBlock(text=content),)
    if not isinstance(content, list):
        return ()
    blocks = (_fitting(block, UserBlock) for block in content)
    return tuple(block for block in blocks if block is not None)


def _assistant(fields: dict[str, Any], moment: int) -> AssistantMessage:
    content = fields.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    blocks = (_fitting(block, AssistantBlock) for block in content or ())
    return AssistantMessage(
        content=tuple(block for block in blocks if block is not None),
        api=_text(fields, "api"),
        provider=_text(fields, "provider"),
        model=_text(fields, "model"),
        usage=_fitting(fields.get("usage"), Usage) or Usage(),
        stop_reason=_fitting(fields.get("stopReason"), StopReason) or "stop",
        error_message=_text(fields, "errorMessage") or msgspec.UNSET,
        timestamp=moment,
    )


def _shell_text(fields: dict[str, Any]) -> str:
    """A command that the user ran beside the conversation, as text."""
    text = f"The user ran `{_text(fields, 'command')}`:\n```\n{_text(fields, 'output')}\n```"
    code = fields.get("exitCode")
    if fields.get("cancelled") is True:
        text += "\nIt was cancelled."
    elif isinstance(code, int) and code != 0:
        text += f"\nIt ended with exit code {code}."
    if fields.get("truncated") is True:
        text += f"\nThe output is cut; all of it is in {_text(fields, 'fullOutputPath')}."
    return text


def _user(text: str, moment: int) -> UserMessage:
    return UserMessage(content=(TextBlock(text=text),), timestamp=moment)


def _fitting(value: object, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _number(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    return int(value) if isinstance(value, int | float) and isfinite(value) else 0
