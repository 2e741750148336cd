"""One model call, from the request to its one outcome.

The model runs in a task of its own, so that a cancel is answered even by a model
that will not stop: from then on nothing that it says is heard.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from tenure.messages.content import AssistantMessage, calls_of
from tenure.messages.models import (
    FailureKind,
    Model,
    ModelCallError,
    ModelFailure,
    ModelRequest,
)
from tenure.messages.turn_effects import CallModel, ModelCallDone, ModelCallFailed
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.models.answer import Answer
from tenure.runtime.doors.models.deltas import BATCH_PIECES, Deltas
from tenure.runtime.doors.models.mending import mended
from tenure.runtime.doors.models.names import ModelName
from tenure.runtime.doors.models.stream import events_of

CLOSING_S_MAX = 2.0
"""How long a cancelled model may take to close its connection before it is left behind."""

REASON_CHARS_MAX = 500

CANCELLED = "the call was cancelled"

_left_behind: set[asyncio.Task[None]] = set()
"""Tasks of models that did not stop when told to; held so that the loop does not lose them."""


class Call:
    """Makes one call.  `run` is called once."""

    def __init__(
        self,
        *,
        effect: CallModel,
        context: Context,
        name: ModelName,
        request: ModelRequest,
        clock: Clock,
        fresh: Callable[[], str],
        bytes_max: int,
    ) -> None:
        self._effect = effect
        self._name = name
        self._request = request
        self._clock = clock
        self._answer = Answer(ids_taken=_ids_in(request), fresh=fresh, bytes_max=bytes_max)
        self._deltas = Deltas(
            turn_id=effect.turn_id, call=effect.call, clock=clock, progress=context.progress
        )
        self._over = False

    async def run(self, model: Model) -> ModelCallDone | ModelCallFailed:
        loop = asyncio.get_running_loop()
        hearing = loop.create_task(self._hear(model))
        timing = loop.create_task(self._deltas.keep_time())
        try:
            await asyncio.wait({hearing})
        except asyncio.CancelledError:
            # The runner asked for an outcome by its cancel, so it gets one, and a
            # second cancel only makes it come sooner.
            self._over = True
            self._deltas.flush()
            outcome = self._failed("cancelled", CANCELLED)
            await self._closed(hearing)
            return outcome
        finally:
            timing.cancel()
        self._deltas.flush()
        return self._outcome_of(hearing)

    async def _hear(self, model: Model) -> None:
        heard = 0
        async with aclosing(events_of(model, self._request)) as events:
            async for event in events:
                if self._over:
                    return
                sent = 0
                for piece in self._answer.take(event):
                    sent += self._deltas.take(piece)
                heard += 1
                if sent or heard % BATCH_PIECES == 0:
                    # A model that never awaits would keep a stop from arriving.
                    await asyncio.sleep(0)

    async def _closed(self, hearing: "asyncio.Task[None]") -> None:
        """Close the stream and wait until it is closed, though not for ever."""
        hearing.cancel()
        timer = asyncio.ensure_future(self._clock.sleep(CLOSING_S_MAX))
        try:
            await asyncio.wait({hearing, timer}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass
        finally:
            timer.cancel()
        _left_behind.add(hearing)
        hearing.add_done_callback(_let_go)

    def _outcome_of(self, hearing: "asyncio.Task[None]") -> ModelCallDone | ModelCallFailed:
        if hearing.cancelled():
            return self._failed("bug", "the model cancelled itself")
        error = hearing.exception()
        if error is None:
            try:
                message = self._answer.message(
                    provider=self._name.provider,
                    model=self._name.name or self._name.provider,
                    now_ms=self._clock.now_ms(),
                )
            except ModelCallError as unfinished:
                error = unfinished
            else:
                return ModelCallDone(
                    turn_id=self._effect.turn_id, call=self._effect.call, message=message
                )
        named = failure_in(error)
        if named is None:
            return self._failed("bug", f"{type(error).__name__}: {error}")
        return self._failed(named.kind, named.reason, named.retry_after_ms)

    def _failed(self, kind: FailureKind, reason: str, retry_after_ms: int = 0) -> ModelCallFailed:
        failure = ModelFailure(
            kind=kind, reason=mended(reason)[:REASON_CHARS_MAX], retry_after_ms=retry_after_ms
        )
        return ModelCallFailed(
            turn_id=self._effect.turn_id,
            call=self._effect.call,
            failure=failure,
            partial=self._answer.blocks(),
        )


def _let_go(hearing: "asyncio.Task[None]") -> None:
    _left_behind.discard(hearing)
    if not hearing.cancelled():
        hearing.exception()


def _ids_in(request: ModelRequest) -> frozenset[str]:
    """The call ids that stand in the conversation: a later call may not take one again."""
    return frozenset(
        call.id
        for message in request.messages
        if isinstance(message, AssistantMessage)
        for call in calls_of(message)
    )


def failure_in(error: BaseException) -> ModelFailure | None:
    """The typed failure in what a model raised, also where a task group wrapped it."""
    if isinstance(error, ModelCallError):
        return error.failure
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            if failure := failure_in(inner):
                return failure
    return None
