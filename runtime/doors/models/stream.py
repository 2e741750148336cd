"""Calls a model, in each of the shapes that a host may give one."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from typing import Any

from tenure.messages.models import Model, ModelDone, ModelEvent, ModelRequest, ModelText
from tenure.runtime.doors.models.answer import failed


async def events_of(model: Model, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """The events of one call, closed when the reader leaves.

    Besides an async iterator, a model may be a plain `async def` that returns one,
    or a list of events, or the whole answer as a string.
    """
    answer: Any = model(request)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, str):
        yield ModelText(text=answer)
        yield ModelDone()
    elif isinstance(answer, AsyncIterable):
        async for event in _closing(answer):
            yield event
    elif isinstance(answer, Iterable):
        for event in answer:
            yield event
    else:
        raise failed("invalid", f"the model gave a {type(answer).__name__} in place of events")


async def _closing(answer: AsyncIterable[ModelEvent]) -> AsyncGenerator[ModelEvent, None]:
    iterator: Any = aiter(answer)
    if not hasattr(iterator, "aclose"):
        async for event in iterator:
            yield event
        return
    async with aclosing(iterator):
        async for event in iterator:
            yield event
