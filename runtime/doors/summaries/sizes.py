"""How large a conversation is, in tokens: counted by the provider where it did, else estimated."""

from collections.abc import Sequence

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from tenure.runtime.doors.transcripts.conversation import Shown

CHARS_A_TOKEN = 4
IMAGE_CHARS = 4_800
"""What an image counts as; its real price depends on the provider."""


def tokens_of_text(text: str) -> int:
    return tokens_of_chars(len(text))


def tokens_of_chars(chars: int) -> int:
    """A quarter of the characters, rounded up."""
    return -(-chars // CHARS_A_TOKEN)


def tokens_of(message: ChatMessage) -> int:
    """An estimate: text, thoughts, names and arguments of calls, and images."""
    if isinstance(message.content, str):
        return tokens_of_text(message.content)
    return tokens_of_chars(sum(_chars(block) for block in message.content))


def tokens_shown(shown: Sequence[Shown]) -> int:
    """The whole conversation.

    What a provider counted holds only for what it was shown: a count from before
    the last compaction says nothing, or one pass would call for the next.
    """
    tokens = 0
    for each in reversed(shown):
        if not each.since:
            break
        counted = _counted(each.message)
        if counted:
            return counted + tokens
        tokens += tokens_of(each.message)
    return sum(tokens_of(each.message) for each in shown)


def _counted(message: ChatMessage) -> int:
    """What the provider counted up to and with this message; 0 where it did not."""
    if not isinstance(message, AssistantMessage) or message.stop_reason in ("error", "aborted"):
        return 0
    usage = message.usage
    parts = usage.input + usage.output + usage.cache_read + usage.cache_write
    return usage.total_tokens or parts


def _chars(block: TextBlock | ThinkingBlock | ImageBlock | ToolCallBlock) -> int:
    match block:
        case TextBlock(text=text):
            return len(text)
        case ThinkingBlock(thinking=thinking):
            return len(thinking)
        case ImageBlock():
            return IMAGE_CHARS
        case ToolCallBlock(name=name):
            return len(name) + len(arguments_text(block))


def arguments_text(call: ToolCallBlock) -> str:
    """The arguments of a call as JSON."""
    try:
        return msgspec.json.encode(call.arguments).decode()
    except (TypeError, ValueError, UnicodeEncodeError, RecursionError):
        return repr(call.arguments)
