"""The supervisor: stable addresses over restartable owners.

A step that raises has changed nothing: its message is quarantined and shown, its
asker is answered, and the owner is started again from disk, never from its
memory.  Waiting mail stays with the address.  The new owner starts after the
effects of the dead one have ended.  When restarts come too often, the seat is
lost, and the host lives on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from tenure.messages.base import Command, Effect, Event, Message, Outcome, Reply
from tenure.messages.bus import (
    Answered,
    MessageQuarantined,
    OwnerLost,
    OwnerRestarted,
    OwnerStarted,
    OwnerView,
)
from tenure.messages.tokens import Role
from tenure.runtime.bus import Bus
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.effects import Handlers
from tenure.runtime.mailbox import Delivery
from tenure.runtime.observer import Observer
from tenure.runtime.owner import DRAIN_MAX, Owner
from tenure.runtime.slot import OwnerSpec, Slot, address_of
from tenure.runtime.step import Ask, Cancel, Forward, Mail, Step, Taken, Tell
from tenure.runtime.streams import OpenStreams

RESTARTS_MAX = 3
RESTARTS_WITHIN_S = 5.0
BACKOFF_S = 0.05
"""Before the first restart; doubled for each further one within the window."""
EFFECTS_END_S = 5.0
"""How long a dead owner's effects may take to end before its seat is lost."""
QUARANTINE_KEPT_MAX = 100

