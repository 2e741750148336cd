"""Open asks: who waits for which answer, and until when.

Every ask that is opened here is closed exactly once: by a reply, a refusal, its
deadline, or the end of the owner that holds it.  The table is the only place
that knows futures; steps carry an `AskId`.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import cast

import msgspec

from tenure.messages.base import Refusal, Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped
from tenure.runtime.doors.clock import Clock
from tenure.runtime.step import AskId

Sink = Callable[[Reply], None]
"""Where an answer goes: a future outside, or the mailbox of the owner that asked.

It may raise `asyncio.InvalidStateError`: the future of an asker that was cancelled,
and has not been resumed to say so.
"""


CLOSED_KEPT_MAX = 4_096
"""Deadlines of closed asks that may lie about before they are cleared away."""


class OpenAsk(msgspec.Struct):
    """One asker who waits."""

    sink: Sink
    holder: str
    """The address of the owner that has the duty to answer."""
    begun: bool = False
    """True once a step has taken it: from then on it may have effects."""


class Asks:
    """The table, with one sweeper for all deadlines."""

    def __init__(self, clock: Clock, late: Callable[[str, Reply], None]) -> None:
        self._monotonic_s = clock.monotonic_s
        self._sleep = clock.sleep
        self._late = late
        self._open: dict[AskId, OpenAsk] = {}
        self._held: dict[str, set[AskId]] = {}
        """By holder, so that the end of one owner does not look at every ask."""
        self._ids = cast("Iterator[AskId]", count(1))
        self._deadlines: list[tuple[float, AskId]] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")

    def __len__(self) -> int:
        return len(self._open)

    def open(self, sink: Sink, holder: str, deadline_s: float | None) -> AskId:
        """Open an ask; `deadline_s` None never passes."""
        ask_id = next(self._ids)
        self._open[ask_id] = OpenAsk(sink, holder)
        held = self._held.get(holder)
        if held is None:
            self._held[holder] = {ask_id}
        else:
            held.add(ask_id)
        if deadline_s is not None:
            due = self._monotonic_s() + deadline_s
            heapq.heappush(self._deadlines, (due, ask_id))
            if len(self._deadlines) > 2 * len(self._open) + CLOSED_KEPT_MAX:
                self._forget_closed()
            if due < self._wakes_at:
                self._arm(due)
        return ask_id

    def begin(self, ask_id: AskId) -> bool:
        """An owner takes it.  False where nobody waits any more: then it must not run."""
        ask = self._open.get(ask_id)
        if ask is None:  # guard: BUS-1
            return False
        ask.begun = True
        return True

    def has_begun(self, ask_id: AskId) -> bool:
        """Whether a step has taken it, as far as it is still open."""
        ask = self._open.get(ask_id)
        return ask is not None and ask.begun

    def hand_on(self, ask_id: AskId, holder: str) -> None:
        """Another owner has the duty to answer now, and has not begun."""
        ask = self._close(ask_id)
        if ask is not None:
            self._open[ask_id] = OpenAsk(ask.sink, holder)
            self._held.setdefault(holder, set()).add(ask_id)

    def answer(self, ask_id: AskId, reply: Reply) -> None:
        """Close an ask.  A second answer, or a late one, is a dead letter."""
        ask = self._close(ask_id)
        if ask is None:
            self._late("asker", reply)
            return
        try:
            ask.sink(reply)
        except asyncio.InvalidStateError:
            self._late("asker", reply)

    def drop(self, ask_id: AskId) -> None:
        """The asker is gone and wants no answer."""
        self._close(ask_id)

    def owner_ended(self, holder: str, reason: str, *, waiting: bool) -> None:
        """Answer what an owner had taken; with `waiting` also what it never will take."""
        for ask_id in sorted(self._held.get(holder, ())):
            ask = self._open.get(ask_id)
            if ask is not None and (ask.begun or waiting):
                self._close(ask_id)
                _refuse(ask, OwnerStopped(begun=ask.begun, reason=reason))

    def close(self) -> None:
        """Answer everybody and stop the sweeper."""
        for ask_id in sorted(self._open):
            ask = self._close(ask_id)
            if ask is not None:
                _refuse(ask, OwnerStopped(begun=ask.begun, reason="the host is closed"))
        self._deadlines.clear()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def _close(self, ask_id: AskId) -> OpenAsk | None:
        ask = self._open.pop(ask_id, None)
        if ask is not None:
            held = self._held[ask.holder]
            if len(held) == 1:
                del self._held[ask.holder]
            else:
                held.remove(ask_id)
        return ask

    def _arm(self, due: float) -> None:
        self._wakes_at = due
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    def _forget_closed(self) -> None:
        self._deadlines = [entry for entry in self._deadlines if entry[1] in self._open]
        heapq.heapify(self._deadlines)

    async def _sweep(self) -> None:
        while self._deadlines:
            due = self._deadlines[0][0]
            self._wakes_at = due
            pause = due - self._monotonic_s()
            if pause > 0:
                await self._sleep(pause)
                continue
            _, ask_id = heapq.heappop(self._deadlines)
            ask = self._close(ask_id)
            if ask is not None:
                _refuse(ask, DeadlinePassed(begun=ask.begun))
        self._wakes_at = float("inf")
        self._sweeper = None


def _refuse(ask: OpenAsk, refusal: Refusal) -> None:
    """Nobody needs to know of a refusal that its asker did not stay for."""
    with suppress(asyncio.InvalidStateError):
        ask.sink(refusal)
