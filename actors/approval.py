"""ApprovalActor: may this call run?  Allow, deny and stop, each bound to one call.

A request goes through these stages, any number of requests side by side:

    Looking -> Showing -> Open -> Confirming -> Answering -> gone     asked, answered, applied
    Looking -> gone                                     the policy decides alone
    any -> gone                                         revoked

ARCHITECTURE.md, section ApprovalActor.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from tenure.actors.approval_gate import deny_reason, verdict_of
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    Applied,
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    ApprovalsOpen,
    AskUser,
    CallAllowed,
    CallDenied,
    CallNotPreviewed,
    CallPreviewed,
    CallStopped,
    Choice,
    DecideCall,
    DecisionTaken,
    Deny,
    EndSessionGrants,
    Expired,
    GetApprovals,
    Preview,
    PreviewCall,
    RevokeApprovals,
    Stop,
    Superseded,
    UserAnswered,
    UserNotAsked,
    digest_of,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
from tenure.messages.settings import (
    GetPolicy,
    Policy,
    PolicyChanged,
    SettingsSaved,
    SetToolPolicy,
)
from tenure.messages.tokens import RequestId, SessionId
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken

CLOSED_KEPT_MAX = 256
"""Requests that are over and still known by name, so that a late answer is `Superseded`."""

# --- states ------------------------------------------------------------------------------


class Looking(msgspec.Struct, frozen=True):
    """The policy is being asked for."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    taken_ms: int


class Showing(msgspec.Struct, frozen=True):
    """What the call would do is being worked out."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    request: ApprovalRequest


class Open(msgspec.Struct, frozen=True):
    """The user was asked."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    request: ApprovalRequest


class Confirming(msgspec.Struct, frozen=True):
    """The user allowed it; does the policy still let it be allowed?"""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    request: ApprovalRequest
    choice: Allow
    user: AskId | None


class Answering(msgspec.Struct, frozen=True):
    """The turn was told the answer; did it take effect?"""

    request_id: RequestId
    call: DecideCall
    choice: Choice
    user: AskId | None


class Remembering(msgspec.Struct, frozen=True):
    """The answer took effect and is being written into the policy."""

    request_id: RequestId
    call: DecideCall
    user: AskId | None


Stage = Looking | Showing | Open | Confirming | Answering | Remembering


class Grant(msgspec.Struct, frozen=True):
    """What the user said of a tool for a whole session."""

    session_id: SessionId
    tool: str
    rule: Literal["allow", "deny"]


class Gate(msgspec.Struct, frozen=True):
    """The owner's one state: what is under way, and what was granted."""

    stages: tuple[Stage, ...] = ()
    grants: tuple[Grant, ...] = ()
    closed: tuple[RequestId, ...] = ()


class PolicyForCall(msgspec.Struct, frozen=True):
    request_id: RequestId


class RuleSaved(msgspec.Struct, frozen=True):
    request_id: RequestId


# --- the step ----------------------------------------------------------------------------


