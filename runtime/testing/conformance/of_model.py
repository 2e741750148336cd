"""Conformance of the model port: a callable that gives the events of one answer."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tenure.messages.models import (
    FailureKind,
    Model,
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelRequest,
    ModelText,
    ModelThinking,
    ModelToolCall,
)
from tenure.runtime.doors.models.stream import events_of
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same

ANSWER_S_MAX = 30.0
"""How long one answer may take."""
CANCEL_S_MAX = 2.0
"""How long a call that was cancelled, or left, may go on: the door waits no longer."""
PASSES = 50
"""Turns of the loop that a call gets before it is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUnderTest:
    """A model, in the three ways in which its provider can behave."""

    model: Model
    """It answers."""
    stalled: Model
    """The same with a provider that takes the request and never says a word more."""
    failing: Model
    """The same with a provider that refuses: a wrong key, a server that is gone."""
    request: ModelRequest
    """What it is asked; text only."""


MODEL: Kit[ModelUnderTest] = Kit("model")
_check = MODEL.check


async def _answer(model: Model, request: ModelRequest) -> list[ModelEvent]:
    """The whole answer, or what `ModelCallError` the model raised."""

    async def read() -> list[ModelEvent]:
        async with aclosing(events_of(model, request)) as events:
            return [event async for event in events]

    task = asyncio.ensure_future(read())
    await asyncio.wait({task}, timeout=ANSWER_S_MAX)
    if not task.done():
        task.cancel()
        fail(f"no end of the answer within {ANSWER_S_MAX:g} s")
    return task.result()


# --- answers ------------------------------------------------------------------------------------


@_check
async def an_answer_ends_with_exactly_one_done_and_nothing_after_it(at: ModelUnderTest) -> None:
    """An answer without its end is taken for one that was cut."""
    events = await _answer(at.model, at.request)
    kinds = [type(event).__name__ for event in events]
    same("events ModelDone in the answer", kinds.count("ModelDone"), 1)
    same("the last event", kinds[-1], "ModelDone")


@_check
async def every_event_is_one_of_the_vocabulary_and_survives_json(at: ModelUnderTest) -> None:
    """Text, thinking, whole tool calls, the end; all of it goes into a transcript."""
    for event in await _answer(at.model, at.request):
        known = isinstance(event, ModelText | ModelThinking | ModelToolCall | ModelDone)
        holds(known, f"the model gave {type(event).__name__}, which is no ModelEvent")
        try:
            again = msgspec.json.decode(msgspec.json.encode(event), type=type(event))
        except Exception as error:
            fail(f"{type(event).__name__} cannot be written as JSON and read again: {error}")
        same(f"{type(event).__name__} after JSON", type(again), type(event))


@_check
async def an_answer_says_something(at: ModelUnderTest) -> None:
    """Neither text nor a call is no answer."""
    events = await _answer(at.model, at.request)
    said = [event for event in events if isinstance(event, ModelText) and event.text]
    holds(
        said or any(isinstance(event, ModelToolCall) for event in events),
        "the answer has neither text nor a tool call",
    )


@_check
async def tool_calls_are_whole_and_have_names_of_their_own(at: ModelUnderTest) -> None:
    """A result finds its call by the id."""
    events = await _answer(at.model, at.request)
    calls = [event for event in events if isinstance(event, ModelToolCall)]
    ids = [call.id for call in calls]
    same("different ids of tool calls", len(set(ids)), len(ids))
    for call in calls:
        holds(call.name, "a tool call has no name")
        kind = type(call.arguments).__name__
        holds(
            isinstance(call.arguments, dict | str),
            f"the arguments of {call.name} are a {kind}; give an object, or the text as it came",
        )


@_check
async def usage_is_never_negative(at: ModelUnderTest) -> None:
    """Unknown is zero and not priced."""
    done = (await _answer(at.model, at.request))[-1]
    usage = getattr(done, "usage", None)
    for name in ("input", "output", "cache_read", "cache_write", "total_tokens"):
        holds(getattr(usage, name, 0) >= 0, f"usage.{name} is {getattr(usage, name, 0)}")


@_check
async def two_calls_side_by_side_do_not_disturb_each_other(at: ModelUnderTest) -> None:
    """Every seat of a host calls the same model."""
    other = msgspec.structs.replace(at.request, session_id="the other session")
    both = await asyncio.gather(
        _answer(at.model, msgspec.structs.replace(at.request, session_id="one session")),
        _answer(at.model, other),
    )
    for events in both:
        done = [event for event in events if isinstance(event, ModelDone)]
        same("events ModelDone in each of two answers", len(done), 1)


