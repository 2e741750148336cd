"""ApprovalActor: may this call run?  Allow, deny and stop, each bound to one call.

A request goes through these stages, any number of requests side by side:

    Resolving -> Looking -> Showing -> Open           asked
    Open -> Keeping -> Intending -> Confirming -> Answering -> gone      allowed, and applied
    Looking -> Keeping, or gone                       the policy decides alone
    Answering -> Remembering -> gone                  an `always` is written
    any -> gone                                       revoked, or out of time

ARCHITECTURE.md, section ApprovalActor.
"""

from typing import Literal

from msgspec.structs import replace

from tenure.actors.approval_asking import ask, on_expired, on_previewed
from tenure.actors.approval_audit import audited, on_audit_saved
from tenure.actors.approval_consent import (
    consent,
    on_confirmed,
    on_intent_saved,
    on_kept,
    ruling_now,
)
from tenure.actors.approval_gate import Ruling, deny_reason, ruling_of
from tenure.actors.approval_questions import on_question, revoke_questions
from tenure.actors.approval_remembering import on_rule_saved, remember
from tenure.actors.approval_replies import (
    denied,
    no_more,
    not_asked,
    outcome_of,
    resolved,
    resolving,
    revoked,
)
from tenure.actors.approval_state import (
    Answering,
    AuditSaved,
    ByPolicy,
    ByUser,
    Confirming,
    Gate,
    IntentSaved,
    Looking,
    Open,
    PolicyForCall,
    Remembering,
    Resolving,
    RuleSaved,
    Showing,
    Stage,
    find,
    granted,
    joined,
    with_grant,
    with_stage,
    without_stage,
)
from tenure.actors.approval_undo import undo_step
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    Applied,
    ApprovalsOpen,
    CallDenied,
    CallNotPreviewed,
    CallPreviewed,
    CallStopped,
    Choice,
    DecideCall,
    Deny,
    EndSessionGrants,
    Expired,
    ExpiryNotReached,
    ExpiryReached,
    GetApprovals,
    Ground,
    NoteDecision,
    RevokeApprovals,
    RevokeSeatApprovals,
    Stop,
    Superseded,
    UserAnswered,
    UserNotAsked,
    Via,
)
from tenure.messages.audit import audit_record
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted
from tenure.messages.checkpoints import (
    CallNotResolved,
    CallResolved,
    FilesKept,
    FilesNotKept,
    RunUndo,
)
from tenure.messages.questions import (
    AnswerQuestion,
    GetQuestions,
    PutQuestion,
    UserNotReached,
    UserReplied,
)
from tenure.messages.settings import (
    GetPolicy,
    Policy,
    PolicyChanged,
)
from tenure.messages.tokens import RequestId, SessionId, TurnId
from tenure.runtime.owner import Owner
from tenure.runtime.step import AskId, Step, Taken

__all__ = ["ApprovalActor", "Gate", "approval_step"]


