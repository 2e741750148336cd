"""SESSION-1, -2, -4, -5: one hand moves a seat's session, in order, and no write goes astray."""

from typing import Any

import msgspec

from tenure.messages.approval import EndSessionGrants
from tenure.messages.base import Command, Effect, Message, Outcome
from tenure.messages.bus import Answered, OwnerLost, OwnerRestarted, OwnerStarted, Published
from tenure.messages.entries import EntryBody
from tenure.messages.handover import SessionHandedOver
from tenure.messages.session import (
    AppendEntries,
    ContinueSession,
    OpenNewSession,
    OpenSession,
    SessionChanged,
    Stale,
)
from tenure.messages.tokens import ProcessName, SessionId, SessionToken
from tenure.messages.transcripts import (
    Again,
    AlterTranscript,
    AppendRecords,
    CloseTranscript,
    NoteSeat,
    OpenTranscript,
    SeatNoted,
    SeatNotNoted,
    SettleTranscript,
    TranscriptAltered,
    TranscriptNotOpened,
    TranscriptOpened,
)
from tenure.messages.turn import AbandonDrain, DrainTurn, TurnEnded, TurnStarted
from tenure.runtime.step import Ask, AskId, Step, Taken, Tell
from tenure.runtime.testing.checkers.base import Checker, Recent, role_of, seat_of

Place = tuple[str, str]
"""A host, and one of its owners or seats."""

SwapCommand = OpenSession | OpenNewSession | ContinueSession


class Tokens(Checker):
    """A write carries the current token, and lands where its sender meant it to."""

    invariants = ("SESSION-2",)
    roles = ("session",)

    def __init__(self) -> None:
        super().__init__()
        self._current: Recent[Place, SessionToken] = Recent()
        self._meant: Recent[int, tuple[EntryBody, SessionToken]] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if isinstance(message, AppendEntries):
            for body in message.entries:
                self._meant[id(body)] = (body, message.token)
        for event in step.events:
            if isinstance(event, SessionChanged):
                self._current[host, owner] = event.token
        for _, reply in step.replies:
            if isinstance(reply, Stale) and reply.current != self._current.get((host, owner)):
                self.report("SESSION-2", f"{owner} said that {reply.current} is current")

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if not isinstance(effect, AppendRecords):
            return
        current = self._current.get((host, owner))
        if effect.token != current:
            what = f"{owner} writes with the token {effect.token}, and current is {current}"
            self.report("SESSION-2", what)
        for record in effect.records:
            meant = self._meant.pop(id(record.body), None)
            if meant is not None and meant[0] is record.body and meant[1] != effect.token:
                what = f"an entry meant for {meant[1]} is written with {effect.token}"
                self.report("SESSION-2", what)


class _Swap(msgspec.Struct):
    """How far the swap of one seat is."""

    moving: dict[int, Effect] = {}
    writing: set[int] = set()
    asked: list[AskId] = []
    opened: SessionId | None = None
    drain: msgspec.Struct | None = None
    drained: bool = False
    live: SessionId | None = None


