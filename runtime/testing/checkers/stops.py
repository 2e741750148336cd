"""TURN-2, -3, -9, APPROVE-3: a stop hits the turn that it names, and its queue comes back."""

from collections import Counter
from typing import Any

import msgspec

from tenure.messages.approval import CallStopped
from tenure.messages.base import Command, Event, Message, Reply
from tenure.messages.bus import Answered, OwnerStarted
from tenure.messages.queue import (
    DELIVERED_KEY,
    Cancel,
    ChangeQueue,
    PromptCancelled,
    PromptDelivered,
    PromptEdited,
    PromptReleased,
    PromptReturned,
    PromptSuspended,
)
from tenure.messages.session import AppendEntries, SessionChanged, Stale
from tenure.messages.turn import (
    DrainTurn,
    RunTurn,
    StopActiveTurn,
    StopTurn,
    TurnEnded,
    TurnNotRunning,
    TurnQueued,
    TurnStarted,
    TurnStopping,
)
from tenure.messages.turn_effects import PrepareTurn
from tenure.runtime.step import Ask, AskId, Forward, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Over, Recent, address_at, role_of

Place = tuple[str, str]

OWN_CAUSES = frozenset({"budget", "loop_guard"})
"""Stops that a turn begins itself, with nobody sending them; see limits.py."""


class _Seat(msgspec.Struct):
    """What one TurnActor has, seen from outside."""

    running: str = ""
    preparing: str = ""
    queue: list[tuple[str, str, str]] = []
    """Turn, text and item of what is due."""
    leaving: dict[str, str] = {}
    """Text by item of what is being delivered or taken out: it may come back, or not."""
    held: dict[str, str] = {}
    """Text by item of what waits until it is released."""
    redirects: set[str] = set()
    """Items that take the place of a running turn."""
    may_end: dict[str, set[str]] = {}
    """Turn to the causes that were sent for it."""
    dropped: set[str] = set()
    drained: str = ""
    """The cause of a drain that is not over."""
    stops: dict[AskId, StopTurn | StopActiveTurn] = {}
    starts: dict[AskId, RunTurn] = {}
    """Starts without an answer: a restarted owner holds them for a while."""


