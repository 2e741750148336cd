"""TURN-5, -10: redirects keep their order, and every prompt that waits has one fate."""

from typing import Any

import msgspec

from tenure.messages.base import Event, Message
from tenure.messages.bus import Answered, OwnerStarted
from tenure.messages.queue import (
    Add,
    ChangeQueue,
    Move,
    PromptCancelled,
    PromptDelivered,
    PromptReleased,
    PromptReturned,
    PromptSuspended,
    RunPrompt,
)
from tenure.messages.session import Appended, AppendEntries, SessionChanged
from tenure.messages.tokens import SessionToken
from tenure.messages.turn import TurnQueued
from tenure.runtime.step import Ask, Forward, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent, role_of, seat_of

Place = tuple[str, str]


class _Queue(msgspec.Struct):
    """What one seat has accepted, seen from outside."""

    asked: dict[str, msgspec.Struct] = {}
    """What was written on the ask that adds an item."""
    durable: set[str] = set()
    redirects: list[str] = []
    """In the order in which they were accepted."""
    held: set[str] = set()


class Queues(Checker):
    """What waits was durable before it was accepted, is said once, and only when it may."""

    invariants = ("TURN-5", "TURN-10")
    roles = ("turn", "session")

    def __init__(self) -> None:
        super().__init__()
        self._queues: Recent[Place, _Queue] = Recent()
        self._fates: Recent[str, str] = Recent()
        self._current: Recent[Place, SessionToken] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        place = (host, seat_of(owner))
        if role_of(owner) == "session":
            self._session(place, step)
            return
        if isinstance(message, OwnerStarted):
            self._queues[place] = _Queue()
        queue = self._queues.setdefault(place, _Queue())
        if isinstance(message, Answered) and isinstance(message.reply, Appended):
            queue.durable |= {item for item, re in queue.asked.items() if re == message.re}
        if isinstance(message, ChangeQueue) and isinstance(message.change, Move):
            queue.redirects = []  # their order is the user's now
        for mail in step.mail:
            if isinstance(mail, Ask) and isinstance(mail.message, AppendEntries):
                self._asked(queue, mail)
        for _, reply in step.replies:
            if isinstance(reply, TurnQueued):
                self._accepted(queue, reply)
        for event in step.events:
            self._event(queue, event)

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._queues.pop((host, seat_of(owner)), None)

    def _session(self, place: Place, step: Step[Any]) -> None:
        for event in step.events:
            if isinstance(event, SessionChanged):
                self._current[place] = event.token
        for mail in step.mail:
            if isinstance(mail, Forward) and isinstance(mail.message, RunPrompt):
                run = mail.message
                if run.token != self._current.get(place):
                    self.report("TURN-5", f"{run.item_id} is let in on {run.token}, not current")

    def _asked(self, queue: _Queue, mail: Ask) -> None:
        assert isinstance(mail.message, AppendEntries)
        for entry in mail.message.entries:
            data = getattr(entry, "data", {})
            if isinstance(data, dict) and data.get("op") == _ADD:
                queue.asked[data["item"]["item_id"]] = mail.re

    def _accepted(self, queue: _Queue, reply: TurnQueued) -> None:
        if reply.item_id not in queue.durable:
            self.report("TURN-10", f"{reply.item_id} was accepted before it was durable")
        if reply.delivery == "redirect":
            queue.redirects.append(reply.item_id)

    def _event(self, queue: _Queue, event: Event) -> None:
        match event:
            case PromptDelivered(item_id=item):
                if item in queue.held:
                    self.report("TURN-10", f"{item} was held, and was delivered unasked")
                if item in queue.redirects and queue.redirects[0] != item:
                    first = queue.redirects[0]
                    self.report("TURN-5", f"{item} was delivered before {first}, which came first")
                self._fate(queue, item, "delivered")
            case PromptReturned(item_id=item):
                self._fate(queue, item, "given back")
            case PromptCancelled(item_id=item):
                self._fate(queue, item, "taken out")
            case PromptSuspended(item_id=item):
                queue.held.add(item)
                queue.redirects = [each for each in queue.redirects if each != item]
            case PromptReleased(item_id=item):
                queue.held.discard(item)
            case _:
                pass

    def _fate(self, queue: _Queue, item: str, fate: str) -> None:
        before = self._fates.get(item)
        if before == "delivered":
            self.report("TURN-10", f"{item} was delivered before, and is {fate} now")
        self._fates[item] = fate
        queue.held.discard(item)
        queue.redirects = [each for each in queue.redirects if each != item]


_ADD = Add.__struct_config__.tag
