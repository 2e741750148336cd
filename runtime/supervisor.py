"""The supervisor: stable addresses over restartable owners.

A step that raises has changed nothing: its message is quarantined and shown, its
asker is answered, and the owner is started again from disk, never from its
memory.  Waiting mail stays with the address.  The new owner starts after the
effects of the dead one have ended.  When restarts come too often, the seat is
lost, and the host lives on.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from tenure.messages.tokens import HOST_ROLES, Role
from tenure.runtime.bus import Box, Bus
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.effects import EffectRunner, Handlers
from tenure.runtime.mailbox import Delivery
from tenure.runtime.observer import Observer
from tenure.runtime.owner import DRAIN_MAX, Owner
from tenure.runtime.step import Ask, AskId, Cancel, Forward, Mail, Step, Taken, Tell
from tenure.runtime.streams import OpenStreams

RESTARTS_MAX = 3
RESTARTS_WITHIN_S = 5.0
BACKOFF_S = 0.05
"""Before the first restart; doubled for each further one within the window."""
EFFECTS_END_S = 5.0
"""How long a dead owner's effects may take to end before its seat is lost."""
QUARANTINE_KEPT_MAX = 100


class OwnerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What `runtime/system.py` says of one kind of owner."""

    role: Role
    owner: type[Owner]
    let_go: Callable[[str], Awaitable[None]] | None = None
    """Gives back what the doors hold for a seat, when its owner ended for good."""


class Slot(Box):
    """An address with all that outlives an incarnation."""

    __slots__ = ("effects", "incarnation", "restarted_at", "restarts", "spec")

    def __init__(self, address: str, seat: str, spec: OwnerSpec, handlers: Handlers) -> None:
        super().__init__(address, seat)
        self.spec = spec
        self.effects = EffectRunner(handlers, address, seat)
        self.incarnation = 0
        self.restarts = 0
        self.restarted_at: deque[float] | None = None


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A message that made a step raise, kept to be looked at."""

    owner: str
    incarnation: int
    message: Message
    reason: str


def address_of(seat: str, role: Role) -> str:
    """`settings` for an owner of the host, `main/session` for one of a seat."""
    return role if role in HOST_ROLES else f"{seat}/{role}"


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
        self._restarting: set[asyncio.Task[None]] = set()
        self.now_ms = leaves.clock.now_ms
        self.fresh = leaves.entropy.fresh

    # --- life ----------------------------------------------------------------------------

    def add(self, seat: str, spec: OwnerSpec) -> None:
        """Start an owner at its address."""
        address = address_of(seat, spec.role)
        slot = Slot(address, seat, spec, self._handlers)
        self._slots[address] = slot
        self.bus.boxes[address] = slot
        self._incarnate(slot)

    def view(self, address: str) -> OwnerView | None:
        """What is to be seen of one owner now; None where there is none."""
        slot = self._slots.get(address)
        if slot is None:
            return None
        return OwnerView(
            owner=address,
            state=type(slot.owner.state).__name__ if slot.owner else "Restarting",
            incarnation=slot.incarnation,
            restarts=slot.restarts,
            waiting=len(slot.mailbox),
            effects=slot.effects.under_way,
        )

    @property
    def addresses(self) -> tuple[str, ...]:
        """In the order in which they were started."""
        return tuple(self._slots)

    async def stop(self, address: str, reason: str) -> None:
        """End an owner in order: nothing new is taken, effects on doors end, claims go."""
        slot = self._slots.pop(address, None)
        if slot is None:
            return
        self.bus.close_box(slot, reason)
        if slot.owner is not None:
            slot.owner.end_life()
            slot.owner = None
        await slot.effects.ended(EFFECTS_END_S, self._leaves.clock.sleep)
        if slot.spec.let_go is not None:
            await slot.spec.let_go(slot.seat)
        self.bus.boxes.pop(address, None)

    async def stop_all(self, reason: str) -> None:
        """The last started is stopped first."""
        for task in list(self._restarting):
            task.cancel()
        for address in reversed(self.addresses):
            await self.stop(address, reason)

    def _incarnate(self, slot: Slot) -> None:
        slot.incarnation += 1
        owner = slot.spec.owner(slot.address, slot.incarnation, slot.mailbox, self)
        slot.owner = owner
        owner.on_receive(Delivery(OwnerStarted(incarnation=slot.incarnation)))
        owner.begin_life()

    async def _restart(self, slot: Slot, reason: str, backoff_s: float) -> None:
        ended = await slot.effects.ended(EFFECTS_END_S, self._leaves.clock.sleep)
        if not ended:  # guard: SUP-1
            await self._lose(slot, "its effects did not end")
            return
        await self._leaves.clock.sleep(backoff_s)
        if self._slots.get(slot.address) is not slot:
            return
        slot.restarts += 1
        self.bus.publish(
            slot.seat,
            OwnerRestarted(owner=slot.address, incarnation=slot.incarnation + 1, reason=reason),
        )
        self._incarnate(slot)

    async def _lose(self, slot: Slot, reason: str) -> None:
        """Over the budget: the whole seat goes, and everybody who waits for it is told."""
        mine = [each for each in self._slots.values() if each.seat == slot.seat]
        for each in mine if slot.seat else [slot]:
            self.bus.publish(each.seat, OwnerLost(owner=each.address, reason=reason))
            self._end_streams(each)
            await self.stop(each.address, f"lost: {reason}")

    # --- the shell: what owners ask of it -------------------------------------------------

    def begin(self, delivery: Delivery) -> bool:
        return delivery.asker is None or self.bus.asks.begin(delivery.asker)

    def answer(self, asker: AskId, reply: Reply) -> None:
        self.bus.asks.answer(asker, reply)

    def publish(self, owner: Owner, event: Event) -> None:
        slot = self._slots.get(owner.address)
        seat = slot.seat if slot else ""
        self._streams.seen(owner.address, event)
        self.bus.publish(seat, event)
        role = self._routes.get(type(event))
        if role is not None:
            for each in self._slots.values():
                if each.spec.role == role:
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
            fate = self._lose(slot, f"it failed {RESTARTS_MAX + 1} times: {reason}")
        else:
            fate = self._restart(slot, reason, BACKOFF_S * 2 ** len(recent))
        recent.append(now)
        slot.restarted_at = recent
        task = asyncio.get_running_loop().create_task(fate)
        self._restarting.add(task)
        task.add_done_callback(self._restarting.discard)

    def _end_streams(self, slot: Slot) -> None:
        for event in self._streams.lost(slot.address):
            self.bus.publish(slot.seat, event)

    def _ask_for(self, slot: Slot, address: str, message: Command, re: msgspec.Struct) -> None:
        incarnation = slot.incarnation

        def answered(reply: Reply) -> None:
            # An answer for a dead incarnation: its successor never asked.
            if slot.incarnation != incarnation or slot.owner is None:
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
        slot, bus = self._slot, self._supervisor.bus
        if slot.incarnation != self._incarnation or slot.owner is None:
            bus.dead_letter(slot.address, outcome, "dead_effect")
            return
        bus.post(slot.address, Delivery(outcome))

    def end(self, outcome: Outcome) -> None:
        for observer in self._supervisor.observers:
            observer.effect_ended(self._slot.address, self._number, outcome)
        self.progress(outcome)
