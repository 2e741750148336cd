"""What the ApprovalActor says: to the turn, to the user, and to whoever listens."""

from tenure.actors.approval_audit import audited
from tenure.actors.approval_state import (
    Answering,
    ByUser,
    Confirming,
    Gate,
    Intending,
    Keeping,
    Looking,
    Open,
    Remembering,
    Resolving,
    Showing,
    Stage,
)
from tenure.messages.approval import (
    Allow,
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolved,
    AskUser,
    AwaitExpiry,
    CallAllowed,
    CallDenied,
    Choice,
    DecideCall,
    Deny,
    PreviewCall,
    Stop,
    Superseded,
    digest_of,
)
from tenure.messages.audit import audit_record
from tenure.messages.checkpoints import KeepFiles, ResolveCall
from tenure.messages.tokens import RequestId
from tenure.runtime.step import Step

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


def outcome_of(choice: Choice) -> ApprovalOutcome:
    match choice:
        case Allow():
            return "allowed"
        case Deny():
            return "denied"
        case Stop():
            return "stopped"


def resolved(stage: Stage, outcome: ApprovalOutcome) -> ApprovalResolved:
    return ApprovalResolved(
        request_id=stage.request_id, turn_id=stage.call.turn_id, outcome=outcome
    )


def revoked(over: Gate, stage: Stage) -> Step[Gate]:
    """Tell everybody who waits for this request that its turn is over."""
    step = Step(over)
    match stage:
        case Remembering():
            return step
        case Resolving() | Looking() | Showing():
            step = step.answer(stage.asker, denied(stage.call, TURN_ENDED))
        case Open():
            step = step.emit(resolved(stage, "revoked"))
            step = step.answer(stage.asker, denied(stage.call, TURN_ENDED))
        case Keeping() | Intending() | Confirming():
            step = step.answer(stage.asker, denied(stage.call, TURN_ENDED))
            step = user_superseded(step, stage, "revoked")
        case Answering():
            step = step.emit(resolved(stage, "superseded"))
            step = step.answer(stage.user, Superseded(request_id=stage.request_id))
    record = audit_record(stage.call, stage.request_id, "revoked", "turn", TURN_ENDED)
    return audited(step, stage.call, record)


def user_superseded(
    step: Step[Gate], stage: Keeping | Intending | Confirming, outcome: ApprovalOutcome
) -> Step[Gate]:
    """Whoever allowed it is told that it had no effect; the policy alone waits for nobody."""
    if not isinstance(stage.consent, ByUser):
        return step
    step = step.emit(resolved(stage, outcome))
    return step.answer(stage.consent.user, Superseded(request_id=stage.request_id))


def no_more(step: Step[Gate], stage: Stage) -> Step[Gate]:
    """End what runs for a stage that is over."""
    match stage:
        case Resolving():
            return step.cancel(resolving(stage).key)
        case Showing():
            return step.cancel(previewing(stage).key)
        case Open():
            return not_asked(step, stage)
        case Keeping():
            return step.cancel(keeping(stage).key)
        case _:
            return step


def not_asked(step: Step[Gate], stage: Open) -> Step[Gate]:
    """Nobody is asked any more, and no time runs out."""
    step = step.cancel(AskUser(request=stage.request).key)
    if not stage.request.expires_ms:
        return step
    return step.cancel(AwaitExpiry(request_id=stage.request_id, delay_ms=0).key)


def resolving(stage: Resolving) -> ResolveCall:
    call = stage.call
    return ResolveCall(request_id=stage.request_id, tool=call.tool.name, arguments=call.arguments)


def previewing(stage: Showing) -> PreviewCall:
    call = stage.call
    return PreviewCall(request_id=stage.request_id, tool=call.tool.name, arguments=call.arguments)


def keeping(stage: Keeping) -> KeepFiles:
    call = stage.call
    return KeepFiles(
        request_id=stage.request_id,
        tool=call.tool.name,
        arguments=call.arguments,
        paths=stage.paths,
    )
