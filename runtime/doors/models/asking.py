"""One question to a model without tools, and its whole answer: nothing of it is shown meanwhile."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from tenure.messages.content import AssistantMessage
from tenure.messages.models import Model, ModelCallError, ModelRequest
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.models.answer import ANSWER_BYTES_MAX, Answer, failed
from tenure.runtime.doors.models.call import failure_in
from tenure.runtime.doors.models.names import ModelName
from tenure.runtime.doors.models.stream import events_of

EVENTS_BETWEEN = 16
"""A model that never awaits would keep a cancel from arriving."""

_left_behind: set[asyncio.Task[AssistantMessage]] = set()
"""Models that did not stop when told to; held so that the loop does not lose them."""


async def whole_answer(
    model: Model,
    name: ModelName,
    request: ModelRequest,
    *,
    clock: Clock,
    fresh: Callable[[], str],
    within_s: float,
) -> AssistantMessage:
    """Ask, and give the answer.  A cancel takes effect at once, whatever the model does.

    Raises:
        ModelCallError: the model failed, or had not ended within the time.
    """
    loop = asyncio.get_running_loop()
    hearing = loop.create_task(_hear(model, name, request, clock, fresh))
    timer = asyncio.ensure_future(clock.sleep(within_s))
    try:
        await asyncio.wait({hearing, timer}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        if not hearing.done():
            hearing.cancel()
            _left_behind.add(hearing)
            hearing.add_done_callback(_let_go)
    if not hearing.done():
        raise failed("transport", f"it had not ended after {within_s:g} seconds")
    if hearing.cancelled():
        raise failed("bug", "the model cancelled itself")
    error = hearing.exception()
    if error is None:
        return hearing.result()
    failure = failure_in(error)
    if failure is None:
        raise failed("bug", f"{type(error).__name__}: {error}")
    raise ModelCallError(failure)


async def _hear(
    model: Model, name: ModelName, request: ModelRequest, clock: Clock, fresh: Callable[[], str]
) -> AssistantMessage:
    answer = Answer(ids_taken=frozenset(), fresh=fresh, bytes_max=ANSWER_BYTES_MAX)
    heard = 0
    async with aclosing(events_of(model, request)) as events:
        async for event in events:
            answer.take(event)
            heard += 1
            if heard % EVENTS_BETWEEN == 0:
                await asyncio.sleep(0)
    named = name.name or name.provider
    return answer.message(provider=name.provider, model=named, now_ms=clock.now_ms())


def _let_go(hearing: "asyncio.Task[AssistantMessage]") -> None:
    _left_behind.discard(hearing)
    if not hearing.cancelled():
        hearing.exception()