def approval_step(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
    """Decide one message."""
    match message:
        case DecideCall():
            return on_decide(state, message, taken)
        case AnswerApproval(request_id=request_id, choice=choice):
            return on_answer(state, request_id, choice, taken.asker)
        case DecisionTaken():
            return on_taken(state, message)
        case RevokeApprovals(turn_id=turn_id):
            mine = [stage for stage in state.stages if stage.call.turn_id == turn_id]
            return revoke(state, mine)
        case EndSessionGrants(session_id=session_id):
            return on_session_ended(state, session_id)
        case PolicyChanged(policy=policy):
            return on_policy_changed(state, policy)
        case GetApprovals():
            asked = tuple(stage.request for stage in state.stages if isinstance(stage, Open))
            return Step(state).answer(taken.asker, ApprovalsOpen(requests=asked))
        case Answered(re=PolicyForCall(request_id=request_id), reply=reply):
            return on_policy(state, request_id, reply)
        case Answered(re=RuleSaved(request_id=request_id), reply=reply):
            return on_rule_saved(state, request_id, reply)
        case CallPreviewed(request_id=request_id, preview=preview):
            return on_previewed(state, request_id, preview)
        case CallNotPreviewed(request_id=request_id):
            return on_previewed(state, request_id, None)
        case UserAnswered(request_id=request_id, choice=choice):
            return on_answer(state, request_id, choice, None)
        case UserNotAsked() | OwnerStarted():
            # Without an approver a request stays open for an `AnswerApproval`.
            return Step(state)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_decide(state: Gate, message: DecideCall, taken: Taken) -> Step[Gate]:
    """A call of a turn: look at the policy as it is now."""
    for stage in state.stages:
        if _same_call(stage.call, message):  # guard: APPROVE-1
            denied = CallDenied(
                call_id=message.call_id, reason="this call is being decided", request_id=None
            )
            return Step(state).answer(taken.asker, denied)
    request_id = RequestId(taken.fresh)
    looking = Looking(request_id, message, taken.asker, taken.now_ms)
    step = Step(replace(state, stages=(*state.stages, looking)))
    return step.ask("settings", GetPolicy(), re=PolicyForCall(request_id=request_id))


def on_policy(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    stage = _find(state, request_id)
    if isinstance(stage, Confirming):
        return on_confirmed(state, stage, reply)
    if not isinstance(stage, Looking):
        return Step(state)
    if not isinstance(reply, Policy):
        return _decided(state, stage, _denied(stage, "the policy could not be read"), "denied")
    call = stage.call
    verdict = verdict_of(reply, call.tool, call.arguments, _granted(state, call))
    if verdict == "allow":
        return _decided(state, stage, _allowed(stage, ""), "allowed")
    if verdict == "deny":
        denied = _denied(stage, deny_reason(reply, call.tool))
        return _decided(state, stage, denied, "denied")
    return _ask(state, stage, reply)


def on_previewed(state: Gate, request_id: RequestId, preview: Preview | None) -> Step[Gate]:
    """Everything that the user needs to see is there: ask."""
    stage = _find(state, request_id)
    if not isinstance(stage, Showing):
        return Step(state)
    request = replace(stage.request, preview=preview)
    asked = Open(request_id, stage.call, stage.asker, request)
    step = Step(_with(state, asked)).emit(ApprovalRequested(request=request))
    return step.do(AskUser(request=request))


def on_answer(state: Gate, request_id: RequestId, choice: Choice, user: AskId | None) -> Step[Gate]:
    """An answer counts once, for the one request that it names."""
    stage = _find(state, request_id)
    if not isinstance(stage, Open):  # guard: APPROVE-4
        known = stage is not None or request_id in state.closed
        late: Reply = Superseded(request_id=request_id)
        return Step(state).answer(user, late if known else Expired(request_id=request_id))
    asked_no_more = AskUser(request=stage.request).key
    if isinstance(choice, Allow):
        confirming = Confirming(request_id, stage.call, stage.asker, stage.request, choice, user)
        step = Step(_with(state, confirming)).cancel(asked_no_more)
        return step.ask("settings", GetPolicy(), re=PolicyForCall(request_id=request_id))
    return _tell_turn(state, stage, choice, user).cancel(asked_no_more)


def on_confirmed(state: Gate, stage: Confirming, reply: Reply) -> Step[Gate]:
    """Another process may have changed the policy since the user was asked."""
    call = stage.call
    verdict = "deny"
    if isinstance(reply, Policy):
        verdict = verdict_of(reply, call.tool, call.arguments, _granted(state, call))
    if verdict != "deny":
        return _tell_turn(state, stage, stage.choice, stage.user)
    step = Step(_without(state, stage)).emit(_resolved(stage, "denied"))
    step = step.answer(stage.asker, _denied(stage, "the policy denies this tool now"))
    return step.answer(stage.user, Superseded(request_id=stage.request_id))


def on_taken(state: Gate, message: DecisionTaken) -> Step[Gate]:
    """The turn says what became of an answer; only now is it remembered."""
    stage = _find(state, message.request_id)
    if not isinstance(stage, Answering):
        return Step(state)
    if message.fate == "superseded":  # guard: APPROVE-5
        step = Step(_without(state, stage)).emit(_resolved(stage, "superseded"))
        return step.answer(stage.user, Superseded(request_id=stage.request_id))
    call = stage.call
    match stage.choice:
        case Allow(scope="always"):
            return _remember(state, stage, "allow")
        case Deny(scope="always"):
            return _remember(state, stage, "deny")
        case Allow(scope="session"):
            state = _grant(state, Grant(call.token.session_id, call.tool.name, "allow"))
        case Deny(scope="session"):
            state = _grant(state, Grant(call.token.session_id, call.tool.name, "deny"))
        case Allow() | Deny() | Stop():
            pass
    step = Step(_without(state, stage)).emit(_resolved(stage, _outcome(stage.choice)))
    return step.answer(stage.user, Applied(request_id=stage.request_id))


def on_rule_saved(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    stage = _find(state, request_id)
    if not isinstance(stage, Remembering):
        return Step(state)
    remembered = isinstance(reply, SettingsSaved)
    applied = Applied(request_id=request_id, remembered=remembered)
    return Step(_without(state, stage)).answer(stage.user, applied)


def on_session_ended(state: Gate, session_id: SessionId) -> Step[Gate]:
    """A session left the seat: its requests and its grants go with it."""
    mine = [stage for stage in state.stages if stage.call.token.session_id == session_id]
    rest = tuple(grant for grant in state.grants if grant.session_id != session_id)
    return revoke(replace(state, grants=rest), mine)


def on_policy_changed(state: Gate, policy: Policy) -> Step[Gate]:
    """What is open is decided anew; what must still be asked stays open."""
    step = Step(state)
    for stage in state.stages:
        if not isinstance(stage, Open | Showing):
            continue
        call = stage.call
        verdict = verdict_of(policy, call.tool, call.arguments, _granted(state, call))
        if verdict == "ask":
            request = replace(stage.request, policy_version=policy.version)
            step = step.to(_with(step.state, replace(stage, request=request)))
            continue
        if verdict == "allow":
            reply: Reply = _allowed(stage, "")
            further = _decided(step.state, stage, reply, "allowed")
        else:
            reply = _denied(stage, deny_reason(policy, call.tool))
            further = _decided(step.state, stage, reply, "denied")
        step = _joined(step, further)
    return step


def revoke(state: Gate, stages: list[Stage]) -> Step[Gate]:
    """These requests are over: whoever waits is told, and nothing of them can run."""
    step = Step(state)
    for stage in stages:
        step = _joined(step, _revoke_one(step.state, stage))
    return step


# --- pure helpers ------------------------------------------------------------------------


def _revoke_one(state: Gate, stage: Stage) -> Step[Gate]:
    match stage:
        case Looking():
            gone = Step(_without(state, stage))
            return gone.answer(stage.asker, _denied(stage, "the turn ended"))
        case Showing() | Open():
            gone = Step(_without(state, stage)).emit(_resolved(stage, "revoked"))
            gone = gone.cancel(AskUser(request=stage.request).key)
            return gone.answer(stage.asker, _denied(stage, "the turn ended"))
        case Confirming():
            gone = Step(_without(state, stage)).emit(_resolved(stage, "revoked"))
            gone = gone.answer(stage.asker, _denied(stage, "the turn ended"))
            return gone.answer(stage.user, Superseded(request_id=stage.request_id))
        case Answering():
            gone = Step(_without(state, stage)).emit(_resolved(stage, "superseded"))
            return gone.answer(stage.user, Superseded(request_id=stage.request_id))
        case Remembering():
            # It took effect before the turn ended; writing it down goes on.
            return Step(state)


def _ask(state: Gate, stage: Looking, policy: Policy) -> Step[Gate]:
    call = stage.call
    request = ApprovalRequest(
        request_id=stage.request_id,
        token=call.token,
        turn_id=call.turn_id,
        call_id=call.call_id,
        tool=call.tool.name,
        label=call.tool.label or call.tool.name,
        arguments=call.arguments,
        digest=digest_of(call.tool.name, call.arguments),
        policy_version=policy.version,
        preview=None,
        asked_ms=stage.taken_ms,
    )
    showing = Showing(stage.request_id, call, stage.asker, request)
    shown = _with(state, showing)
    if not call.tool.previews:
        return on_previewed(shown, stage.request_id, None)
    preview = PreviewCall(
        request_id=stage.request_id, tool=call.tool.name, arguments=call.arguments
    )
    return Step(shown).do(preview)


def _remember(state: Gate, stage: Answering, rule: Literal["allow", "deny"]) -> Step[Gate]:
    remembering = Remembering(stage.request_id, stage.call, stage.user)
    step = Step(_with(state, remembering)).emit(_resolved(stage, _outcome(stage.choice)))
    change = SetToolPolicy(tool=stage.call.tool.name, rule=rule)
    return step.ask("settings", change, re=RuleSaved(request_id=stage.request_id))


def _decided(
    state: Gate,
    stage: Looking | Showing | Open,
    reply: Reply,
    outcome: Literal["allowed", "denied"],
) -> Step[Gate]:
    """The policy decides alone; a user who was asked sees that the question is over."""
    step = Step(_without(state, stage)).answer(stage.asker, reply)
    if isinstance(stage, Open):
        step = step.cancel(AskUser(request=stage.request).key)
        step = step.emit(_resolved(stage, outcome))
    return step


def _tell_turn(
    state: Gate, stage: Open | Confirming, choice: Choice, user: AskId | None
) -> Step[Gate]:
    """Give the turn its answer, and wait for what becomes of it."""
    answering = Answering(stage.request_id, stage.call, choice, user)
    return Step(_with(state, answering)).answer(stage.asker, _reply_to_turn(stage, choice))


def _reply_to_turn(stage: Open | Confirming, choice: Choice) -> Reply:
    match choice:
        case Allow():
            preview = stage.request.preview
            allowed = _allowed(stage, preview.digest if preview else "")
            return replace(allowed, request_id=stage.request_id)
        case Deny(reason=reason):
            denied = _denied(stage, reason or "the user denied this call")
            return replace(denied, request_id=stage.request_id)
        case Stop():
            return CallStopped(call_id=stage.call.call_id, request_id=stage.request_id)


def _allowed(stage: Looking | Showing | Open | Confirming, expects: str) -> CallAllowed:
    call = stage.call
    digest = digest_of(call.tool.name, call.arguments)
    return CallAllowed(call_id=call.call_id, digest=digest, expects=expects, request_id=None)


def _denied(stage: Looking | Showing | Open | Confirming, reason: str) -> CallDenied:
    return CallDenied(call_id=stage.call.call_id, reason=reason, request_id=None)


def _outcome(choice: Choice) -> Literal["allowed", "denied", "stopped"]:
    match choice:
        case Allow():
            return "allowed"
        case Deny():
            return "denied"
        case Stop():
            return "stopped"


def _resolved(
    stage: Showing | Open | Confirming | Answering,
    outcome: Literal["allowed", "denied", "stopped", "revoked", "superseded"],
) -> ApprovalResolved:
    return ApprovalResolved(
        request_id=stage.request_id, turn_id=stage.call.turn_id, outcome=outcome
    )


def _granted(state: Gate, call: DecideCall) -> Literal["allow", "deny"] | None:
    """A grant is of one session: another session's never counts (APPROVE-4)."""
    for grant in reversed(state.grants):
        if grant.tool == call.tool.name and grant.session_id == call.token.session_id:
            return grant.rule
    return None


def _grant(state: Gate, grant: Grant) -> Gate:
    return replace(state, grants=(*state.grants, grant))


def _same_call(one: DecideCall, other: DecideCall) -> bool:
    return (one.turn_id, one.call_id) == (other.turn_id, other.call_id)


def _find(state: Gate, request_id: RequestId) -> Stage | None:
    """The only place that matches a `RequestId`."""
    return next((stage for stage in state.stages if stage.request_id == request_id), None)


def _with(state: Gate, stage: Stage) -> Gate:
    stages = tuple(stage if each.request_id == stage.request_id else each for each in state.stages)
    return replace(state, stages=stages)


def _without(state: Gate, stage: Stage) -> Gate:
    stages = tuple(each for each in state.stages if each.request_id != stage.request_id)
    closed = (*state.closed, stage.request_id)[-CLOSED_KEPT_MAX:]
    return Gate(stages, state.grants, closed)


def _joined(step: Step[Gate], further: Step[Gate]) -> Step[Gate]:
    return Step(
        further.state,
        step.replies + further.replies,
        step.events + further.events,
        step.mail + further.mail,
        step.effects + further.effects,
    )


class ApprovalActor(Owner):
    step = staticmethod(approval_step)
    first = Gate
