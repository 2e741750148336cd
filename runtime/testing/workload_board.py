"""What a workload knows of its run: a watcher without an opinion."""

import asyncio
from collections import Counter
from typing import Any

from tenure.messages.approval import ApprovalRequest, ApprovalRequested, ApprovalResolved
from tenure.messages.base import Command, Message, Refusal, Reply
from tenure.messages.bus import Published
from tenure.messages.compaction import CompactionEnded, CompactionStarted, PassId
from tenure.messages.session import EntriesAppended, SessionChanged
from tenure.messages.tokens import EntryId, RequestId, SessionId, SessionToken, TurnId
from tenure.messages.turn import TurnEnded, TurnQueued, TurnStarted
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.watch import Watcher

Place = tuple[str, str]
"""A run of a host, and a seat of it."""


class Board(Watcher):
    """Sessions, turns and requests, as they came."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: dict[Place, list[SessionToken]] = {}
        self.sessions: list[SessionId] = []
        self.paths: dict[SessionId, str] = {}
        self.entries: dict[SessionId, list[EntryId]] = {}
        self.running: dict[Place, TurnId] = {}
        self.queued: dict[Place, list[TurnId]] = {}
        self.turns: dict[Place, list[TurnId]] = {}
        self.passing: dict[Place, PassId] = {}
        self.passes: dict[Place, list[PassId]] = {}
        self.open: dict[RequestId, tuple[Place, ApprovalRequest]] = {}
        self.closed: dict[Place, list[RequestId]] = {}
        self.requested: list[tuple[Place, ApprovalRequest]] = []
        self.receipts: set[SessionId] = set()
        """Sessions of which something was said to be durable."""
        self.replies: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.ended: dict[TurnId, asyncio.Event] = {}
        self.request_seen = asyncio.Event()

    def published(self, host: str, published: Published) -> None:
        place = (host, published.seat)
        match published.event:
            case SessionChanged(token=token, path=path):
                self.tokens.setdefault(place, []).append(token)
                if token.session_id not in self.paths:
                    self.sessions.append(token.session_id)
                self.paths[token.session_id] = path
            case TurnStarted(turn_id=turn_id):
                self.running[place] = turn_id
                self.turns.setdefault(place, []).append(turn_id)
                self._unqueue(place, turn_id)
            case TurnEnded(turn_id=turn_id):
                if self.running.get(place) == turn_id:
                    del self.running[place]
                self._unqueue(place, turn_id)
                self.end_of(turn_id).set()
            case EntriesAppended(token=token, entry_ids=entry_ids):
                self.receipts.add(token.session_id)
                self.entries.setdefault(token.session_id, []).extend(entry_ids)
            case ApprovalRequested(request=request):
                self.open[request.request_id] = (place, request)
                self.requested.append((place, request))
                self.request_seen.set()
            case ApprovalResolved(request_id=request_id):
                self.open.pop(request_id, None)
                self.closed.setdefault(place, []).append(request_id)
            case CompactionStarted(pass_id=pass_id):
                self.passing[place] = pass_id
                self.passes.setdefault(place, []).append(pass_id)
            case CompactionEnded():
                self.passing.pop(place, None)
            case _:
                pass

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        for _, reply in step.replies:
            if isinstance(reply, Refusal):
                self.refusals[type(reply).__name__] += 1
            elif isinstance(reply, TurnQueued):
                place = (host, owner.partition("/")[0])
                self.queued.setdefault(place, []).append(reply.turn_id)

    def answered(self, host: str, number: int, reply: Reply) -> None:
        self.replies[type(reply).__name__] += 1
        # What the bus answers, no step has.
        if type(reply).__name__ in ("Overloaded", "DeadlinePassed", "OwnerStopped", "KeyReused"):
            self.refusals[type(reply).__name__] += 1

    def asked(self, host: str, number: int, seat: str, command: Command) -> None:
        self.replies["asked"] += 1

    def end_of(self, turn_id: TurnId) -> asyncio.Event:
        return self.ended.setdefault(turn_id, asyncio.Event())

    def _unqueue(self, place: Place, turn_id: TurnId) -> None:
        queue = self.queued.get(place, [])
        if turn_id in queue:
            queue.remove(turn_id)
