"""Idempotency keys: a command that is sent again gets the first answer, and is not done again."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import msgspec

from tenure.messages.base import Command, Reply
from tenure.messages.bus import DeadlinePassed, KeyReused, Overloaded, OwnerStopped
from tenure.runtime.asks import Asks
from tenure.runtime.step import AskId

ANSWERS_KEPT_MAX = 4_096
"""First answers that are remembered; the oldest are forgotten first."""

Place = tuple[str, str]
"""An owner's address, and a key."""

Send = Callable[[str, Command, AskId], Overloaded | OwnerStopped | None]
"""Puts a command into the mailbox of an address, or says why not."""


class _Flight(msgspec.Struct):
    """A command that was sent and is not answered."""

    content: bytes
    ask_id: AskId
    waiting: set[AskId]
    """Each of those who wait has an ask, and a deadline, of its own."""


class _FirstAnswer(msgspec.Struct, frozen=True):
    content: bytes
    reply: Reply


class Keys:
    """Asks with idempotency keys of one host run."""

    def __init__(self, asks: Asks, send: Send) -> None:
        self._asks = asks
        self._send = send
        self._flights: dict[Place, _Flight] = {}
        self._answers: OrderedDict[Place, _FirstAnswer] = OrderedDict()

    async def ask(
        self, address: str, command: Command, key: str, deadline_s: float | None
    ) -> Reply:
        """Send a command once, however often it is asked.

        An asker that leaves, by a cancel or its deadline, takes nothing from
        the others.  What the last of them leaves before it was begun never
        runs; what was begun is remembered when it is answered.
        """
        place = (address, key)
        content = _content(command)
        known = self._flights.get(place) or self._answers.get(place)
        if known is not None and known.content != content:
            return KeyReused(idempotency_key=key)
        match known:
            case _FirstAnswer(reply=reply):
                return reply
            case _Flight():
                return await self._wait(place, known, deadline_s)
            case None:
                ask_id = self._asks.open(partial(self._answered, place), address, None)
                refusal = self._send(address, command, ask_id)
                if refusal is not None:
                    self._asks.drop(ask_id)
                    return refusal
                flight = self._flights[place] = _Flight(content, ask_id, set())
                return await self._wait(place, flight, deadline_s)

    async def _wait(self, place: Place, flight: _Flight, deadline_s: float | None) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def give(reply: Reply) -> None:
            if isinstance(reply, DeadlinePassed):
                reply = DeadlinePassed(begun=self._left(place, flight, waiter))
            if not future.done():
                future.set_result(reply)

        waiter = self._asks.open(give, "", deadline_s)
        flight.waiting.add(waiter)
        try:
            return await future
        except asyncio.CancelledError:
            self._asks.drop(waiter)
            self._left(place, flight, waiter)
            raise

    def _left(self, place: Place, flight: _Flight, waiter: AskId) -> bool:
        """One of those who wait is gone.  False when the command will never run now."""
        flight.waiting.discard(waiter)
        if flight.waiting or self._asks.has_begun(flight.ask_id):
            return True
        if self._flights.get(place) is flight:
            self._asks.drop(flight.ask_id)
            del self._flights[place]
        return False

    def _answered(self, place: Place, reply: Reply) -> None:
        flight = self._flights.pop(place)
        # What no owner answered is no answer to a repeat.
        if not isinstance(reply, OwnerStopped | Overloaded | DeadlinePassed):
            self._answers[place] = _FirstAnswer(flight.content, reply)
            if len(self._answers) > ANSWERS_KEPT_MAX:
                self._answers.popitem(last=False)
        for waiter in sorted(flight.waiting):
            self._asks.answer(waiter, reply)


def _content(command: Command) -> bytes:
    """What tells a repeat from another command; a command itself may hold megabytes."""
    try:
        data = msgspec.msgpack.encode(command, order="deterministic")
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, a value of the embedder's
        data = repr(command).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
