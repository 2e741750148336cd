"""ApprovalActor: may this call run?  Allow, deny and stop, each bound to one call.

A request goes through these stages, any number of requests side by side:

    Looking -> Showing -> Open -> Confirming -> Answering -> gone   asked, answered, applied
    Looking -> gone                                                 the policy decides alone
    Answering -> Remembering -> gone                                an `always` is written
    any -> gone                                                     revoked

ARCHITECTURE.md, section ApprovalActor.
"""

from typing import Literal

from msgspec.structs import replace

from tenure.actors.approval_gate import deny_reason, ruling_of, verdict_of
from tenure.actors.approval_questions import (
    on_question,
    revoke_questions,
)
from tenure.actors.approval_replies import (
    allowed,
    answer_of,
    denied,
    outcome_of,
    request_of,
    resolved,
    revoked,
)
from tenure.actors.approval_state import (
    Answering,
    Confirming,
    Gate,
    Looking,
    Open,
    PolicyForCall,
    Remembering,
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
from tenure.messages.approval import (
    Allow,
    AnswerApproval,
    Applied,
    ApprovalRequested,
    ApprovalsOpen,
    AskUser,
    CallAllowed,
    CallDenied,
    CallNotPreviewed,
    CallPreviewed,
    Choice,
    DecideCall,
    Deny,
    EndSessionGrants,
    Expired,
    GetApprovals,
    NoteDecision,
    Preview,
    PreviewCall,
    RevokeApprovals,
    RevokeSeatApprovals,
    Stop,
    Superseded,
    UserAnswered,
    UserNotAsked,
)
from tenure.messages.base import Message, Reply
from tenure.messages.bus import Answered, OwnerStarted, Unhandled
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
    SettingsSaved,
    SetToolPolicy,
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
        case AnswerApproval(request_id=request_id, choice=choice):
            return on_answer(state, request_id, choice, taken.asker)
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
        case UserNotAsked() | UserNotReached() | OwnerStarted():
            # Without an approver a request stays open for an `AnswerApproval`.
            return Step(state)
        case _:
            return Step(state).answer(taken.asker, Unhandled(message=type(message).__name__))


def on_decide(state: Gate, message: DecideCall, taken: Taken) -> Step[Gate]:
    """A call of a turn: look at the policy as it is now."""
    if any(_same_call(stage.call, message) for stage in state.stages):  # guard: APPROVE-1
        return Step(state).answer(taken.asker, denied(message, "this call is being decided"))
    request_id = RequestId(taken.fresh)
    looking = Looking(request_id, message, taken.asker, taken.now_ms)
    step = Step(replace(state, stages=(*state.stages, looking)))
    return step.ask("settings", GetPolicy(), re=PolicyForCall(request_id=request_id))


def on_policy(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    """The policy as it is now: for a new call, for an answer, or for what is open."""
    stage = find(state, request_id)
    match stage:
        case Confirming():
            return on_confirmed(state, stage, reply)
        case Looking() | Showing() | Open() if isinstance(reply, Policy):
            return decide(state, stage, reply)
        case Looking():
            return _settle(state, stage, denied(stage.call, "the policy could not be read"))
        case _:
            return Step(state)


def decide(state: Gate, stage: Looking | Showing | Open, policy: Policy) -> Step[Gate]:
    """What the policy says decides; where it says ask, the user is asked, once."""
    call = stage.call
    ruling = ruling_of(policy, call.tool, call.arguments, granted(state, call))
    match ruling.verdict:
        case "allow":
            return _settle(state, stage, allowed(call))
        case "deny":
            return _settle(state, stage, denied(call, deny_reason(ruling)))
        case "ask":
            if isinstance(stage, Looking):
                return ask(state, stage, policy)
            request = replace(stage.request, policy_version=policy.version)
            return Step(with_stage(state, replace(stage, request=request)))


def ask(state: Gate, stage: Looking, policy: Policy) -> Step[Gate]:
    """Ask the user, who sees first what the call would do."""
    call = stage.call
    request = request_of(stage.request_id, call, policy.version, stage.taken_ms)
    showing = Showing(stage.request_id, call, stage.asker, request)
    shown = with_stage(state, showing)
    if not call.tool.previews:
        return on_previewed(shown, stage.request_id, None)
    return Step(shown).do(_preview(showing))


def on_previewed(state: Gate, request_id: RequestId, preview: Preview | None) -> Step[Gate]:
    """Everything that the user needs to see is there: ask."""
    stage = find(state, request_id)
    if not isinstance(stage, Showing):
        return Step(state)
    request = replace(stage.request, preview=preview)
    asked = Open(request_id, stage.call, stage.asker, request)
    step = Step(with_stage(state, asked)).emit(ApprovalRequested(request=request))
    return step.do(AskUser(request=request))


def on_answer(state: Gate, request_id: RequestId, choice: Choice, user: AskId | None) -> Step[Gate]:
    """An answer counts once, for the one request that it names."""
    stage = find(state, request_id)
    if not isinstance(stage, Open):  # guard: APPROVE-4
        known = stage is not None or request_id in state.closed
        late: Reply = Superseded(request_id=request_id)
        return Step(state).answer(user, late if known else Expired(request_id=request_id))
    if not isinstance(choice, Allow):
        return _tell_turn(state, stage, choice, user).cancel(_asking(stage))
    confirming = Confirming(request_id, stage.call, stage.asker, stage.request, choice, user)
    step = Step(with_stage(state, confirming)).cancel(_asking(stage))
    return step.ask("settings", GetPolicy(), re=PolicyForCall(request_id=request_id))


def on_confirmed(state: Gate, stage: Confirming, reply: Reply) -> Step[Gate]:
    """Another process may have changed the policy since the user was asked."""
    call = stage.call
    verdict = "deny"
    if isinstance(reply, Policy):
        verdict = verdict_of(reply, call.tool, call.arguments, granted(state, call))
    if verdict == "deny":  # guard: APPROVE-4
        step = Step(without_stage(state, stage)).emit(resolved(stage, "denied"))
        step = step.answer(stage.asker, denied(call, "the policy denies this tool now"))
        return step.answer(stage.user, Superseded(request_id=stage.request_id))
    return _tell_turn(state, stage, stage.choice, stage.user)


def on_taken(state: Gate, message: NoteDecision) -> Step[Gate]:
    """The turn says what became of an answer; only now is it remembered."""
    stage = find(state, message.request_id)
    if not isinstance(stage, Answering):
        return Step(state)
    if message.fate == "superseded":  # guard: APPROVE-5
        step = Step(without_stage(state, stage)).emit(resolved(stage, "superseded"))
        return step.answer(stage.user, Superseded(request_id=stage.request_id))
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


def remember(state: Gate, stage: Answering, rule: Literal["allow", "deny"]) -> Step[Gate]:
    """Have the rule written by the one writer of the policy."""
    remembering = Remembering(stage.request_id, stage.call, stage.user)
    step = Step(with_stage(state, remembering)).emit(resolved(stage, outcome_of(stage.choice)))
    change = SetToolPolicy(tool=stage.call.tool.name, rule=rule)
    return step.ask("settings", change, re=RuleSaved(request_id=stage.request_id))


def on_rule_saved(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    stage = find(state, request_id)
    if not isinstance(stage, Remembering):
        return Step(state)
    remembered = isinstance(reply, SettingsSaved)
    applied = Applied(request_id=request_id, remembered=remembered)
    return Step(without_stage(state, stage)).answer(stage.user, applied)


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


def on_policy_changed(state: Gate, policy: Policy) -> Step[Gate]:
    """What is open is decided anew; what must still be asked stays open."""
    step = Step(state)
    for stage in state.stages:
        if isinstance(stage, Open | Showing):
            step = joined(step, decide(step.state, stage, policy))
    return step


def revoke(state: Gate, stages: list[Stage]) -> Step[Gate]:
    """These requests are over: whoever waits is told, and nothing of them can run."""
    step = Step(state)
    for stage in stages:
        # One that took effect is being written down, and that goes on.
        if not isinstance(stage, Remembering):
            over = without_stage(step.state, stage)
            step = joined(step, _asked_no_more(revoked(over, stage), stage))
    return step


# --- pure helpers ------------------------------------------------------------------------


def _settle(
    state: Gate, stage: Looking | Showing | Open, reply: CallAllowed | CallDenied
) -> Step[Gate]:
    """The policy decides alone; a user who was asked sees that the question is over."""
    step = Step(without_stage(state, stage)).answer(stage.asker, reply)
    if isinstance(stage, Open):
        outcome = resolved(stage, "allowed" if isinstance(reply, CallAllowed) else "denied")
        step = step.emit(outcome)
    return _asked_no_more(step, stage)


def _tell_turn(
    state: Gate, stage: Open | Confirming, choice: Choice, user: AskId | None
) -> Step[Gate]:
    """Give the turn its answer, and wait for what becomes of it."""
    answering = Answering(stage.request_id, stage.call, choice, user)
    return Step(with_stage(state, answering)).answer(stage.asker, answer_of(stage, choice))


def _apply(state: Gate, stage: Answering) -> Step[Gate]:
    step = Step(without_stage(state, stage)).emit(resolved(stage, outcome_of(stage.choice)))
    return step.answer(stage.user, Applied(request_id=stage.request_id))


def _grant(step: Step[Gate], call: DecideCall, rule: Literal["allow", "deny"]) -> Step[Gate]:
    """What is open of the same tool is decided anew: the user has just said it."""
    step = step.to(with_grant(step.state, call, rule))
    for stage in step.state.stages:
        same = stage.call.tool.name == call.tool.name and isinstance(stage, Open | Showing)
        if same and stage.call.token.session_id == call.token.session_id:
            re = PolicyForCall(request_id=stage.request_id)
            step = step.ask("settings", GetPolicy(), re=re)
    return step


def _asked_no_more(step: Step[Gate], stage: Stage) -> Step[Gate]:
    match stage:
        case Showing():
            return step.cancel(_preview(stage).key)
        case Open():
            return step.cancel(_asking(stage))
        case _:
            return step


def _asking(stage: Open) -> str:
    return AskUser(request=stage.request).key


def _preview(stage: Showing) -> PreviewCall:
    call = stage.call
    return PreviewCall(request_id=stage.request_id, tool=call.tool.name, arguments=call.arguments)


def _same_call(one: DecideCall, other: DecideCall) -> bool:
    return (one.turn_id, one.call_id) == (other.turn_id, other.call_id)


class ApprovalActor(Owner):
    step = staticmethod(approval_step)
    first = Gate
