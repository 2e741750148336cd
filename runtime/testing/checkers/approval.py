"""APPROVE-1, -2, -3, -5, -6: one request a call, each answer its own type, and none outlives."""

from typing import Any

import msgspec

from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    CallAllowed,
    CallDenied,
    CallStopped,
    Deny,
    EndSessionGrants,
    NoteDecision,
    RevokeApprovals,
    Stop,
    UserAnswered,
)
from tenure.messages.base import Effect, Message
from tenure.messages.bus import OwnerStarted
from tenure.messages.settings import SetToolPolicy, WriteSettings
from tenure.messages.tokens import RequestId
from tenure.messages.turn import TurnEnded
from tenure.runtime.step import Ask, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent, role_of

Place = tuple[str, str]

NEEDS = {CallAllowed: Allow, CallDenied: Deny, CallStopped: Stop}
"""Which choice of the user each answer to the turn rests on."""


class _Asked(msgspec.Struct):
    """The requests of one ApprovalActor, seen from outside."""

    open: dict[RequestId, ApprovalRequest] = {}
    choices: dict[RequestId, list[Any]] = {}


class Requests(Checker):
    """One request for one call; it is gone with its turn and its session."""

    invariants = ("APPROVE-1", "APPROVE-2", "APPROVE-6")

    def __init__(self) -> None:
        super().__init__()
        self._asked: Recent[Place, _Asked] = Recent()
        self._over: Recent[tuple[str, str], bool] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        for event in step.events:
            if isinstance(event, TurnEnded):
                self._over[host, event.turn_id] = True
        if role_of(owner) != "approval":
            return
        if isinstance(message, OwnerStarted):
            self._asked[host, owner] = _Asked()
        asked = self._asked.setdefault((host, owner), _Asked())
        if isinstance(message, AnswerApproval | UserAnswered):
            asked.choices.setdefault(message.request_id, []).append(message.choice)
        for event in step.events:
            match event:
                case ApprovalRequested(request=request):
                    self._requested(asked, request)
                case ApprovalResolved(request_id=request_id):
                    asked.open.pop(request_id, None)
                case _:
                    pass
        for _, reply in step.replies:
            if isinstance(reply, CallAllowed | CallDenied | CallStopped) and reply.request_id:
                self._answers(asked, reply, reply.request_id)
        self._revoked(asked, message)

    def _requested(self, asked: _Asked, request: ApprovalRequest) -> None:
        for other in asked.open.values():
            if (other.turn_id, other.call_id) == (request.turn_id, request.call_id):
                self.report("APPROVE-1", f"{request.call_id} was asked for twice")
        asked.open[request.request_id] = request

    def _answers(
        self, asked: _Asked, reply: CallAllowed | CallDenied | CallStopped, request_id: RequestId
    ) -> None:
        needed = NEEDS[type(reply)]
        choices = asked.choices.get(request_id, [])
        if not any(isinstance(choice, needed) for choice in choices):
            what = f"{request_id} was answered {choices}, and its turn got {type(reply).__name__}"
            self.report("APPROVE-2", what)

    def _revoked(self, asked: _Asked, message: Message) -> None:
        match message:
            case RevokeApprovals(turn_id=turn_id):
                left = [each for each in asked.open.values() if each.turn_id == turn_id]
            case EndSessionGrants(session_id=session_id):
                left = [each for each in asked.open.values() if each.token.session_id == session_id]
            case _:
                return
        for request in left:
            what = f"{request.request_id} is open after {type(message).__name__}"
            self.report("APPROVE-6", what)

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._asked.pop((host, owner), None)

    def host_closed(self, host: str) -> None:
        for (at, owner), asked in self._asked.items():
            for request in asked.open.values() if at == host else ():
                if (host, request.turn_id) in self._over:
                    self.report("APPROVE-6", f"{request.request_id} of {owner} outlived its turn")


class Remembered(Checker):
    """What is remembered was applied first, and the SettingsActor writes it."""

    invariants = ("APPROVE-5",)

    def __init__(self) -> None:
        super().__init__()
        self._always: Recent[RequestId, bool] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if isinstance(message, AnswerApproval | UserAnswered):
            always = getattr(message.choice, "scope", "once") == "always"
            self._always[message.request_id] = always or message.request_id in self._always
        for mail in step.mail:
            if not isinstance(mail, Ask) or not isinstance(mail.message, SetToolPolicy):
                continue
            if not self._is_applied(message):
                name = type(message).__name__
                self.report("APPROVE-5", f"{owner} has a rule remembered at {name}")

    def _is_applied(self, message: Message) -> bool:
        """An answer for always took effect."""
        if not isinstance(message, NoteDecision) or message.fate != "applied":
            return False
        return self._always.get(message.request_id, False)

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if isinstance(effect, WriteSettings) and role_of(owner) != "settings":
            self.report("APPROVE-5", f"{owner} writes the settings")
