"""The bus: the one way to an owner from outside, and between owners.

It knows addresses, not owners: an address is stable, the owner behind it may be
restarted.  Whoever asks is answered exactly once.  What reaches nobody is kept
as a dead letter and counted.

Everything here runs on the host's event loop; from another thread go through
`Host.open_sync`.
"""

import asyncio
from collections import Counter, deque

import msgspec

from tenure.messages.base import Command, Event, Message, Reply
from tenure.messages.bus import (
    DeadLetter,
    DeadLetterCause,
    Overloaded,
    OwnerStopped,
    Published,
    Told,
)
from tenure.runtime.asks import Asks, Sink
from tenure.runtime.doors.clock import Clock
from tenure.runtime.events import EventStream, Subscription
from tenure.runtime.keys import Keys
from tenure.runtime.mailbox import Delivery, Mailbox
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId

DEAD_LETTERS_KEPT_MAX = 1_000

FROM_COMMAND = msgspec.UNSET
"""The default deadline of an ask: what the command's class says."""


class Box:
    """An address with its mailbox, and the owner behind it while there is one."""

    __slots__ = ("__weakref__", "address", "closed", "mailbox", "owner", "seat")

    def __init__(self, address: str, seat: str) -> None:
        self.address = address
        self.seat = seat
        self.mailbox = Mailbox()
        self.owner: Owner | None = None
        self.closed = ""
        """Why nothing is taken any more; empty while the address is open."""

    def wake(self) -> None:
        if self.owner is not None:
            self.owner.schedule()


class Bus:
    """Asks, tells, events and dead letters of one host run."""

    def __init__(self, clock: Clock, host_run: str) -> None:
        self.asks = Asks(clock, self._late_reply)
        self.stream = EventStream(host_run)
        self.boxes: dict[str, Box] = {}
        self.dead_letters: deque[DeadLetter] = deque(maxlen=DEAD_LETTERS_KEPT_MAX)
        self.dead_letters_count: Counter[DeadLetterCause] = Counter()
        self._keys = Keys(self.asks, self._send)

    async def ask(
        self,
        address: str,
        command: Command,
        *,
        deadline_s: float | msgspec.UnsetType | None = FROM_COMMAND,
    ) -> Reply:
        """Ask an owner; the answer is its reply, or `Overloaded`, `DeadlinePassed`, `OwnerStopped`.

        Args:
            deadline_s: seconds; None waits for ever; by default as the command's class says.

        A command with an idempotency key that was asked before gets the first
        answer, and with other content `KeyReused`.  A cancelled asker is
        forgotten: what had not begun never will.
        """
        if deadline_s is FROM_COMMAND:
            deadline_s = command.ask_deadline_s
        assert not isinstance(deadline_s, msgspec.UnsetType)
        key = getattr(command, "idempotency_key", None)
        if key:
            return await self._keys.ask(address, command, key, deadline_s)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        ask_id = self.asks.open(future.set_result, address, deadline_s)
        refusal = self._send(address, command, ask_id)
        if refusal is not None:
            self.asks.drop(ask_id)
            return refusal
        try:
            return await future
        except asyncio.CancelledError:
            self.asks.drop(ask_id)
            raise

    async def ask_in_order(
        self, address: str, command: Command, *, deadline_s: float | None
    ) -> Reply:
        """Ask in the lane of the owners: never refused, and behind what was forwarded before."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        ask_id = self.asks.open(future.set_result, address, deadline_s)
        self.post(address, Delivery(command, ask_id))
        try:
            return await future
        except asyncio.CancelledError:
            self.asks.drop(ask_id)
            raise

    def tell(self, address: str, command: Command) -> Told | Overloaded | OwnerStopped:
        """Send one way.  The answer says whether the message is in the mailbox."""
        refusal = self._send(address, command, None)
        match refusal:
            case None:
                return Told()
            case Overloaded():
                self.dead_letter(address, command, "overloaded")
            case OwnerStopped():
                known = address in self.boxes
                self.dead_letter(address, command, "owner_stopped" if known else "no_owner")
        return refusal

    def publish(self, seat: str, event: Event) -> Published:
        return self.stream.publish(seat, event)

    def subscribe(self, after: int | None = None, seat: str | None = None) -> Subscription:
        """Read events from now on, or all after a sequence number; see `EventStream`."""
        return self.stream.subscribe(after, seat)

    def post(self, address: str, delivery: Delivery) -> None:
        """Mail for the owner lane: outcomes, and messages between owners.  Never refused."""
        box = self.boxes.get(address)
        if box is None or box.closed:
            if delivery.asker is None:
                cause: DeadLetterCause = "owner_stopped" if box else "no_owner"
                self.dead_letter(address, delivery.message, cause)
            else:
                reason = box.closed if box else _no_owner(address)
                self.asks.answer(delivery.asker, OwnerStopped(begun=False, reason=reason))
            return
        box.mailbox.put_owner_mail(delivery)
        box.wake()

    def open_ask(self, sink: Sink, address: str, deadline_s: float | None) -> AskId:
        return self.asks.open(sink, address, deadline_s)

    def dead_letter(self, to: str, message: Message, cause: DeadLetterCause) -> None:
        self.dead_letters_count[cause] += 1
        self.dead_letters.append(DeadLetter(to=to, message=type(message).__name__, cause=cause))

    def close_box(self, box: Box, reason: str) -> None:
        """Nothing is taken any more: who waits is told, what was told is a dead letter."""
        box.closed = reason
        for delivery in box.mailbox.take_all():
            if delivery.asker is None:
                self.dead_letter(box.address, delivery.message, "owner_stopped")
        self.asks.owner_ended(box.address, reason, waiting=True)

    def close(self) -> None:
        self.asks.close()
        self.stream.close()

    def _send(
        self, address: str, command: Command, ask_id: AskId | None
    ) -> Overloaded | OwnerStopped | None:
        """Into the lane that a command from outside belongs to; says why not."""
        box = self.boxes.get(address)
        if box is None:
            return OwnerStopped(begun=False, reason=_no_owner(address))
        if box.closed:  # guard: BUS-1
            return OwnerStopped(begun=False, reason=box.closed)
        delivery = Delivery(command, ask_id)
        if command.control:
            box.mailbox.put_control(delivery)
        else:
            waiting = box.mailbox.put_command(delivery)
            if waiting:
                return Overloaded(waiting=waiting)
        box.wake()
        return None

    def _late_reply(self, to: str, reply: Reply) -> None:
        self.dead_letter(to, reply, "late_reply")


def _no_owner(address: str) -> str:
    return f"no owner has the address {address!r}"
