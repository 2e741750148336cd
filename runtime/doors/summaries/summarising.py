"""From the messages that go to the text that stays: by a model where there is one, else by rule."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from tenure.messages.compaction import CompactionPlan, Summary
from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ImageBlock,
    Usage,
    text_of,
)
from tenure.messages.models import ModelCallError
from tenure.runtime.doors.models.answer import failed
from tenure.runtime.doors.summaries.by_rule import CHARS_MAX, summary_by_rule
from tenure.runtime.doors.summaries.carried import Carried, carried_of
from tenure.runtime.doors.summaries.prompts import prompt_of
from tenure.runtime.doors.summaries.sizes import CHARS_A_TOKEN, tokens_of, tokens_of_text
from tenure.runtime.doors.summaries.writing import cut_middle, parted, written
from tenure.runtime.doors.transcripts.conversation import History, Shown

RESERVE_TOKENS = 16_384
"""Of the summariser's window, for its answer."""
PROMPT_TOKENS = 8_000
"""Of the summariser's window, for the request around a part, with the summary so far."""
PART_TOKENS_MIN = 4_000
PART_TOKENS_LEAST = 500
"""Where a model says that even such a part is too long, it is given up."""
ASSUMED_WINDOW = 32_000
"""Of a summariser of which nobody knows how much it can read."""
SUMMARY_CHARS_MAX = RESERVE_TOKENS * CHARS_A_TOKEN * 8 // 10

SAID_CHARS = "saidChars"
QUOTED = "currentPrompt"
"""Names in the details of an entry: how long the summary proper is, and the quoted prompt."""

Say = Callable[[str], Awaitable[AssistantMessage]]
"""Asks a model; raises `ModelCallError`."""


class Folded(msgspec.Struct, frozen=True):
    """The part of a conversation that a plan cuts off."""

    earlier: str
    """The text of the summary before; empty for none."""
    messages: tuple[ChatMessage, ...]
    quoted: str
    """The prompt of the turn that is cut inside: it stays word for word.  Empty for none."""
    carried: Carried
    tokens: int


class Unfolded(Exception):
    """The conversation is not what it was when it was planned; its text says how."""


def folded_of(history: History, plan: CompactionPlan) -> Folded:
    """What the plan cuts off.  Entries that came since are behind the cut.

    Raises:
        Unfolded: the entry that is to be kept is no longer shown.
    """
    shown = history.shown
    index = next((i for i, each in enumerate(shown) if each.entry_id == plan.first_kept), 0)
    if index == 0:
        raise Unfolded("the entry that was to be kept is no longer part of the conversation")
    gone = shown[:index]
    summaries = [each.message for each in gone if each.kind == "summary"]
    messages = tuple(each.message for each in gone if each.kind != "summary")
    return Folded(
        earlier=_earlier(text_of(summaries[-1]), history.details) if summaries else "",
        messages=messages,
        quoted=_quoted(gone, history.details) if plan.cut == "inside_turn" else "",
        carried=carried_of(messages, history.details),
        tokens=sum(tokens_of(each.message) for each in gone),
    )


def by_rule(folded: Folded, instructions: str, problem: str = "") -> Summary:
    """The deterministic summary: at most half as long as what it stands for."""
    text = summary_by_rule(
        folded.messages,
        earlier=folded.earlier,
        instructions=instructions,
        chars_max=min(CHARS_MAX, folded.tokens * CHARS_A_TOKEN // 2),
    )
    return _summary(folded, text, Summary(text="", summariser="deterministic", tokens=0), problem)


async def by_model(folded: Folded, instructions: str, window: int, say: Say) -> Summary:
    """Part by part, each one bringing the summary so far up to date.

    Args:
        window: tokens that the summariser can read; 0 where nobody knows.

    Raises:
        ModelCallError: the model failed, or said nothing.
    """
    size = max(PART_TOKENS_MIN, (window or ASSUMED_WINDOW) - RESERVE_TOKENS - PROMPT_TOKENS)
    waiting = list(parted(written(folded.messages), size))
    running, said, usage, calls = folded.earlier, "", Usage(priced=True), 0
    while waiting:
        try:
            answer = await say(prompt_of(waiting[0], running, instructions))
        except ModelCallError as error:
            size = min(size, _tokens_of_largest(waiting)) // 2
            if error.failure.kind != "context_exceeded" or size < PART_TOKENS_LEAST:
                raise
            waiting = list(parted(waiting, size))
            continue
        del waiting[0]
        calls += 1
        running = cut_middle(text_of(answer).strip(), SUMMARY_CHARS_MAX)
        if not running:
            raise failed("invalid", "the summary was empty")
        usage, said = usage.plus(answer.usage), answer.model
    how = Summary(
        text="",
        summariser="model",
        model=said,
        tokens=0,
        details={"calls": calls, "usage": msgspec.to_builtins(usage)},
    )
    return _summary(folded, running, how, "")


# --- pure parts ----------------------------------------------------------------------------


def _tokens_of_largest(parts: Sequence[str]) -> int:
    return max(tokens_of_text(part) for part in parts)


def _summary(folded: Folded, said: str, how: Summary, problem: str) -> Summary:
    text = "\n\n".join((said, *_additions(folded)))
    details: dict[str, Any] = {**how.details, **folded.carried.details(), SAID_CHARS: len(said)}
    if folded.quoted:
        details[QUOTED] = folded.quoted
    return msgspec.structs.replace(
        how, text=text, tokens=tokens_of_text(text), details=details, problem=problem
    )


def _additions(folded: Folded) -> list[str]:
    """What no summariser may change: the prompt of the turn that goes on, and references."""
    added = []
    if folded.quoted:
        added.append(
            "The request that is being worked on, word for word:\n"
            f"<current-prompt>\n{folded.quoted}\n</current-prompt>"
        )
    carried = folded.carried
    for name, values in (
        ("read-files", carried.files_read),
        ("modified-files", carried.files_modified),
        ("artifacts", tuple(f"artifact:{each}" for each in carried.artifacts)),
    ):
        if values:
            lines = "\n".join(values)
            added.append(f"<{name}>\n{lines}\n</{name}>")
    return added


def _quoted(gone: Sequence[Shown], details: dict[str, Any]) -> str:
    """The prompt of the turn that is cut inside, or what an earlier pass quoted of it."""
    prompts = [each.message for each in gone if each.kind == "prompt"]
    if not prompts:
        quoted = details.get(QUOTED)
        return quoted if isinstance(quoted, str) else ""
    images = _images(prompts[-1])
    note = f"\n({images} images came with it; they are no longer shown.)" if images else ""
    return text_of(prompts[-1]) + note


def _images(message: ChatMessage) -> int:
    if isinstance(message.content, str):
        return 0
    return sum(isinstance(block, ImageBlock) for block in message.content)


def _earlier(text: str, details: dict[str, Any]) -> str:
    """What the summary before said, without what was added to it: that is added anew."""
    inner = text.removeprefix("<conversation-summary>\n").removesuffix("\n</conversation-summary>")
    chars = details.get(SAID_CHARS)
    return inner[:chars] if isinstance(chars, int) and chars > 0 else inner
