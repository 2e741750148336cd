"""TURN-2, -3, -9: a stop hits the turn that it names, and its queue comes back."""

from typing import Any

import msgspec

from tenure.messages.approval import CallStopped
from tenure.messages.base import Command, Message, Reply
from tenure.messages.bus import Answered, OwnerStarted
from tenure.messages.session import SessionChanged
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
from tenure.runtime.step import AskId, Forward, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Over, Recent, address_at, role_of

Place = tuple[str, str]

OWN_CAUSES = frozenset({"budget", "loop_guard"})
"""Stops that a turn begins itself, with nobody sending them; see limits.py."""


class _Seat(msgspec.Struct):
    """What one TurnActor has, seen from outside."""

    running: str = ""
    preparing: str = ""
    queue: list[tuple[str, str]] = []
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

    invariants = ("TURN-2", "TURN-3", "TURN-9")
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
                seat.queue.append((start.turn_id, start.text))
        for event in step.events:
            match event:
                case TurnStarted(turn_id=turn_id):
                    self._begins(owner, seat, turn_id)
                    seat.running, seat.preparing = turn_id, ""
                case TurnEnded():
                    self._ended(host, owner, seat, event)
                case _:
                    pass
        for effect in step.effects:
            if isinstance(effect, PrepareTurn):
                self._begins(owner, seat, effect.turn_id)
                seat.preparing, seat.drained = effect.turn_id, ""

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
                waiting = [turn for turn, _ in seat.queue]
                waiting += [start.turn_id for start in seat.starts.values()]
                for turn in (seat.running, seat.preparing, *waiting):
                    seat.may_end.setdefault(turn, set()).add(cause)
            case RunTurn(turn_id=turn_id):
                if taken.asker is not None:
                    seat.starts[taken.asker] = message
                if seat.drained:
                    seat.may_end.setdefault(turn_id, set()).add(seat.drained)
            case Answered(reply=CallStopped()):
                for turn in (seat.running, *(turn for turn, _ in seat.queue)):
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
        queued = [each for each, _ in seat.queue]
        if turn in queued:
            return
        if turn not in (seat.running, seat.preparing):
            return
        texts = tuple(text for _, text in seat.queue)
        if reply.dropped != texts:
            self.report("TURN-3", f"{turn} was stopped: {reply.dropped} came back, not {texts}")
        for each in queued:
            seat.may_end.setdefault(each, set()).add(cause)
            seat.dropped.add(each)

    def _begins(self, owner: str, seat: _Seat, turn: str) -> None:
        if turn in seat.dropped:
            self.report("TURN-3", f"{turn} was given back by a stop, and began in {owner}")
        seat.queue = [each for each in seat.queue if each[0] != turn]

    def _ended(self, host: str, owner: str, seat: _Seat, event: TurnEnded) -> None:
        turn = event.turn_id
        causes = seat.may_end.get(turn, set()) | OWN_CAUSES
        if event.stop_reason == "stopped" and event.cause not in causes:
            elsewhere = self._sent.get((host, str(event.cause)), owner) != owner
            what = f"{turn} in {owner} was stopped ({event.cause}), and nobody stopped it there"
            self.report("TURN-9" if elsewhere else "TURN-2", what)
        self._over[host, turn] = seat.running == turn
        seat.may_end.pop(turn, None)
        seat.queue = [each for each in seat.queue if each[0] != turn]
        if seat.running == turn:
            seat.running = ""
        if seat.preparing == turn:
            seat.preparing = ""
