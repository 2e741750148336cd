"""What the ApprovalActor says: to the turn, to the user, and to whoever listens."""

from typing import Literal

from tenure.actors.approval_state import (
    Answering,
    Confirming,
    Gate,
    Looking,
    Open,
    Remembering,
    Showing,
    Stage,
)
from tenure.messages.approval import (
    Allow,
    ApprovalRequest,
    ApprovalResolved,
    CallAllowed,
    CallDenied,
    CallStopped,
    Choice,
    DecideCall,
    Deny,
    Stop,
    Superseded,
    digest_of,
)
from tenure.messages.tokens import RequestId
from tenure.runtime.step import Step

Outcome = Literal["allowed", "denied", "stopped", "revoked", "superseded"]

TURN_ENDED = "the turn ended"


def request_of(
    request_id: RequestId, call: DecideCall, policy_version: str, asked_ms: int
) -> ApprovalRequest:
    """The question, bound to everything that its answer counts for."""
    return ApprovalRequest(
        request_id=request_id,
        token=call.token,
        turn_id=call.turn_id,
        call_id=call.call_id,
        tool=call.tool.name,
        label=call.tool.label or call.tool.name,
        arguments=call.arguments,
        digest=digest_of(call.tool.name, call.arguments),
        policy_version=policy_version,
        preview=None,
        asked_ms=asked_ms,
    )


def allowed(
    call: DecideCall, expects: str = "", request_id: RequestId | None = None
) -> CallAllowed:
    return CallAllowed(
        call_id=call.call_id,
        digest=digest_of(call.tool.name, call.arguments),
        expects=expects,
        request_id=request_id,
    )


def denied(call: DecideCall, reason: str, request_id: RequestId | None = None) -> CallDenied:
    return CallDenied(call_id=call.call_id, reason=reason, request_id=request_id)


def answer_of(stage: Open | Confirming, choice: Choice) -> CallAllowed | CallDenied | CallStopped:
    """The user's choice, as the turn is told it."""
    call, request_id = stage.call, stage.request_id
    match choice:
        case Allow():
            preview = stage.request.preview
            return allowed(call, preview.digest if preview else "", request_id)
        case Deny(reason=reason):
            return denied(call, reason or "the user denied this call", request_id)
        case Stop():
            return CallStopped(call_id=call.call_id, request_id=request_id)


def outcome_of(choice: Choice) -> Outcome:
    match choice:
        case Allow():
            return "allowed"
        case Deny():
            return "denied"
        case Stop():
            return "stopped"


def resolved(stage: Open | Confirming | Answering, outcome: Outcome) -> ApprovalResolved:
    return ApprovalResolved(
        request_id=stage.request_id, turn_id=stage.call.turn_id, outcome=outcome
    )


def revoked(over: Gate, stage: Stage) -> Step[Gate]:
    """Tell everybody who waits for this request that its turn is over."""
    step = Step(over)
    match stage:
        case Looking() | Showing():
            return step.answer(stage.asker, denied(stage.call, TURN_ENDED))
        case Open():
            step = step.emit(resolved(stage, "revoked"))
            return step.answer(stage.asker, denied(stage.call, TURN_ENDED))
        case Confirming():
            step = step.emit(resolved(stage, "revoked"))
            step = step.answer(stage.asker, denied(stage.call, TURN_ENDED))
            return step.answer(stage.user, Superseded(request_id=stage.request_id))
        case Answering():
            step = step.emit(resolved(stage, "superseded"))
            return step.answer(stage.user, Superseded(request_id=stage.request_id))
        case Remembering():
            return step