# --- requests -----------------------------------------------------------------------------------


@_check
async def a_conversation_with_tools_thinking_and_errors_is_taken(at: ModelUnderTest) -> None:
    """A session may have been led by another model before."""
    await _answer_or_typed_failure(at.model, with_history(at.request))


@_check
async def a_lone_surrogate_in_the_prompt_is_no_crash(at: ModelUnderTest) -> None:
    """It comes from file names and from half a pair that a tool cut; JSON cannot hold it."""
    odd = UserMessage(content="half a pair: \ud83d")
    request = msgspec.structs.replace(at.request, messages=(*at.request.messages, odd))
    await _answer_or_typed_failure(at.model, request)


@_check
async def the_request_is_left_as_it_was(at: ModelUnderTest) -> None:
    """It is shared with the transcript."""
    before = repr(at.request)
    await _answer(at.model, at.request)
    same("the request after the call", repr(at.request), before)


async def _answer_or_typed_failure(model: Model, request: ModelRequest) -> None:
    try:
        await _answer(model, request)
    except ModelCallError:
        return
    except Exception as error:
        fail(f"raised {type(error).__name__}: {error}; answer, or raise ModelCallError")


def with_history(request: ModelRequest) -> ModelRequest:
    """The request behind a conversation in which everything happened."""
    call = ToolCallBlock(id="c1", name="read", arguments={"path": "a.md"})
    lost = ToolCallBlock(id="c2", name="read", arguments={})
    thought = ThinkingBlock(thinking="Read it first.", thinking_signature="opaque")
    history = (
        UserMessage(content="Read a.md."),
        AssistantMessage(content=(thought, call, lost), stop_reason="toolUse", model="another"),
        ToolResultMessage(tool_call_id="c1", tool_name="read", content=(TextBlock(text="one"),)),
        ToolResultMessage(
            tool_call_id="c2", tool_name="read", content=(TextBlock(text="no"),), is_error=True
        ),
        AssistantMessage(content=(TextBlock(text="It says"),), stop_reason="aborted"),
    )
    return msgspec.structs.replace(request, messages=(*history, *request.messages))


# --- failures and stops -------------------------------------------------------------------------


@_check
async def a_failure_is_typed_and_says_why(at: ModelUnderTest) -> None:
    """What may be tried again, and what people are told, follows from its kind."""
    try:
        await _answer(at.failing, at.request)
    except ModelCallError as error:
        failure = error.failure
        holds(failure.kind in get_args(FailureKind), f"there is no failure of kind {failure.kind}")
        holds(failure.reason.strip(), "the failure has no reason")
        holds(failure.retry_after_ms >= 0, f"retry_after_ms is {failure.retry_after_ms}")
    except Exception as error:
        fail(f"raised {type(error).__name__}: {error}; raise ModelCallError with the failure")
    else:
        fail("the failing model gave a whole answer")


@_check
async def a_cancel_ends_a_stalled_call_at_once(at: ModelUnderTest) -> None:
    """A stop must not wait for a provider that is silent."""
    events: list[ModelEvent] = []
    task = asyncio.ensure_future(_collect(at.stalled, at.request, events))
    for _ in range(PASSES):
        await asyncio.sleep(0)
    if task.done():
        fail("the stalled model ended by itself: it must be one whose provider never answers")
    heard = len(events)
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S_MAX)
    if not task.done():
        fail(f"a cancelled call still runs after {CANCEL_S_MAX:g} s")
    same("events after the cancel", len(events) - heard, 0)
    holds(
        task.cancelled() or task.exception() is not None,
        "a cancelled call ended as if nothing had happened; let the CancelledError pass",
    )


@_check
async def a_reader_that_leaves_early_closes_the_call(at: ModelUnderTest) -> None:
    """The connection is given back, also after the first word."""

    async def first() -> None:
        async with aclosing(events_of(at.model, at.request)) as events:
            async for _ in events:
                return

    task = asyncio.ensure_future(first())
    await asyncio.wait({task}, timeout=ANSWER_S_MAX)
    if not task.done():
        task.cancel()
        fail("closing the stream after its first event takes for ever")
    if (error := task.exception()) is not None:
        fail(f"closing the stream after its first event raised {type(error).__name__}: {error}")


async def _collect(model: Model, request: ModelRequest, into: list[Any]) -> None:
    async with aclosing(events_of(model, request)) as events:
        async for event in events:
            into.append(event)