class Stops(Checker):
    """Who stopped what: every stopped turn has a stop that named it, in its own seat."""

    invariants = ("TURN-2", "TURN-3", "TURN-9", "APPROVE-3")
    roles = ("turn", "session")

    def __init__(self) -> None:
        super().__init__()
        self._seats: Recent[Place, _Seat] = Recent()
        self._sent: Recent[tuple[str, str], str] = Recent()
        self._over = Over()
        self._meant: Recent[int, tuple[Message, Place]] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if role_of(owner) == "session":
            for event in step.events:
                if isinstance(event, SessionChanged):
                    self._over.reopened(host, event.token.session_id)
            for mail in step.mail:
                if isinstance(mail, Forward) and isinstance(mail.message, StopActiveTurn):
                    turn_owner = address_at(owner, mail.to)
                    self._meant[id(mail.message)] = (mail.message, (host, turn_owner))
            return
        if isinstance(message, OwnerStarted):
            self._seats[host, owner] = _Seat()
        seat = self._seats.setdefault((host, owner), _Seat())
        self._stop(host, owner, seat, message, taken)
        for asker, reply in step.replies:
            stop = seat.stops.pop(asker, None)
            if stop is not None:
                self._answered(host, seat, stop, reply)
            start = seat.starts.pop(asker, None)
            if isinstance(reply, TurnQueued) and start is not None:
                seat.queue.append((start.turn_id, start.text, reply.item_id))
                if reply.delivery == "redirect":
                    seat.redirects.add(reply.item_id)
        for event in step.events:
            match event:
                case TurnStarted(turn_id=turn_id):
                    self._begins(owner, seat, turn_id)
                    seat.running, seat.preparing = turn_id, ""
                case TurnEnded():
                    self._ended(host, owner, seat, event)
                case _:
                    self._waits(seat, event)
        self._deliveries(seat, step)
        for effect in step.effects:
            if isinstance(effect, PrepareTurn):
                self._begins(owner, seat, effect.turn_id)
                seat.preparing, seat.drained = effect.turn_id, ""

    def _deliveries(self, seat: _Seat, step: Step[Any]) -> None:
        """What is on its way to the disk as a message waits no more, or comes back."""
        for mail in step.mail:
            if isinstance(mail, Ask) and isinstance(mail.message, AppendEntries):
                key = mail.message.idempotency_key
                if key.startswith(DELIVERED_KEY):
                    self._leaves(seat, key[len(DELIVERED_KEY) :])

    def _waits(self, seat: _Seat, event: Event) -> None:
        """How the queue changed, as it says itself."""
        match event:
            case PromptEdited(item_id=item, text=text):
                seat.queue = [
                    (turn, text if each == item else old, each) for turn, old, each in seat.queue
                ]
                if item in seat.held:
                    seat.held[item] = text
            case PromptDelivered(item_id=item) | PromptReturned(item_id=item):
                self._waits_no_more(seat, item)
            case PromptCancelled(item_id=item):
                self._waits_no_more(seat, item)
            case PromptSuspended(item_id=item, text=text):
                self._waits_no_more(seat, item)
                seat.held[item] = text
            case PromptReleased(item_id=item):
                seat.queue.append(("", seat.held.pop(item, ""), item))
            case _:
                pass

    def _leaves(self, seat: _Seat, item: str) -> None:
        seat.leaving.update({each: text for _, text, each in seat.queue if each == item})
        seat.queue = [each for each in seat.queue if each[2] != item]

    def _waits_no_more(self, seat: _Seat, item: str) -> None:
        seat.leaving.pop(item, None)
        seat.queue = [each for each in seat.queue if each[2] != item]
        seat.held.pop(item, None)

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._seats.pop((host, owner), None)

    def _stop(self, host: str, owner: str, seat: _Seat, message: Message, taken: Taken) -> None:
        """What was sent; its answer may come in a later step."""
        match message:
            case StopTurn(cause=cause) | StopActiveTurn(cause=cause):
                self._is_meant(host, owner, message)
                self._sent[host, cause] = owner
                if taken.asker is not None:
                    seat.stops[taken.asker] = message
            case DrainTurn(cause=cause):
                seat.drained = cause
                waiting = [turn for turn, _, _ in seat.queue]
                waiting += [start.turn_id for start in seat.starts.values()]
                for turn in (seat.running, seat.preparing, *waiting):
                    seat.may_end.setdefault(turn, set()).add(cause)
            case RunTurn(turn_id=turn_id):
                if taken.asker is not None:
                    seat.starts[taken.asker] = message
                if seat.drained:
                    seat.may_end.setdefault(turn_id, set()).add(seat.drained)
            case ChangeQueue(change=Cancel(item_id=item)):
                for turn, _, each in seat.queue:
                    if each == item:
                        seat.may_end.setdefault(turn, set()).add("user")
                self._leaves(seat, item)
            case Answered(re=re, reply=Stale()):
                # What came in again for a session that has moved on since is given back.
                again = getattr(re, "item_id", "")
                for turn in (turn for turn, _, item in seat.queue if item == again):
                    seat.may_end.setdefault(turn, set()).add("swap")
            case Answered(reply=CallStopped()):
                for turn in (seat.running, *(turn for turn, _, _ in seat.queue)):
                    seat.may_end.setdefault(turn, set()).add("approval")
            case _:
                pass

    def _is_meant(self, host: str, owner: str, stop: Message) -> None:
        """A stop comes from a client of this seat, or by way of this seat's session."""
        meant = self._meant.pop(id(stop), None)
        if meant is not None and meant[0] is stop and meant[1] != (host, owner):
            self.report("TURN-9", f"a stop for {meant[1]} came to {owner}")
        if meant is None and isinstance(stop, StopActiveTurn):
            self.report("TURN-9", f"{owner} got a stop that its session did not hand on")

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        if isinstance(command, StopTurn):
            self._meant[id(command)] = (command, (host, f"{seat}/turn"))

    def _answered(self, host: str, seat: _Seat, stop: StopTurn | StopActiveTurn, to: Reply) -> None:
        if isinstance(to, TurnStopping):
            self._stopping(seat, to.turn_id, stop.cause, to)
        match stop:
            case StopTurn(turn_id=turn_id):
                if turn_id == seat.running and not isinstance(to, TurnStopping):
                    self.report("TURN-2", f"{turn_id} runs, and its stop was answered {to}")
                if (host, turn_id) in self._over and not isinstance(to, TurnNotRunning):
                    self.report("TURN-2", f"{turn_id} is over, and its stop was answered {to}")
                if isinstance(to, TurnStopping) and to.turn_id != turn_id:
                    self.report("TURN-2", f"a stop for {turn_id} stopped {to.turn_id}")
            case StopActiveTurn():
                if seat.running and not isinstance(to, TurnStopping):
                    self.report("TURN-2", f"{seat.running} runs, and a cancel got {to}")

    def _stopping(self, seat: _Seat, turn: str, cause: str, reply: TurnStopping) -> None:
        seat.may_end.setdefault(turn, set()).add(cause)
        queued = [each for each, _, _ in seat.queue]
        if turn in queued:
            return
        if turn not in (seat.running, seat.preparing):
            return
        missing = Counter(text for _, text, _ in seat.queue) - Counter(reply.dropped)
        known = Counter(text for _, text, _ in seat.queue) + Counter(seat.leaving.values())
        strange = Counter(reply.dropped) - known
        if missing or strange:
            what = f"{reply.dropped} came back, without {missing}, with {strange}"
            self.report("TURN-3", f"{turn} was stopped: {what}")
        for each in queued:
            seat.may_end.setdefault(each, set()).add(cause)
            seat.dropped.add(each)

    def _begins(self, owner: str, seat: _Seat, turn: str) -> None:
        if turn in seat.dropped:
            self.report("TURN-3", f"{turn} was given back by a stop, and began in {owner}")
        for item in [item for each, _, item in seat.queue if each == turn]:
            self._leaves(seat, item)

    def _ended(self, host: str, owner: str, seat: _Seat, event: TurnEnded) -> None:
        turn = event.turn_id
        causes = seat.may_end.get(turn, set()) | OWN_CAUSES
        if seat.redirects:
            causes = causes | {"redirect"}
        if event.stop_reason == "stopped" and event.cause not in causes:
            elsewhere = self._sent.get((host, str(event.cause)), owner) != owner
            what = f"{turn} in {owner} was stopped ({event.cause}), and nobody stopped it there"
            # A denial that stops a turn looks like a stop that nobody sent.
            own = "APPROVE-3" if event.cause == "approval" else "TURN-2"
            self.report("TURN-9" if elsewhere else own, what)
        self._over[host, turn] = seat.running == turn
        seat.may_end.pop(turn, None)
        seat.queue = [each for each in seat.queue if each[0] != turn]
        if seat.running == turn:
            seat.running = ""
        if seat.preparing == turn:
            seat.preparing = ""
