"""The bus: the one way to an owner from outside, and between owners.

It knows addresses, not owners: an address is stable, the owner behind it may be
restarted.  Whoever asks is answered exactly once.  What reaches nobody is kept
as a dead letter and counted.

Everything here runs on the host's event loop; from another thread go through
`Host.open_sync`.
"""

import asyncio
from collections import Counter, OrderedDict, deque

import msgspec

from tenure.messages.base import Command, Event, Message, Reply
from tenure.messages.bus import (
    DeadLetter,
    DeadLetterCause,
    DeadlinePassed,
    KeyReused,
    Overloaded,
    OwnerStopped,
    Published,
    Told,
)
from tenure.runtime.asks import Asks, Sink
from tenure.runtime.doors.clock import Clock
from tenure.runtime.events import EventStream, Subscription
from tenure.runtime.mailbox import Delivery, Mailbox
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId

DEAD_LETTERS_KEPT_MAX = 1_000
KEYS_KEPT_MAX = 4_096
"""Idempotency keys whose answers are remembered; the oldest are forgotten first."""

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


class _Keyed(msgspec.Struct):
    """The first command with a key, and its answer or who waits for it."""

    command: Command
    answer: asyncio.Future[Reply]


class Bus:
    """Asks, tells, events and dead letters of one host run."""

    def __init__(self, clock: Clock, host_run: str) -> None:
        self.asks = Asks(clock, self._late_reply)
        self.stream = EventStream(host_run)
        self.boxes: dict[str, Box] = {}
        self.dead_letters: deque[DeadLetter] = deque(maxlen=DEAD_LETTERS_KEPT_MAX)
        self.dead_letters_count: Counter[DeadLetterCause] = Counter()
        self._keyed: OrderedDict[tuple[str, str], _Keyed] = OrderedDict()

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
        key = getattr(command, "idempotency_key", "")
        if key:
            return await self._ask_keyed(address, command, key, deadline_s)
        return await self._ask(address, command, deadline_s)

    def tell(self, address: str, command: Command) -> Told | Overloaded | OwnerStopped:
        """Send one way.  The answer says whether the message is in the mailbox."""
        box = self.boxes.get(address)
        if box is None or box.closed:
            self.dead_letter(address, command, "no_owner" if box is None else "owner_stopped")
            return OwnerStopped(begun=False, reason=box.closed if box else "no such owner")
        waiting = self._put(box, Delivery(command))
        if waiting:
            self.dead_letter(address, command, "overloaded")
            return Overloaded(waiting=waiting)
        return Told()

    def publish(self, seat: str, event: Event) -> Published:
        return self.stream.publish(seat, event)

    def subscribe(self, after: int | None = None, seat: str | None = None) -> Subscription:
        """Read events from now on, or all after a sequence number; see `EventStream`."""
        return self.stream.subscribe(after, seat)

    def post(self, address: str, delivery: Delivery) -> None:
        """Mail for the owner lane: outcomes, and messages between owners.  Never refused."""
        box = self.boxes.get(address)
        if box is None or box.closed:
            self.dead_letter(address, delivery.message, "owner_stopped")
            if delivery.asker is not None:
                reason = box.closed if box else "no such owner"
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

    async def _ask(self, address: str, command: Command, deadline_s: float | None) -> Reply:
        box = self.boxes.get(address)
        if box is None:
            return OwnerStopped(begun=False, reason=f"no owner has the address {address!r}")
        if box.closed:
            return OwnerStopped(begun=False, reason=box.closed)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def give(reply: Reply) -> None:
            if not future.done():
                future.set_result(reply)

        ask_id = self.asks.open(give, address, deadline_s)
        waiting = self._put(box, Delivery(command, ask_id))
        if waiting:
            self.asks.drop(ask_id)
            return Overloaded(waiting=waiting)
        try:
            return await future
        except asyncio.CancelledError:
            self.asks.drop(ask_id)
            raise

    async def _ask_keyed(
        self, address: str, command: Command, key: str, deadline_s: float | None
    ) -> Reply:
        known = self._keyed.get((address, key))
        if known is not None:
            if known.command != command:
                return KeyReused(idempotency_key=key)
            return await asyncio.shield(known.answer)
        # The first asker's cancel must not take the answer from those who repeat
        # the key, so the ask itself belongs to a task of its own.
        task = asyncio.get_running_loop().create_task(self._ask(address, command, deadline_s))
        self._keyed[address, key] = _Keyed(command, task)
        if len(self._keyed) > KEYS_KEPT_MAX:
            self._keyed.popitem(last=False)

        def forget_unanswered(done: asyncio.Future[Reply]) -> None:
            # No owner gave this answer, so it is no answer to a repeat.
            unanswered = Overloaded | DeadlinePassed | OwnerStopped
            if done.cancelled() or isinstance(done.result(), unanswered):
                self._keyed.pop((address, key), None)

        task.add_done_callback(forget_unanswered)
        return await asyncio.shield(task)

    def _put(self, box: Box, delivery: Delivery) -> int:
        """Into the lane that a message from outside belongs to; how many wait if refused."""
        message = delivery.message
        waiting = 0
        if isinstance(message, Command) and message.control:
            box.mailbox.put_control(delivery)
        else:
            waiting = box.mailbox.put_command(delivery)
        box.wake()
        return waiting

    def _late_reply(self, to: str, reply: Reply) -> None:
        self.dead_letter(to, reply, "late_reply")