def approval_step(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
    """Decide one message."""
    match message:
        case DecideCall():
            return on_decide(state, message, taken)
        case AnswerApproval(request_id=request_id, choice=choice, via=via):
            return on_answer(state, request_id, choice, via, taken.asker)
        case NoteDecision():
            return on_taken(state, message)
        case RevokeApprovals(turn_id=turn_id):
            return on_turn_ended(state, turn_id)
        case RevokeSeatApprovals():
            return revoke_questions(revoke(state, list(state.stages)), list(state.questions))
        case PutQuestion() | AnswerQuestion() | UserReplied() | GetQuestions():
            return on_question(state, message, taken)
        case EndSessionGrants(session_id=session_id):
            return on_session_ended(state, session_id)
        case PolicyChanged(policy=policy):
            return on_policy_changed(state, policy, taken)
        case GetApprovals():
            asked = tuple(stage.request for stage in state.stages if isinstance(stage, Open))
            return Step(state).answer(taken.asker, ApprovalsOpen(requests=asked))
        case RunUndo():
            return undo_step(state, message, taken)
        case Answered():
            return on_answered(state, message, taken)
        case UserNotAsked() | UserNotReached() | ExpiryNotReached() | OwnerStarted():
            # Without an approver a request stays open for an `AnswerApproval`.
            return Step(state)
        case _:
            return on_outcome(state, message, taken)


def on_answered(state: Gate, message: Answered, taken: Taken) -> Step[Gate]:
    match message:
        case Answered(re=PolicyForCall(request_id=request_id), reply=reply):
            return on_policy(state, request_id, reply, taken)
        case Answered(re=RuleSaved(request_id=request_id), reply=reply):
            return on_rule_saved(state, request_id, reply)
        case Answered(re=IntentSaved(request_id=request_id), reply=reply):
            return on_intent_saved(state, request_id, reply)
        case Answered(re=AuditSaved(record=record), reply=reply):
            return on_audit_saved(state, record, reply)
        case _:
            return undo_step(state, message, taken)


def on_outcome(state: Gate, message: Message, taken: Taken) -> Step[Gate]:
    match message:
        case CallResolved() | CallNotResolved():
            return on_resolved(state, message)
        case CallPreviewed(request_id=request_id, preview=preview):
            return on_previewed(state, request_id, preview, taken)
        case CallNotPreviewed(request_id=request_id):
            return on_previewed(state, request_id, None, taken)
        case FilesKept() | FilesNotKept():
            return on_kept(state, message)
        case ExpiryReached(request_id=request_id):
            return on_expired(state, request_id)
        case UserAnswered(request_id=request_id, choice=choice):
            return on_answer(state, request_id, choice, "approver", None)
        case _:
            return undo_step(state, message, taken)


def on_decide(state: Gate, message: DecideCall, taken: Taken) -> Step[Gate]:
    """A call of a turn: follow the links of its files, and look at the policy as it is now."""
    named = (message.turn_id, message.call_id)
    if any((s.call.turn_id, s.call.call_id) == named for s in state.stages):  # guard: APPROVE-1
        return Step(state).answer(taken.asker, denied(message, "this call is being decided"))
    request_id = RequestId(taken.fresh)
    if message.tool.path_arguments:
        first = Resolving(request_id, message, taken.asker, taken.now_ms)
        return Step(replace(state, stages=(*state.stages, first))).do(resolving(first))
    looking = Looking(request_id, message, taken.asker, taken.now_ms)
    return _look(replace(state, stages=(*state.stages, looking)), request_id)


def on_resolved(state: Gate, message: CallResolved | CallNotResolved) -> Step[Gate]:
    stage = find(state, message.request_id)
    if not isinstance(stage, Resolving):
        return Step(state)
    if isinstance(message, CallNotResolved):
        reason = f"where its files lie could not be found out ({message.reason})"
        return _deny(state, stage, Ruling("deny", "links"), reason)
    looking = Looking(stage.request_id, stage.call, stage.asker, stage.taken_ms, message.paths)
    return _look(with_stage(state, looking), stage.request_id)


def on_policy(state: Gate, request_id: RequestId, reply: Reply, taken: Taken) -> Step[Gate]:
    """The policy as it is now: for a new call, for an answer, or for what is open."""
    stage = find(state, request_id)
    match stage:
        case Confirming():
            ruling = ruling_now(state, stage, reply)
            if ruling.verdict == "ask" and isinstance(stage.consent, ByPolicy):
                # The policy let it run alone, and no more: now the user is asked.
                assert isinstance(reply, Policy)
                looking = Looking(request_id, stage.call, stage.asker, taken.now_ms, stage.paths)
                return ask(state, looking, reply, taken)
            return on_confirmed(state, stage, ruling, reply)
        case Looking() | Showing() | Open() if isinstance(reply, Policy):
            return decide(state, stage, reply, taken)
        case Looking():
            unread = Ruling("deny", "policy_unread")
            return _deny(state, stage, unread, "the policy could not be read")
        case _:
            return Step(state)


def decide(
    state: Gate, stage: Looking | Showing | Open, policy: Policy, taken: Taken
) -> Step[Gate]:
    """What the policy says decides; where it says ask, the user is asked, once."""
    call = stage.call
    ruling = ruling_of(policy, call.tool, call.arguments, granted(state, call), stage.paths)
    match ruling.verdict:
        case "allow":
            return _allow(state, stage, ruling, taken)
        case "deny":
            return _deny(state, stage, ruling, deny_reason(ruling))
        case "ask":
            if isinstance(stage, Looking):
                return ask(state, stage, policy, taken)
            request = replace(stage.request, policy_version=policy.version)
            return Step(with_stage(state, replace(stage, request=request)))


def on_answer(
    state: Gate, request_id: RequestId, choice: Choice, via: Via, user: AskId | None
) -> Step[Gate]:
    """An answer counts once, for the one request that it names."""
    stage = find(state, request_id)
    if not isinstance(stage, Open):  # guard: APPROVE-4
        known = stage is not None or request_id in state.closed
        late: Reply = Superseded(request_id=request_id)
        if not known or request_id in state.expired:
            late = Expired(request_id=request_id)
        return Step(state).answer(user, late)
    if isinstance(choice, Allow):
        by = ByUser(stage.request, choice, user, via)
        return not_asked(consent(state, stage, by), stage)
    return not_asked(_tell_turn(state, stage, choice, via, user), stage)


def on_taken(state: Gate, message: NoteDecision) -> Step[Gate]:
    """The turn says what became of an answer; only now is it remembered."""
    stage = find(state, message.request_id)
    if not isinstance(stage, Answering):
        return Step(state)
    if message.fate == "superseded":  # guard: APPROVE-5
        step = Step(without_stage(state, stage)).emit(resolved(stage, "superseded"))
        step = step.answer(stage.user, Superseded(request_id=stage.request_id))
        return audited(step, stage.call, replace(stage.record, decision="superseded"))
    return audited(_taken(state, stage), stage.call, stage.record)


def _taken(state: Gate, stage: Answering) -> Step[Gate]:
    match stage.choice:
        case Allow(scope="always"):
            return remember(state, stage, "allow")
        case Deny(scope="always"):
            return remember(state, stage, "deny")
        case Allow(scope="session"):
            return _grant(_apply(state, stage), stage.call, "allow")
        case Deny(scope="session"):
            return _grant(_apply(state, stage), stage.call, "deny")
        case Allow() | Deny() | Stop():
            return _apply(state, stage)


def on_turn_ended(state: Gate, turn_id: TurnId) -> Step[Gate]:
    """Nothing of this turn may be approved or answered any more."""
    asked = [each for each in state.questions if each.request.turn_id == turn_id]
    mine = [each for each in state.stages if each.call.turn_id == turn_id]
    return revoke_questions(revoke(state, mine), asked)


def on_session_ended(state: Gate, session_id: SessionId) -> Step[Gate]:
    """A session left the seat: its requests and its grants go with it."""
    mine = [stage for stage in state.stages if stage.call.token.session_id == session_id]
    rest = tuple(grant for grant in state.grants if grant.session_id != session_id)
    asked = [each for each in state.questions if each.request.token.session_id == session_id]
    return revoke_questions(revoke(replace(state, grants=rest), mine), asked)


def on_policy_changed(state: Gate, policy: Policy, taken: Taken) -> Step[Gate]:
    """What is open is decided anew; what must still be asked stays open."""
    step = Step(state)
    for stage in state.stages:
        if isinstance(stage, Open | Showing):
            step = joined(step, decide(step.state, stage, policy, taken))
    return step


def revoke(state: Gate, stages: list[Stage]) -> Step[Gate]:
    """These requests are over: whoever waits is told, and nothing of them can run."""
    step = Step(state)
    for stage in stages:
        # One that took effect is being written down, and that goes on.
        if not isinstance(stage, Remembering):
            over = without_stage(step.state, stage)
            step = joined(step, no_more(revoked(over, stage), stage))
    return step


# --- pure helpers ------------------------------------------------------------------------


def _look(state: Gate, request_id: RequestId) -> Step[Gate]:
    return Step(state).ask("settings", GetPolicy(), re=PolicyForCall(request_id=request_id))


def _allow(
    state: Gate, stage: Looking | Showing | Open, ruling: Ruling, taken: Taken
) -> Step[Gate]:
    """The policy decides alone; a user who was asked sees that the question is over."""
    call = stage.call
    looking = Looking(stage.request_id, call, stage.asker, taken.now_ms, stage.paths)
    step = consent(state, looking, ByPolicy(ruling.ground, ruling.rule))
    if isinstance(stage, Open):
        step = step.emit(resolved(stage, "allowed"))
    return no_more(step, stage)


def _deny(state: Gate, stage: Stage, ruling: Ruling, reason: str) -> Step[Gate]:
    assert isinstance(stage, Resolving | Looking | Showing | Open)
    step = Step(without_stage(state, stage)).answer(stage.asker, denied(stage.call, reason))
    if isinstance(stage, Open):
        step = step.emit(resolved(stage, "denied"))
    paths = () if isinstance(stage, Resolving) else stage.paths
    record = audit_record(
        stage.call,
        stage.request_id,
        "denied",
        ruling.ground,
        reason,
        rule=ruling.rule,
        paths=paths,
    )
    return no_more(audited(step, stage.call, record), stage)


def _tell_turn(
    state: Gate, stage: Open, choice: Deny | Stop, via: Ground, user: AskId | None
) -> Step[Gate]:
    """Give the turn its answer, and wait for what becomes of it."""
    call, request_id = stage.call, stage.request_id
    reply: CallDenied | CallStopped
    if isinstance(choice, Stop):
        reply = CallStopped(call_id=call.call_id, request_id=request_id)
        record = audit_record(call, request_id, "stopped", via, paths=stage.paths)
    else:
        reason = choice.reason or "the user denied this call"
        reply = denied(call, reason, request_id)
        record = audit_record(
            call, request_id, "denied", via, reason, scope=choice.scope, paths=stage.paths
        )
    record = replace(record, policy=stage.request.policy_version)
    answering = Answering(request_id, call, choice, user, record)
    return Step(with_stage(state, answering)).answer(stage.asker, reply)


def _apply(state: Gate, stage: Answering) -> Step[Gate]:
    step = Step(without_stage(state, stage)).emit(resolved(stage, outcome_of(stage.choice)))
    return step.answer(stage.user, Applied(request_id=stage.request_id))


def _grant(step: Step[Gate], call: DecideCall, rule: Literal["allow", "deny"]) -> Step[Gate]:
    """What is open of the same tool is decided anew: the user has just said it."""
    step = step.to(with_grant(step.state, call, rule))
    for stage in step.state.stages:
        same = stage.call.tool.name == call.tool.name and isinstance(stage, Open | Showing)
        if same and stage.call.token.session_id == call.token.session_id:
            step = joined(step, _look(step.state, stage.request_id))
    return step


class ApprovalActor(Owner):
    step = staticmethod(approval_step)
    first = Gate
