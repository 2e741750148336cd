"""A whole host whose model speaks and summarises, for the tests of compaction under races."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compaction_world import of_tokens
from seat_world import Gate, Seated, seated

from tenure.messages.compaction import CompactionEnded, CompactionStarted
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelToolCall,
)
from tenure.runtime.doors.summaries.prompts import SYSTEM

WINDOW = 1_000


class Speaker:
    """Answers prompts from a script, and writes summaries: the two are told apart by the system."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self.gate: Gate | None = None
        """Summaries wait here."""
        self.fails: ModelFailure | None = None
        """Why summaries fail."""
        self.text = "what was said before"

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if request.system == SYSTEM:
            self.summaries.append(request)
            return self._summarise()
        self.requests.append(request)
        return self._speak(self.answers.pop(0) if self.answers else "yes")

    async def _summarise(self) -> AsyncIterator[ModelEvent]:
        if self.gate is not None:
            await self.gate()
        if self.fails is not None:
            raise ModelCallError(self.fails)
        yield ModelText(text=self.text)
        yield ModelDone(model="summariser-1")

    async def _speak(self, answer: str | Sequence[Any]) -> AsyncIterator[ModelEvent]:
        await asyncio.sleep(0)
        for piece in (answer,) if isinstance(answer, str) else answer:
            if isinstance(piece, ModelFailure):
                raise ModelCallError(piece)
            yield ModelText(text=piece) if isinstance(piece, str) else piece
        calls = not isinstance(answer, str) and any(isinstance(p, ModelToolCall) for p in answer)
        yield ModelDone(stop_reason="toolUse" if calls else "stop")

    def shown(self, number: int = -1) -> list[str]:
        """The texts of a request, in short."""
        texts = []
        for message in self.requests[number].messages:
            content = message.content
            text = content if isinstance(content, str) else getattr(content[0], "text", "call")
            texts.append(text.strip()[:40])
        return texts


@contextmanager
def compacting(
    *answers: Any, window: int = WINDOW, model: str = "same", **wishes: Any
) -> Iterator[tuple[Seated, Speaker]]:
    """A seat with a known window; summaries are the speaker's, too."""
    speaker = Speaker(*answers)
    settings = {"compaction": {"window": window, "model": model}}
    with seated(model=speaker, settings=settings, **wishes) as s:
        yield s, speaker


def fill(s: Seated, turns: int = 5, tokens: int = 150) -> None:
    """Turns of this size."""
    for number in range(turns):
        s.run(of_tokens(tokens, f"prompt {number} "))


def audit(s: Seated, session_id: str = "") -> list[str]:
    """The audit of compactions in the file, in short: `start`, `end compacted`."""
    told = []
    for line in s.lines(session_id):
        if line.get("customType") == "tenure/compaction":
            data = line["data"]
            told.append(f"{data['phase']} {data.get('status', '')}".strip())
    return told


def balanced(s: Seated, session_id: str = "") -> bool:
    """Whether every pass has exactly one start and one end, in this order."""
    phases: dict[str, list[str]] = {}
    for line in s.lines(session_id):
        if line.get("customType") == "tenure/compaction":
            phases.setdefault(line["data"]["pass"], []).append(line["data"]["phase"])
    return all(each == ["start", "end"] for each in phases.values())


def prompts(s: Seated, session_id: str = "") -> list[str]:
    """What the user said, as the file has it."""
    messages = [line["message"] for line in s.lines(session_id) if "message" in line]
    said = [each["content"] for each in messages if each["role"] == "user"]
    return [each if isinstance(each, str) else each[0]["text"] for each in said]


def passes(s: Seated) -> tuple[int, int]:
    """How many passes were said to begin and to end."""
    return len(s.said(CompactionStarted)), len(s.said(CompactionEnded))


def statuses(s: Seated) -> list[str]:
    return [each.status for each in s.said(CompactionEnded)]
