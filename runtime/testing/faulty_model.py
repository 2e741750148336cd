"""`Faulty`: a model that goes wrong as real ones do, when and how a test says.

    Faulty(Scripted(["one", "two"]), [Drop(after=1), None])

cuts the first call after its first event and leaves the second alone; calls
beyond the list are left alone too.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field

from tenure.messages.models import (
    Model,
    ModelCallError,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
)
from tenure.runtime.doors.models.stream import events_of

CUT = ModelFailure(kind="transport", reason="the connection was cut")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Fall silent after so many events, until the event is set or the call is cancelled."""

    after: int = 0
    until: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Fail after so many events: in the middle of a text, or right before a tool call."""

    after: int = 0
    failure: ModelFailure = CUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """Raise something untyped after so many events: a bug in a model's own code."""

    error: Exception
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """Give one event twice: a piece, a tool call with its id, or the end."""

    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Leave one event out; the last one is the end of the answer."""

    index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakAfterCancel:
    """Fall silent after so many events, and speak on when the call is cancelled."""

    after: int = 0
    events: tuple[ModelEvent, ...] = (ModelText(text="too late"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreCancel:
    """Fall silent after so many events and do not stop when cancelled, until the event is set."""

    after: int = 0
    until: asyncio.Event = field(default_factory=asyncio.Event)


ModelFault = Stall | Drop | Raise | Duplicate | Forget | SpeakAfterCancel | IgnoreCancel


class Faulty:
    """Wraps a model; the n-th call has the n-th fault."""

    def __init__(self, model: Model, faults: Sequence[ModelFault | None]) -> None:
        self._model = model
        self._faults = tuple(faults)
        self._calls = 0

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        number = self._calls
        self._calls += 1
        fault = self._faults[number] if number < len(self._faults) else None
        events = events_of(self._model, request)
        match fault:
            case None:
                return events
            case Duplicate():
                return _duplicated(events, fault.index)
            case Forget():
                return _forgotten(events, fault.index)
            case _:
                return _interrupted(events, fault)


async def _interrupted(
    events: AsyncGenerator[ModelEvent, None],
    fault: Stall | Drop | Raise | SpeakAfterCancel | IgnoreCancel,
) -> AsyncGenerator[ModelEvent, None]:
    given = 0
    async for event in events:
        if given == fault.after:
            async for late in _at(fault):
                yield late
        yield event
        given += 1
    if given <= fault.after:
        async for late in _at(fault):
            yield late


async def _at(
    fault: Stall | Drop | Raise | SpeakAfterCancel | IgnoreCancel,
) -> AsyncGenerator[ModelEvent, None]:
    """What happens at the place of the fault; returns where the model goes on."""
    match fault:
        case Stall():
            await fault.until.wait()
        case Drop():
            raise ModelCallError(fault.failure)
        case Raise():
            raise fault.error
        case SpeakAfterCancel():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                for event in fault.events:
                    yield event
        case IgnoreCancel():
            while not fault.until.is_set():
                try:
                    await fault.until.wait()
                except asyncio.CancelledError:
                    continue


async def _duplicated(
    events: AsyncGenerator[ModelEvent, None], index: int
) -> AsyncGenerator[ModelEvent, None]:
    whole = [event async for event in events]
    chosen = index % len(whole)
    for number, event in enumerate(whole):
        yield event
        if number == chosen:
            yield event


async def _forgotten(
    events: AsyncGenerator[ModelEvent, None], index: int
) -> AsyncGenerator[ModelEvent, None]:
    whole = [event async for event in events]
    chosen = index % len(whole)
    for number, event in enumerate(whole):
        if number != chosen:
            yield event
