"""APPROVE-4: nothing runs that was not allowed, as it was allowed, and no more than once."""

import posixpath
from typing import Any

import msgspec

from tenure.messages.approval import (
    AnswerApproval,
    Applied,
    ApprovalRequested,
    ApprovalResolved,
    CallAllowed,
    DecideCall,
    EndSessionGrants,
    NoteDecision,
    UserAnswered,
)
from tenure.messages.base import Effect, Message
from tenure.messages.bus import Answered, OwnerStarted
from tenure.messages.settings import Policy, PolicyChanged
from tenure.messages.tokens import RequestId
from tenure.messages.turn_effects import RunTool
from tenure.runtime.step import AskId, Step, Taken
from tenure.runtime.testing.checkers.base import Checker, Recent, seat_of

Place = tuple[str, str]


class _Gate(msgspec.Struct):
    """One ApprovalActor, seen from outside."""

    calls: dict[AskId, DecideCall] = {}
    requests: dict[RequestId, DecideCall] = {}
    open: set[RequestId] = set()
    scopes: dict[RequestId, tuple[str, str]] = {}
    """What the answer that counted said, and for how long."""
    grants: dict[tuple[str, str], str] = {}
    """Session and tool to allow or deny."""


class Gates(Checker):
    """Who allowed what: by the policy, by a grant of this session, or by an answer."""

    invariants = ("APPROVE-4",)
    roles = ("approval",)

    def __init__(self) -> None:
        super().__init__()
        self._gates: Recent[Place, _Gate] = Recent()
        self._allowed: Recent[tuple[str, str, str], tuple[DecideCall, CallAllowed]] = Recent()
        self._ran: Recent[tuple[str, str], bool] = Recent()
        self._applied: Recent[RequestId, bool] = Recent()

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        if isinstance(message, OwnerStarted):
            self._gates[host, owner] = _Gate()
        gate = self._gates.setdefault((host, owner), _Gate())
        self._heard(gate, message, taken)
        for asker, reply in step.replies:
            match reply:
                case CallAllowed() if asker in gate.calls:
                    self._allows(host, owner, gate, gate.calls[asker], reply, message)
                case Applied(request_id=request_id):
                    self._was_applied(owner, gate, request_id)
                case _:
                    pass
        for event in step.events:
            match event:
                case ApprovalRequested(request=request):
                    gate.open.add(request.request_id)
                    gate.requests[request.request_id] = next(
                        call
                        for call in reversed(gate.calls.values())
                        if (call.turn_id, call.call_id) == (request.turn_id, request.call_id)
                    )
                case ApprovalResolved(request_id=request_id):
                    gate.open.discard(request_id)
                case _:
                    pass
        if isinstance(message, PolicyChanged):
            self._decided_anew(gate, message.policy)

    def _heard(self, gate: _Gate, message: Message, taken: Taken) -> None:
        match message:
            case DecideCall() if taken.asker is not None:
                gate.calls[taken.asker] = message
            case AnswerApproval(request_id=request_id) | UserAnswered(request_id=request_id):
                if request_id in gate.open:
                    gate.open.discard(request_id)
                    scope = getattr(message.choice, "scope", "once")
                    gate.scopes[request_id] = (type(message.choice).__name__.lower(), scope)
            case NoteDecision(request_id=request_id, fate="applied"):
                said, scope = gate.scopes.get(request_id, ("", "once"))
                call = gate.requests.get(request_id)
                if scope == "session" and call is not None:
                    gate.grants[call.token.session_id, call.tool.name] = said
            case EndSessionGrants(session_id=session_id):
                kept = {each: rule for each, rule in gate.grants.items() if each[0] != session_id}
                gate.grants = kept
            case _:
                pass

    def _allows(
        self,
        host: str,
        owner: str,
        gate: _Gate,
        call: DecideCall,
        reply: CallAllowed,
        message: Message,
    ) -> None:
        self._allowed[host, call.turn_id, call.call_id] = (call, reply)
        policy = _policy_in(message)
        if policy is None:
            self.report("APPROVE-4", f"{owner} allowed {call.call_id} and looked at no policy")
            return
        verdict = _verdict(policy, call, gate.grants.get((call.token.session_id, call.tool.name)))
        if verdict == "deny" or (verdict == "ask" and reply.request_id is None):
            what = (
                f"{owner} allowed {call.tool.name} ({call.call_id}), and the policy says {verdict}"
            )
            self.report("APPROVE-4", what)
        if reply.request_id is not None and gate.requests.get(reply.request_id) is not call:
            self.report(
                "APPROVE-4", f"{owner} allowed {call.call_id} by an answer for another call"
            )

    def _was_applied(self, owner: str, gate: _Gate, request_id: RequestId) -> None:
        if request_id in self._applied:
            self.report("APPROVE-4", f"two answers to {request_id} were applied")
        if request_id not in gate.requests:
            self.report("APPROVE-4", f"{owner} applied an answer to {request_id}, not its own")
        self._applied[request_id] = True

    def _decided_anew(self, gate: _Gate, policy: Policy) -> None:
        for request_id in gate.open:
            call = gate.requests[request_id]
            granted = gate.grants.get((call.token.session_id, call.tool.name))
            verdict = _verdict(policy, call, granted)
            if verdict != "ask":
                what = f"{request_id} stays open, and the new policy says {verdict}"
                self.report("APPROVE-4", what)

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if not isinstance(effect, RunTool):
            return
        name = f"{effect.call_id} of {effect.turn_id}"
        if (effect.turn_id, effect.call_id) in self._ran:
            self.report("APPROVE-4", f"{name} runs again")
        self._ran[effect.turn_id, effect.call_id] = True
        found = self._allowed.get((host, effect.turn_id, effect.call_id))
        if found is None:
            self.report("APPROVE-4", f"{name} runs, and {seat_of(owner)} never allowed it")
            return
        call, reply = found
        if (call.tool.name, call.arguments) != (effect.tool, effect.arguments):
            self.report("APPROVE-4", f"{name} runs with other arguments than were allowed")
        if reply.expects != effect.expects:
            self.report("APPROVE-4", f"{name} runs without the preview that was allowed")

    def raised(self, host: str, owner: str, message: Message, error: Exception) -> None:
        self._gates.pop((host, owner), None)


# --- the policy, read in a way of its own ---------------------------------------------------------


def _policy_in(message: Message) -> Policy | None:
    match message:
        case Answered(reply=Policy() as policy) | PolicyChanged(policy=policy):
            return policy
        case _:
            return None


def _verdict(policy: Policy, call: DecideCall, granted: str | None) -> str:
    tool = call.tool
    rule = policy.tools.get(tool.name)
    if (policy.mode == "plan" and tool.mutating) or "deny" in (rule, granted):
        return "deny"
    if granted == "allow":
        return "allow"
    open_to_all = not tool.mutating or policy.mode == "yolo"
    verdict = rule or ("allow" if open_to_all else policy.mutating)
    if policy.mode != "safe" or not policy.working_dirs or verdict == "deny":
        return verdict
    named = [call.arguments.get(name) for name in tool.path_arguments]
    paths = [path for path in named if isinstance(path, str) and path]
    inside = [any(_is_inside(path, folder) for folder in policy.working_dirs) for path in paths]
    return "allow" if inside and all(inside) else "ask"


def _is_inside(path: str, folder: str) -> bool:
    parts = posixpath.normpath(path.replace("\\", "/")).split("/")
    base = posixpath.normpath(folder.replace("\\", "/") or ".").split("/")
    if parts[0] in ("", ".."):
        return False
    return base == ["."] or parts[: len(base)] == base
