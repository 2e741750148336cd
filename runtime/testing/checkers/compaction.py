"""COMPACT-1 to -7: a pass replaces nothing before it is durable, and loses nothing."""

import json
from typing import Any

from tenure.messages.base import Effect, Message
from tenure.messages.bus import Answered, OwnerLost, OwnerRestarted, OwnerStarted, Published
from tenure.messages.compaction import (
    Compact,
    Compacted,
    CompactionBusy,
    CompactionEnded,
    CompactionStarted,
    PassId,
    RunCompaction,
    SettlePasses,
)
from tenure.messages.entries import CompactionEntry
from tenure.messages.tokens import SessionToken, TurnId
from tenure.messages.transcripts import AppendRecords
from tenure.messages.turn import RunTurn
from tenure.runtime.step import Ask, AskId, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent, role_of, seat_of
from tenure.runtime.testing.checkers.content import branches_of, content_of, durable_of, entries_of
from tenure.runtime.testing.checkers.paths import Paths

AUDIT = "tenure/compaction"


class Passes(Checker):
    """From messages alone: tokens, one at a time, and what a restarted owner does first."""

    invariants = ("COMPACT-2", "COMPACT-4", "COMPACT-7")
    roles = ("session", "compaction")

    def __init__(self) -> None:
        super().__init__()
        self._tokens: Recent[PassId, SessionToken] = Recent()
        self._running: Recent[tuple[str, str], PassId] = Recent()
        self._wishes: Recent[tuple[str, AskId], str] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if isinstance(message, Compact | RunCompaction) and taken.asker is not None:
            self._wishes[host, taken.asker] = message.instructions
        for asker, reply in step.replies:
            wish = self._wishes.pop((host, asker), None)
            if isinstance(reply, CompactionBusy) and wish not in (None, reply.instructions):
                what = f"{owner} refused {wish!r} and gave back {reply.instructions!r}"
                self.report("COMPACT-4", what)
        if role_of(owner) == "compaction" and isinstance(message, OwnerStarted):
            settles = any(
                isinstance(mail, Ask) and isinstance(mail.message, SettlePasses)
                for mail in step.mail
            )
            if message.incarnation > 1 and not settles:
                self.report("COMPACT-7", f"{owner} started again and settled no pass")

    def published(self, host: str, published: Published) -> None:
        place = (host, published.seat)
        match published.event:
            case CompactionStarted(pass_id=pass_id, token=token):
                self._tokens[pass_id] = token
                if place in self._running:
                    what = f"{pass_id} began at {place} beside {self._running[place]}"
                    self.report("COMPACT-4", what)
                self._running[place] = pass_id
            case CompactionEnded(pass_id=pass_id):
                if self._running.get(place) == pass_id:
                    del self._running[place]
            case OwnerLost(owner=owner) | OwnerRestarted(owner=owner):
                if role_of(owner) == "compaction":
                    self._running.pop((host, seat_of(owner)), None)
            case _:
                pass

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if not isinstance(effect, AppendRecords):
            return
        for record in effect.records:
            if not isinstance(record.body, CompactionEntry):
                continue
            began = self._tokens.get(PassId(str(record.body.details.get("pass", ""))))
            if began is not None and began != effect.token:
                what = f"a summary of {began} is written with the token {effect.token}"
                self.report("COMPACT-2", what)


class Summaries(Paths):
    """On the disk: what is said to be compacted is, the prompt is there, and no call is parted."""

    invariants = ("COMPACT-1", "COMPACT-3", "COMPACT-5", "COMPACT-6")
    roles = ("session", "turn", "compaction")

    def __init__(self) -> None:
        super().__init__()
        self._texts: Recent[TurnId, str] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        super().stepped(host, owner, message, taken, step)
        match message:
            case RunTurn(turn_id=turn_id, text=text):
                self._texts[turn_id] = text
            case RunCompaction(turn_id=str(turn_id), token=token):
                self._needs_room(turn_id, token)
            case _:
                pass
        for _, reply in step.replies:
            if isinstance(reply, Compacted) and role_of(owner) == "compaction":
                self._is_durable(reply, self._session_of(message))
        for event in step.events:
            if isinstance(event, CompactionEnded) and event.compacted and event.token:
                self._is_durable(event.compacted, event.token)

    def _session_of(self, message: Message) -> SessionToken | None:
        reply = message.reply if isinstance(message, Answered) else None
        token = getattr(reply, "token", None)
        return token if isinstance(token, SessionToken) else None

    def _data(self, token: SessionToken | None) -> bytes | None:
        path = "" if token is None else self.paths.get(token.session_id, "")
        return None if not path or path in self.foreign else durable_of(self.disk, path) or b""

    def _is_durable(self, compacted: Compacted, token: SessionToken | None) -> None:
        data = self._data(token)
        if data is not None and compacted.entry_id.encode() not in data:
            what = f"{compacted.pass_id} is said to be done, and its entry is not durable"
            self.report("COMPACT-1", what)

    def _needs_room(self, turn_id: TurnId, token: SessionToken) -> None:
        data, text = self._data(token), self._texts.get(turn_id)
        if data is None or text is None:
            return
        if json.dumps(text, ensure_ascii=False).encode() not in data:
            what = f"room is made for {turn_id}, and its prompt is not durable"
            self.report("COMPACT-3", what)

    def finished(self) -> None:
        for path in self.ours().values():
            data = content_of(self.disk, path)
            if data is not None:
                entries = entries_of(data)
                self._audit(path, entries)
                self._cuts(path, entries)

    def _audit(self, path: str, entries: list[dict[str, Any]]) -> None:
        """A pass that a process died in gets its end when the session is opened again."""
        phases: dict[str, list[str]] = {}
        for entry in entries:
            data = entry.get("data")
            if entry.get("customType") == AUDIT and isinstance(data, dict):
                phases.setdefault(data["pass"], []).append(data["phase"])
        for pass_id, seen in phases.items():
            if seen.count("start") != 1 or seen.count("end") != 1:
                what = f"{path}: {pass_id} has {', '.join(seen)} in its audit"
                self.report("COMPACT-5", what)

    def _cuts(self, path: str, entries: list[dict[str, Any]]) -> None:
        """What stays begins with no result whose call was summarised."""
        for branch in branches_of(entries):
            places = {entry["id"]: place for place, entry in enumerate(branch)}
            for entry in branch:
                first = places.get(entry.get("firstKeptEntryId", ""))
                if entry.get("type") == "compaction" and first is not None:
                    self._cut(path, entry["id"], branch[first : places[entry["id"]]])

    def _cut(self, path: str, entry_id: str, kept: list[dict[str, Any]]) -> None:
        calls: set[str] = set()
        for entry in kept:
            message = entry.get("message")
            if not isinstance(message, dict):
                continue
            if message.get("role") == "assistant":
                blocks = message.get("content", [])
                calls |= {each["id"] for each in blocks if each.get("type") == "toolCall"}
            elif message.get("role") == "toolResult" and message["toolCallId"] not in calls:
                what = f"{path}: {entry_id} parts {message['toolCallId']} from its result"
                self.report("COMPACT-6", what)
