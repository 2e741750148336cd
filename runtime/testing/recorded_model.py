"""Cassettes: what a real model said once, said again in a test.

    cassette = Cassette()
    host = Host.open(root, model=recording(real_model, cassette))     # once
    path.write_text(cassette.to_text())

    cassette = Cassette.from_text(path.read_text())                   # in every test
    host = Host.open(root, model=recorded(cassette))

A request is known by a digest of what the model would see.  What differs from run
to run without meaning anything (times, ids of calls and of the session, usage) is
not part of it.  A cassette holds the answers and the first words of each prompt,
never a key; look through it before you publish it all the same.
"""

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from tenure.messages.models import (
    Model,
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
)
from tenure.runtime.doors.models.mending import mended, mended_value
from tenure.runtime.doors.models.stream import events_of

PROMPT_CHARS = 80


class Take(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded call."""

    digest: str
    prompt: str
    """The beginning of the last prompt; for people."""
    events: tuple[ModelEvent, ...]
    failure: ModelFailure | None = None
    """How it failed after these events; None for a whole answer."""


class Cassette:
    """Recorded calls in their order.  One cassette is for one run."""

    def __init__(self, takes: tuple[Take, ...] = ()) -> None:
        self._takes = list(takes)
        self._played: defaultdict[str, int] = defaultdict(int)

    @classmethod
    def from_text(cls, text: str) -> "Cassette":
        """Read JSON Lines, one call a line.

        Raises:
            msgspec.DecodeError: it is no cassette.
        """
        rows = [row for row in text.split("\n") if row.strip()]
        return cls(tuple(msgspec.json.decode(row, type=Take) for row in rows))

    def to_text(self) -> str:
        return "".join(msgspec.json.encode(take).decode() + "\n" for take in self._takes)

    def add(self, take: Take) -> None:
        self._takes.append(take)

    def next_take(self, request: ModelRequest) -> Take:
        """The next answer to this request: equal requests have their answers in order.

        Raises:
            ModelCallError: invalid, where there is none or none any more.
        """
        digest = digest_of(request)
        takes = [take for take in self._takes if take.digest == digest]
        number = self._played[digest]
        if number >= len(takes):
            reason = (
                f"the cassette has {len(takes)} answers to the request {digest[:12]} "
                f"({_prompt(request)!r}) and this is call {number + 1}; record it again"
            )
            raise ModelCallError(ModelFailure(kind="invalid", reason=reason))
        self._played[digest] += 1
        return takes[number]


def recording(model: Model, cassette: Cassette) -> Model:
    """The model, with each call that comes to its end written to the cassette."""

    async def recorder(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        events: list[ModelEvent] = []
        failure: ModelFailure | None = None
        try:
            async for event in events_of(model, request):
                events.append(event)
                yield event
        except ModelCallError as error:
            failure = error.failure
            raise
        finally:
            # A call that was cancelled has neither an end nor a failure, and is not kept.
            if failure or (events and _is_done(events[-1])):
                take = Take(
                    digest=digest_of(request),
                    prompt=_prompt(request),
                    events=tuple(events),
                    failure=failure,
                )
                cassette.add(take)

    return recorder


def recorded(cassette: Cassette) -> Model:
    """A model that says what the cassette holds, and fails where it failed."""

    async def player(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        take = cassette.next_take(request)
        for event in take.events:
            yield event
        if take.failure is not None:
            raise ModelCallError(take.failure)

    return player


def digest_of(request: ModelRequest) -> str:
    """SHA-256 (hexadecimal) of what the model sees, ids numbered in their order."""
    numbers: dict[str, int] = {}
    seen = {
        "system": request.system,
        "tools": [[tool.name, tool.description, tool.parameters] for tool in request.tools],
        "messages": [_seen(message, numbers) for message in request.messages],
    }
    return hashlib.sha256(
        msgspec.json.encode(mended_value(seen), order="deterministic")
    ).hexdigest()


def _seen(message: ChatMessage, numbers: dict[str, int]) -> list[Any]:
    match message:
        case UserMessage():
            return ["user", msgspec.to_builtins(message.content)]
        case AssistantMessage():
            return ["assistant", [_seen_block(block, numbers) for block in message.content]]
        case ToolResultMessage():
            number = numbers.setdefault(message.tool_call_id, len(numbers))
            content = msgspec.to_builtins(message.content)
            return ["toolResult", number, message.tool_name, content, message.is_error]


def _seen_block(block: Any, numbers: dict[str, int]) -> list[Any]:
    match block:
        case ToolCallBlock():
            number = numbers.setdefault(block.id, len(numbers))
            return ["call", number, block.name, block.arguments]
        case ThinkingBlock():
            return ["thinking", block.thinking]
        case _:
            return ["text", block.text]


def _prompt(request: ModelRequest) -> str:
    prompts = [m for m in request.messages if isinstance(m, UserMessage)]
    return mended(text_of(prompts[-1]))[:PROMPT_CHARS] if prompts else ""


def _is_done(event: ModelEvent) -> bool:
    return isinstance(event, ModelDone)
