"""Conversations for the tests of compaction, as a model is shown them."""

from collections.abc import Sequence

from tenure.messages.compaction import CompactionPlan, Trigger
from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from tenure.messages.settings import CompactionRules
from tenure.runtime.doors.summaries.planning import NotPlanned, plan_of
from tenure.runtime.doors.transcripts.conversation import History, Shown

RULES = CompactionRules()


def user(text: str) -> UserMessage:
    return UserMessage(content=text, timestamp=1)


def answer(text: str, *calls: str, tokens: int = 0, path: str = "a.md") -> AssistantMessage:
    """An assistant's message; `tokens` is what the provider counted up to here."""
    blocks = [ToolCallBlock(id=call, name="read", arguments={"path": path}) for call in calls]
    usage = Usage(total_tokens=tokens)
    return AssistantMessage(content=(TextBlock(text=text), *blocks), usage=usage, timestamp=1)


def result(call: str, text: str = "found") -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call, tool_name="read", content=(TextBlock(text=text),), timestamp=1
    )


def of_tokens(count: int, text: str = "x") -> str:
    """A text that is estimated at this many tokens."""
    return (text * (count * 4))[: count * 4]


def history(
    *messages: ChatMessage,
    summary: str = "",
    kept: int = 0,
    details: dict[str, object] | None = None,
) -> History:
    """A conversation; with a summary the first `kept` messages came before its compaction."""
    shown: list[Shown] = []
    if summary:
        text = f"<conversation-summary>\n{summary}\n</conversation-summary>"
        shown.append(Shown("", user(text), "summary", False))
    for number, message in enumerate(messages):
        kind = "prompt" if isinstance(message, UserMessage) else "other"
        since = not summary or number >= kept
        shown.append(Shown(f"e{number}", message, kind, since))
    return History(tuple(shown), details or {})


def turns(count: int, tokens: int) -> tuple[ChatMessage, ...]:
    """Turns of a prompt and an answer, of this size together."""
    messages: list[ChatMessage] = []
    for number in range(count):
        messages.append(user(of_tokens(tokens // 2, f"prompt {number} ")))
        messages.append(answer(of_tokens(tokens - tokens // 2, f"answer {number} ")))
    return tuple(messages)


def plan(
    told: History,
    trigger: Trigger = "threshold",
    window: int = 1_000,
    rules: CompactionRules = RULES,
) -> CompactionPlan | NotPlanned:
    return plan_of(told, trigger, window, rules)


def planned(told: History, trigger: Trigger = "threshold", window: int = 1_000) -> CompactionPlan:
    found = plan(told, trigger, window)
    assert isinstance(found, CompactionPlan), found
    return found


def parts(told: History, found: CompactionPlan) -> tuple[Sequence[Shown], Sequence[Shown]]:
    """What is summarised, and what stays."""
    index = next(i for i, each in enumerate(told.shown) if each.entry_id == found.first_kept)
    return told.shown[:index], told.shown[index:]
