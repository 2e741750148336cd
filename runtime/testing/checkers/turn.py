"""TURN-1, -4, -6: one turn at a time, on a current token, and the late change nothing."""

from typing import Any

import msgspec

from tenure.messages.base import Effect, Event, Message, Outcome
from tenure.messages.queue import FollowUpTurn, RedirectTurn, SteerTurn
from tenure.messages.session import SessionChanged, StartTurn
from tenure.messages.tokens import SessionToken, TurnId
from tenure.messages.turn import RunTurn, TurnEnded, TurnNotStarted, TurnStarted
from tenure.messages.turn_effects import CallModel, PrepareTurn
from tenure.runtime.step import Forward, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Over, Recent, role_of, seat_of

Place = tuple[str, str]


class _Seen(msgspec.Struct):
    """One TurnActor as it looks from outside."""

    state: Any = None
    running: str = ""
    preparing: str = ""


class Turns(Checker):
    """One turn at a time; what comes for one that is over changes nothing."""

    invariants = ("TURN-1", "TURN-4")
    roles = ("turn", "session")

    def __init__(self) -> None:
        super().__init__()
        self._seen: Recent[Place, _Seen] = Recent()
        self._over = Over()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if role_of(owner) == "session":
            for event in step.events:
                if isinstance(event, SessionChanged):
                    self._over.reopened(host, event.token.session_id)
            return
        seen = self._seen.setdefault((host, owner), _Seen())
        if isinstance(message, Outcome):
            turn = getattr(message, "turn_id", "")
            if turn not in (seen.running, seen.preparing):
                sent = step.replies or step.events or step.mail or step.effects
                if sent or step.state != seen.state:
                    name = type(message).__name__
                    self.report("TURN-4", f"a {name} of {turn}, which is over, changed something")
        seen.state = step.state
        for event in step.events:
            self._event(host, owner, seen, event)
        if any(isinstance(reply, TurnNotStarted) for _, reply in step.replies):
            seen.preparing = ""
        for effect in step.effects:
            if isinstance(effect, PrepareTurn):
                seen.preparing = effect.turn_id

    def _event(self, host: str, owner: str, seen: _Seen, event: Event) -> None:
        turn = getattr(event, "turn_id", "")
        if turn and (host, turn) in self._over:
            self.report("TURN-4", f"{type(event).__name__} of {turn} after its end")
        match event:
            case TurnStarted():
                if seen.running:
                    self.report("TURN-1", f"{turn} began in {owner} while {seen.running} ran")
                seen.running, seen.preparing = turn, ""
            case TurnEnded():
                self._over[host, TurnId(turn)] = seen.running == turn
                if seen.running == turn:
                    seen.running = ""
                if seen.preparing == turn:
                    seen.preparing = ""
            case _:
                pass

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if isinstance(effect, CallModel):
            running = self._seen.setdefault((host, owner), _Seen()).running
            if effect.turn_id != running:
                what = f"the model is called for {effect.turn_id} while {running or 'none'} runs"
                self.report("TURN-1", what)

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._seen.pop((host, owner), None)


class Starts(Checker):
    """A turn begins on the session that its sender meant, and only while that is current."""

    invariants = ("TURN-6",)

    def __init__(self) -> None:
        super().__init__()
        self._current: Recent[Place, SessionToken] = Recent()
        self._wanted: Recent[tuple[str, str], list[SessionToken | None]] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        place = (host, seat_of(owner))
        if isinstance(message, StartTurn | SteerTurn | FollowUpTurn | RedirectTurn):
            self._wanted.setdefault((host, message.text[:200]), []).append(message.token)
        for event in step.events:
            if isinstance(event, SessionChanged):
                self._current[place] = event.token
        for mail in step.mail:
            if isinstance(mail, Forward) and isinstance(mail.message, RunTurn):
                self._forwarded(host, place, mail.message)
        for event in step.events:
            if isinstance(event, TurnStarted) and event.token != self._current.get(place):
                self.report("TURN-6", f"{event.turn_id} began with a token that is not current")

    def _forwarded(self, host: str, place: Place, run: RunTurn) -> None:
        wanted = self._wanted.get((host, run.text[:200]), [])
        if run.token not in wanted and None not in wanted:
            self.report("TURN-6", f"{run.turn_id} starts on {run.token}, and was sent for {wanted}")
        if run.token != self._current.get(place):
            self.report("TURN-6", f"{run.turn_id} starts on {run.token}, which is not current")