_log = logging.getLogger("tenure.supervisor")


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A message that made a step raise, kept to be looked at."""

    owner: str
    incarnation: int
    message: Message
    reason: str


class Supervisor:
    """Starts, restarts and stops owners, and is the shell that carries out their steps."""

    def __init__(
        self,
        leaves: Leaves,
        bus: Bus,
        handlers: Handlers,
        *,
        streams: OpenStreams,
        routes: Mapping[type[Event], Role],
        observers: Sequence[Observer] = (),
        drain_max: int = DRAIN_MAX,
    ) -> None:
        self.bus = bus
        self.quarantine: deque[Quarantined] = deque(maxlen=QUARANTINE_KEPT_MAX)
        self._leaves = leaves
        self._handlers = handlers
        self._streams = streams
        self._routes = routes
        self.observers = list(observers)
        self.drain_max = drain_max
        self._effects_started = count(1)
        self._slots: dict[str, Slot] = {}
        self._seats: dict[str, list[Slot]] = {}
        """In the order in which they were started; the host's own owners under no name."""
        self._tasks: set[asyncio.Task[None]] = set()
        # The shell's smallest parts are those of others: no call goes through a second one.
        self.begin = bus.asks.begin
        self.answer = bus.asks.answer
        self.now_ms = leaves.clock.now_ms
        self.fresh = leaves.entropy.fresh

    # --- life ----------------------------------------------------------------------------

    def add(self, seat: str, spec: OwnerSpec) -> None:
        """Start an owner at its address.

        Raises:
            ValueError: there is one, or it has not ended yet.
        """
        address = address_of(seat, spec.role)
        if address in self._slots:
            raise ValueError(f"there is an owner at {address!r}; stop it first")
        slot = Slot(address, seat, spec, self._handlers)
        owner = self._incarnation(slot)  # one that cannot be made must not be found anywhere
        self._slots[address] = slot
        self._seats.setdefault(seat, []).append(slot)
        self.bus.boxes[address] = slot
        self._begin(slot, owner)

    def view(self, address: str) -> OwnerView | None:
        """What is to be seen of one owner now; None where there is none."""
        slot = self._slots.get(address)
        return slot.view() if slot is not None else None

    def has_seat(self, seat: str) -> bool:
        """Whether a seat has owners that take anything."""
        return any(not slot.closed for slot in self._seats.get(seat, ()))

    @property
    def addresses(self) -> tuple[str, ...]:
        """In the order in which they were started."""
        return tuple(self._slots)

    async def stop(self, address: str, reason: str) -> None:
        """End an owner in order: nothing new is taken, effects on doors end, claims go.

        A cancel of the caller does not cut it short; asked twice it is done once.
        """
        slot = self._slots.get(address)
        if slot is not None:
            await asyncio.shield(self._end([slot], reason))

    async def stop_seat(self, seat: str, reason: str) -> None:
        """End the owners of a seat, the last started first; of the host's own, without a name."""
        slots = self._seats.get(seat)
        if slots:
            await asyncio.shield(self._end(list(reversed(slots)), reason))

    async def stop_all(self, reason: str) -> None:
        """End every seat, then the owners of the host."""
        seats = [self.stop_seat(seat, reason) for seat in self._seats if seat]
        await asyncio.gather(*seats)
        await self.stop_seat("", reason)

    def _end(self, slots: list[Slot], reason: str) -> asyncio.Task[None]:
        """Close them all at once, then let each end after the one before it."""
        for slot in slots:
            if not slot.closed:
                self._close(slot, reason)
        task = self._spawn(self._end_in_order(slots))
        for slot in slots:
            if slot.ending is None:
                slot.ending = task
        return task

    def _close(self, slot: Slot, reason: str) -> None:
        self.bus.close_box(slot, reason)
        if slot.owner is not None:
            slot.owner.end_life()
            slot.owner = None
        if slot.restarting is not None:
            slot.restarting.cancel()
        self._end_streams(slot)
        self.bus.publish(slot.seat, OwnerLost(owner=slot.address, reason=reason))

    async def _end_in_order(self, slots: list[Slot]) -> None:
        task = asyncio.current_task()
        for slot in slots:
            if slot.ending is not task and slot.ending is not None:
                await asyncio.wait([slot.ending])
                continue
            ended = await slot.effects.ended(EFFECTS_END_S, self._leaves.clock.sleep)
            if ended:
                await self._let_go(slot)
            else:
                # What still runs may still write: the claims stay until it has ended.
                _log.error("%s: %s did not end", slot.address, ", ".join(slot.effects.under_way))
                self._spawn(self._let_go_when_settled(slot))
            self._forget(slot)

    async def _let_go_when_settled(self, slot: Slot) -> None:
        await slot.effects.settled()
        await self._let_go(slot)

    async def _let_go(self, slot: Slot) -> None:
        if slot.spec.let_go is None:
            return
        try:
            await slot.spec.let_go(slot.seat)
        except Exception:
            _log.exception("%s: what it held was not given back", slot.address)

    def _forget(self, slot: Slot) -> None:
        del self._slots[slot.address]
        del self.bus.boxes[slot.address]
        mine = self._seats[slot.seat]
        mine.remove(slot)
        if not mine:
            del self._seats[slot.seat]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _incarnation(self, slot: Slot) -> Owner:
        return slot.spec.owner(slot.address, slot.incarnation + 1, slot.mailbox, self)

    def _begin(self, slot: Slot, owner: Owner) -> None:
        slot.incarnation = owner.incarnation
        slot.owner = owner
        owner.on_receive(Delivery(OwnerStarted(incarnation=slot.incarnation)))
        owner.begin_life()

    async def _restart(self, slot: Slot, reason: str, backoff_s: float) -> None:
        ended = await slot.effects.ended(EFFECTS_END_S, self._leaves.clock.sleep)
        if not ended:  # guard: SUP-1
            slot.restarting = None
            self._lose(slot, "its effects did not end")
            return
        # Its successor opens what it needs; what it would not know of stays held by nobody.
        await self._let_go(slot)
        await self._leaves.clock.sleep(backoff_s)
        slot.restarting = None
        try:
            owner = self._incarnation(slot)
        except Exception as error:
            self._lose(slot, f"it cannot be made again: {type(error).__name__}: {error}")
            return
        slot.restarts += 1
        self.bus.publish(
            slot.seat,
            OwnerRestarted(owner=slot.address, incarnation=owner.incarnation, reason=reason),
        )
        self._begin(slot, owner)

    def _lose(self, slot: Slot, reason: str) -> None:
        """Over the budget: the whole seat goes, and everybody who waits for it is told."""
        slots = list(reversed(self._seats[slot.seat])) if slot.seat else [slot]
        self._end(slots, f"lost: {reason}")

    # --- the shell: what owners ask of it -------------------------------------------------

    def publish(self, owner: Owner, event: Event) -> None:
        slot = self._slots.get(owner.address)
        if type(event) in self._streams.kinds:
            self._streams.seen(owner.address, event)
        self.bus.stream.publish(slot.seat if slot is not None else "", event)
        role = self._routes.get(type(event))
        if role is not None:
            for each in self._slots.values():
                if each.spec.role == role and not each.closed:
                    self.bus.post(each.address, Delivery(event))

    def send(self, owner: Owner, mail: Mail) -> None:
        slot = self._slots.get(owner.address)
        if slot is None:
            return
        match mail:
            case Tell(to, message):
                self.bus.post(address_of(slot.seat, to), Delivery(message))
            case Ask(to, message, re):
                self._ask_for(slot, address_of(slot.seat, to), message, re)
            case Forward(to, message, asker):
                address = address_of(slot.seat, to)
                if asker is not None:
                    self.bus.asks.hand_on(asker, address)
                self.bus.post(address, Delivery(message, asker))
            case Cancel(key):
                slot.effects.cancel(key)

    def start(self, owner: Owner, effect: Effect) -> None:
        slot = self._slots.get(owner.address)
        if slot is not None:
            number = next(self._effects_started)
            for observer in self.observers:
                observer.effect_started(owner.address, number, effect)
            slot.effects.start(effect, _Wanted(self, slot, number))

    def stepped(self, owner: Owner, message: Message, taken: Taken, step: Step[Any]) -> None:
        for observer in self.observers:
            observer.stepped(owner.address, owner.incarnation, message, taken, step)

    def failed(self, owner: Owner, delivery: Delivery, error: Exception) -> None:
        """A step raised: quarantine its message, answer who was taken, start again from disk."""
        slot = self._slots[owner.address]
        reason = f"{type(error).__name__}: {error}"
        owner.end_life()
        slot.owner = None
        for message in slot.mailbox.take_answers():
            self.bus.dead_letter(slot.address, message, "dead_effect")
        self.quarantine.append(
            Quarantined(
                owner=slot.address,
                incarnation=slot.incarnation,
                message=delivery.message,
                reason=reason,
            )
        )
        for observer in self.observers:
            observer.raised(slot.address, slot.incarnation, delivery.message, error)
        name = type(delivery.message).__name__
        self.bus.publish(
            slot.seat, MessageQuarantined(owner=slot.address, message=name, reason=reason)
        )
        self._end_streams(slot)
        self.bus.asks.owner_ended(slot.address, reason, waiting=False)
        self._restart_within_budget(slot, reason)

    # --- inside ----------------------------------------------------------------------------

    def _restart_within_budget(self, slot: Slot, reason: str) -> None:
        now = self._leaves.clock.monotonic_s()
        recent = slot.restarted_at or deque()
        while recent and recent[0] < now - RESTARTS_WITHIN_S:
            recent.popleft()
        if len(recent) >= RESTARTS_MAX:  # guard: SUP-1
            self._lose(slot, f"it failed {RESTARTS_MAX + 1} times: {reason}")
            return
        backoff_s = BACKOFF_S * 2 ** len(recent)
        recent.append(now)
        slot.restarted_at = recent
        slot.restarting = self._spawn(self._restart(slot, reason, backoff_s))

    def _end_streams(self, slot: Slot) -> None:
        for event in self._streams.lost(slot.address):
            self.bus.publish(slot.seat, event)

    def _ask_for(self, slot: Slot, address: str, message: Command, re: msgspec.Struct) -> None:
        incarnation = slot.incarnation

        def answered(reply: Reply) -> None:
            # An answer for a dead incarnation: its successor never asked.
            if slot.incarnation != incarnation or slot.owner is None:  # guard: SUP-1
                self.bus.dead_letter(slot.address, reply, "late_reply")
                return
            self.bus.post(slot.address, Delivery(Answered(re=re, reply=reply)))

        ask_id = self.bus.open_ask(answered, address, message.ask_deadline_s)
        self.bus.post(address, Delivery(message, ask_id))


class _Wanted:
    """The incarnation that wanted an effect: outcomes for a dead one are dead letters."""

    __slots__ = ("_incarnation", "_number", "_slot", "_supervisor")

    def __init__(self, supervisor: Supervisor, slot: Slot, number: int) -> None:
        self._supervisor = supervisor
        self._slot = slot
        self._incarnation = slot.incarnation
        self._number = number

    def progress(self, outcome: Outcome) -> None:
        slot = self._slot
        owner = slot.owner
        if owner is None or slot.incarnation != self._incarnation:  # guard: SUP-1
            self._supervisor.bus.dead_letter(slot.address, outcome, "dead_effect")
            return
        slot.mailbox.put_owner_mail(Delivery(outcome))
        owner.schedule()

    def end(self, outcome: Outcome) -> None:
        for observer in self._supervisor.observers:
            observer.effect_ended(self._slot.address, self._number, outcome)
        self.progress(outcome)


__all__ = ["OwnerSpec", "Quarantined", "Slot", "Supervisor", "address_of"]
