"""Tools that ask the user while they run, and the one that a model has for it.

A tool with `run_asking(call, ask)` gets a way to ask: `await ask(Question(...))` gives
`Said` or `Declined`.  Whoever answers is for the host to say; a stop cancels the wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

import msgspec

from tenure.messages.base import Outcome
from tenure.messages.models import ToolSpec
from tenure.messages.questions import (
    Answer,
    AnswerTool,
    Declined,
    Question,
    ToolAnswered,
    ToolAsked,
    ToolNotAnswered,
)
from tenure.messages.turn_effects import RunTool
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.tools.tool import (
    ToolCall,
    ToolRefused,
    ToolResult,
    parameters_of,
    read_arguments,
    text_result,
)

Ask = Callable[[Question], Awaitable[Answer]]


@runtime_checkable
class AskingTool(Protocol):
    """A tool that may ask the user while it runs."""

    async def run_asking(self, call: ToolCall, ask: Ask) -> ToolResult: ...


class Asking:
    """The questions of running tools of one host, each waiting for its answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    def of(self, effect: RunTool, context: Context) -> Ask:
        """The way in which one call asks."""
        asked = 0

        async def ask(question: Question) -> Answer:
            nonlocal asked
            asked += 1
            name = _name(context.seat, effect.turn_id, effect.call_id, asked)
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            self._waiting[name] = future
            context.progress(
                ToolAsked(
                    turn_id=effect.turn_id,
                    call_id=effect.call_id,
                    number=asked,
                    question=question,
                )
            )
            try:
                return await future
            finally:
                self._waiting.pop(name, None)

        return ask

    async def answer(self, effect: AnswerTool, context: Context) -> Outcome:
        """Hand an answer to the tool that waits for it: `ToolAnswered` or `ToolNotAnswered`."""
        name = _name(context.seat, effect.turn_id, effect.call_id, effect.number)
        future = self._waiting.get(name)
        if future is None or future.done():
            return ToolNotAnswered(turn_id=effect.turn_id, call_id=effect.call_id)
        future.set_result(effect.answer)
        return ToolAnswered(turn_id=effect.turn_id, call_id=effect.call_id)


def _name(seat: str, turn_id: str, call_id: str, number: int) -> str:
    return f"{seat} {turn_id} {call_id} {number}"


class _AskUser(msgspec.Struct, forbid_unknown_fields=True):
    question: str
    options: list[str] = []


class AskUserTool:
    """`ask_user`: a question of the model to the user."""

    spec = ToolSpec(
        name="ask_user",
        label="Ask the user",
        description=(
            "Ask the user a question and wait for the answer. Ask only what you cannot find out "
            "yourself. `options` are answers to choose from; the user may write another one."
        ),
        parameters=parameters_of(_AskUser),
        mutating=False,
        sequential=True,
    )

    async def run(self, call: ToolCall) -> ToolResult:
        """Without a way to ask."""
        raise ToolRefused("nobody can be asked here; go on without an answer")

    async def run_asking(self, call: ToolCall, ask: Ask) -> ToolResult:
        given = read_arguments(_AskUser, call)
        if not given.question.strip():
            raise ToolRefused("the question is empty; say what you want to know")
        answer = await ask(Question(text=given.question, options=tuple(given.options)))
        if isinstance(answer, Declined):
            why = f": {answer.reason}" if answer.reason else ""
            return text_result(f"The user did not answer{why}. Go on without an answer.")
        return text_result(answer.text, {"fields": answer.fields} if answer.fields else None)
