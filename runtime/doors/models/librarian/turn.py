"""What the librarian sees of the conversation: the prompt, and what its tools said since."""

from collections.abc import Iterable

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    calls_of,
    text_of,
)
from tenure.messages.models import ModelRequest

SUMMARY_MARK = "<conversation-summary>"
"""Begins the message that stands for a compacted conversation: nobody asked that."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and its result."""

    call: ToolCallBlock
    text: str
    is_error: bool


Round = tuple[Done, ...]
"""The calls of one message."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Where the librarian stands."""

    prompt: str
    earlier_prompts: tuple[str, ...]
    """The last first."""
    earlier_answers: tuple[str, ...]
    """The last first."""
    rounds: tuple[Round, ...]
    """What was called since the prompt."""
    tools: frozenset[str]

    @property
    def done(self) -> tuple[Done, ...]:
        return tuple(done for one_round in self.rounds for done in one_round)

    def of(self, tool: str) -> tuple[Done, ...]:
        return tuple(done for done in self.done if done.call.name == tool)


def turn_of(request: ModelRequest) -> Turn:
    messages = request.messages
    last = max((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), default=-1)
    before = messages[: max(last, 0)]
    return Turn(
        prompt=text_of(messages[last]) if last >= 0 else "",
        earlier_prompts=tuple(
            text
            for message in reversed(before)
            if isinstance(message, UserMessage) and SUMMARY_MARK not in (text := text_of(message))
        ),
        earlier_answers=tuple(
            text_of(message)
            for message in reversed(before)
            if isinstance(message, AssistantMessage) and text_of(message)
        ),
        rounds=tuple(_rounds(messages[last + 1 :])),
        tools=frozenset(tool.name for tool in request.tools),
    )


def _rounds(messages: tuple[ChatMessage, ...]) -> Iterable[Round]:
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolResultMessage)}
    for message in messages:
        if not isinstance(message, AssistantMessage):
            continue
        done = tuple(
            _done(call, results[call.id]) for call in calls_of(message) if call.id in results
        )
        if done:
            yield done


def _done(call: ToolCallBlock, result: ToolResultMessage) -> Done:
    return Done(call=call, text=text_of(result), is_error=result.is_error)