class Swaps(Checker):
    """A swap keeps its order, one at a time, and a failed one leaves everything as it was."""

    invariants = ("SESSION-1", "SESSION-4")

    def __init__(self) -> None:
        super().__init__()
        self._swaps: Recent[Place, _Swap] = Recent()

    def _swap(self, host: str, owner: str) -> _Swap:
        return self._swaps.setdefault((host, owner), _Swap())

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        changed = [event for event in step.events if isinstance(event, SessionChanged)]
        if role_of(owner) != "session":
            if changed:
                self.report("SESSION-1", f"{owner} moved the session of its seat")
            return
        if isinstance(message, OwnerStarted):
            self._swaps[host, owner] = _Swap()
        swap = self._swap(host, owner)
        if isinstance(message, SwapCommand) and taken.asker is not None:
            swap.asked.append(taken.asker)
        self._heard(swap, owner, message, step)
        for event in changed:
            self._moved(swap, owner, message, event)
        if any(isinstance(event, SessionHandedOver) for event in step.events):
            # The seat is vacant: nothing has to be drained for the next session.
            swap.live, swap.drain, swap.drained = None, None, False
        for asker, _ in step.replies:
            if asker in swap.asked:
                if swap.asked[0] != asker:
                    self.report("SESSION-1", f"{owner} answered a later swap first")
                swap.asked.remove(asker)
        for mail in step.mail:
            if isinstance(mail, Ask) and isinstance(mail.message, DrainTurn):
                swap.drain, swap.drained = mail.re, False

    def _heard(self, swap: _Swap, owner: str, message: Message, step: Step[Any]) -> None:
        match message:
            case TranscriptOpened(opened=opened):
                swap.opened = opened.token.session_id
            case Answered(re=re) if re is swap.drain:
                swap.drained = True
            case SeatNotNoted() if swap.drained and not _tells(step, AbandonDrain):
                what = f"{owner} could not swap, and did not give its turn's queue back"
                self.report("SESSION-4", what)
            case _:
                pass
        if isinstance(message, SeatNotNoted | TranscriptNotOpened):
            swap.drain, swap.drained = None, False
        if isinstance(message, TranscriptNotOpened) and _tells(step, EndSessionGrants):
            swap.live = None  # it could not be opened again: the seat is vacant

    def _moved(self, swap: _Swap, owner: str, message: Message, event: SessionChanged) -> None:
        session = event.token.session_id
        if isinstance(message, TranscriptAltered) and swap.live == session:
            swap.drain, swap.drained = None, False
            return
        again = isinstance(message, TranscriptOpened) and swap.live in (None, session)
        # A rewind or a rewrite drains first, and commits when the door has done it.
        altered = isinstance(message, TranscriptAltered) and swap.drained
        if not isinstance(message, SeatNoted) and not again and not altered:
            name = type(message).__name__
            self.report("SESSION-4", f"{owner} moved to {session} at {name}, before the commit")
        if swap.opened != session:
            self.report("SESSION-4", f"{owner} moved to {session}, and {swap.opened} was loaded")
        swap.live, swap.drain, swap.drained = session, None, False

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        match effect:
            case OpenTranscript() | NoteSeat() | AlterTranscript():
                swap = self._swap(host, owner)
                if swap.moving:
                    names = ", ".join(type(each).__name__ for each in swap.moving.values())
                    name = type(effect).__name__
                    self.report("SESSION-1", f"{owner} began {name} beside {names}")
                swap.moving[number] = effect
                if isinstance(effect, NoteSeat):
                    self._committing(swap, owner, effect.session_id, swap.opened)
                elif isinstance(effect, AlterTranscript):
                    # The leaf moves in a session that is live: it commits in place.
                    self._committing(swap, owner, effect.token.session_id, swap.live)
            case AppendRecords() | SettleTranscript():
                self._swap(host, owner).writing.add(number)
            case _:
                pass

    def _committing(
        self, swap: _Swap, owner: str, session: SessionId, loaded: SessionId | None
    ) -> None:
        if loaded != session:
            self.report("SESSION-4", f"{owner} commits to {session}, which it has not loaded")
        if swap.live is not None and not swap.drained:
            self.report("SESSION-4", f"{owner} commits before its turn was drained")
        if swap.writing:
            self.report("SESSION-4", f"{owner} commits while the old session is being written")

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        swap = self._swaps.get((host, owner))
        if swap is not None:
            swap.moving.pop(number, None)
            swap.writing.discard(number)

    def published(self, host: str, published: Published) -> None:
        if isinstance(published.event, OwnerLost):
            self._swaps.pop((host, published.event.owner), None)


def _tells(step: Step[Any], command: type[Command]) -> bool:
    return any(isinstance(mail, Tell) and isinstance(mail.message, command) for mail in step.mail)


class LiveSeats(Checker):
    """One live agent in a seat, and one seat for a session."""

    invariants = ("SESSION-5",)

    def __init__(self) -> None:
        super().__init__()
        self._process: dict[str, ProcessName] = {}
        self._live: Recent[SessionId, Place] = Recent()
        self._session: Recent[Place, SessionId] = Recent()
        self._turns: Recent[Place, set[str]] = Recent()

    def host_started(self, host: str, process: ProcessName) -> None:
        self._process[host] = process

    def published(self, host: str, published: Published) -> None:
        place = (host, published.seat)
        match published.event:
            case TurnStarted(turn_id=turn_id):
                self._turns.setdefault(place, set()).add(turn_id)
            case TurnEnded(turn_id=turn_id):
                self._turns.get(place, set()).discard(turn_id)
            case SessionChanged(token=token):
                self._changed(place, token.session_id)
            case OwnerLost(owner=owner) | OwnerRestarted(owner=owner):
                if role_of(owner) == "session":
                    self._let_go((host, seat_of(owner)))
            case _:
                pass

    def _changed(self, place: Place, session: SessionId) -> None:
        turns = self._turns.get(place)
        before = self._session.get(place)
        if before != session and turns:
            what = f"{place} moved from {before} to {session} under {', '.join(sorted(turns))}"
            self.report("SESSION-5", what)
        holder = self._live.get(session)
        if holder is not None and holder != place and self._lives(holder[0]):
            self.report("SESSION-5", f"{session} is live in {holder} and in {place}")
        self._live[session] = place
        self._session[place] = session

    def _lives(self, host: str) -> bool:
        process = self._process.get(host)
        return process is None or self.disk.processes.state(process) != "ended"

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        match effect:
            case (
                OpenTranscript(target=Again(session_id=session))
                | CloseTranscript(session_id=session)
            ):
                # It lets go first; only then can another have it.
                if self._live.get(session) == (host, seat_of(owner)):
                    del self._live[session]
            case _:
                pass

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        # Its claim is given back before the next incarnation takes it again.
        if role_of(owner) == "session":
            self._let_go((host, seat_of(owner)))

    def host_closed(self, host: str) -> None:
        for place in [place for place in self._live.values() if place[0] == host]:
            self._let_go(place)

    def _let_go(self, place: Place) -> None:
        for session in [each for each, holder in self._live.items() if holder == place]:
            del self._live[session]
