"""From an allowance to the turn's answer: files kept, intent written, policy asked once more.

    Keeping -> Intending -> Confirming -> Answering     somebody allowed it
                                       -> gone          the policy alone did

A call that changes no files goes on at once.
"""

from tenure.actors.approval_audit import audited
from tenure.actors.approval_gate import Ruling, deny_reason, ruling_of
from tenure.actors.approval_replies import allowed, denied, keeping, user_superseded
from tenure.actors.approval_state import (
    Answering,
    ByPolicy,
    ByUser,
    Confirming,
    Consent,
    Consented,
    Gate,
    Intending,
    IntentSaved,
    Keeping,
    Looking,
    Open,
    PolicyForCall,
    find,
    granted,
    with_stage,
    without_stage,
)
from tenure.messages.approval import Ground
from tenure.messages.audit import AuditRecord, audit_record
from tenure.messages.base import Refusal, Reply
from tenure.messages.checkpoints import ABSENT, FileImage, FilesKept, FilesNotKept, intent_entry
from tenure.messages.session import Appended, AppendEntries
from tenure.messages.settings import GetPolicy, Policy
from tenure.messages.tokens import RequestId
from tenure.runtime.step import Step

DENIED_NOW = "the policy denies this tool now"


def consent(state: Gate, stage: Looking | Open, by: Consent) -> Step[Gate]:
    """It is allowed: keep what its files hold first, where it changes any."""
    call = stage.call
    if call.tool.mutating and call.tool.path_arguments and stage.paths:
        kept = Keeping(stage.request_id, call, stage.asker, stage.paths, by)
        return Step(with_stage(state, kept)).do(keeping(kept))
    confirming = Confirming(
        stage.request_id, call, stage.asker, stage.paths, by, _previewed(by), ""
    )
    if isinstance(by, ByPolicy):
        return let_run(state, confirming, by)
    return confirm(state, confirming)


def on_kept(state: Gate, message: FilesKept | FilesNotKept) -> Step[Gate]:
    """What the files hold is durable, or it is not and nothing may change them."""
    stage = find(state, message.request_id)
    if not isinstance(stage, Keeping):
        return Step(state)
    if isinstance(message, FilesNotKept):  # guard: APPROVE-7
        reason = f"what its files hold could not be kept for undo ({message.reason})"
        return refuse(state, stage, "checkpoint", reason)
    expects = _expected(stage, message.images)
    if not message.images:
        confirming = Confirming(
            stage.request_id, stage.call, stage.asker, stage.paths, stage.consent, expects, ""
        )
        return confirm(state, confirming)
    intending = Intending(
        stage.request_id, stage.call, stage.asker, stage.paths, stage.consent, expects
    )
    call = stage.call
    entry = intent_entry(
        stage.request_id,
        call.token.session_id,
        (call.turn_id, call.call_id, call.tool.name),
        message.images,
    )
    append = AppendEntries(token=call.token, entries=(entry,), turn_id=call.turn_id)
    re = IntentSaved(request_id=stage.request_id)
    return Step(with_stage(state, intending)).ask("session", append, re=re)


def on_intent_saved(state: Gate, request_id: RequestId, reply: Reply) -> Step[Gate]:
    stage = find(state, request_id)
    if not isinstance(stage, Intending):
        return Step(state)
    if not isinstance(reply, Appended):  # guard: APPROVE-7
        why = reply.remedy if isinstance(reply, Refusal) else type(reply).__name__
        reason = f"that it changes files could not be written down ({why})"
        return refuse(state, stage, "checkpoint", reason)
    confirming = Confirming(
        request_id,
        stage.call,
        stage.asker,
        stage.paths,
        stage.consent,
        stage.expects,
        str(request_id),
    )
    return confirm(state, confirming)


def confirm(state: Gate, stage: Confirming) -> Step[Gate]:
    """Another process may have changed the policy meanwhile."""
    step = Step(with_stage(state, stage))
    return step.ask("settings", GetPolicy(), re=PolicyForCall(request_id=stage.request_id))


def ruling_now(state: Gate, stage: Confirming, reply: Reply) -> Ruling:
    if not isinstance(reply, Policy):
        return Ruling("deny", "policy_unread")
    call = stage.call
    return ruling_of(reply, call.tool, call.arguments, granted(state, call), stage.paths)


def on_confirmed(state: Gate, stage: Confirming, ruling: Ruling, reply: Reply) -> Step[Gate]:
    """The last look at the policy is behind it."""
    if ruling.verdict == "deny":  # guard: APPROVE-4
        by_user = isinstance(stage.consent, ByUser)
        reason = DENIED_NOW if by_user else deny_reason(ruling)
        return refuse(state, stage, ruling.ground, reason, ruling.rule)
    version = reply.version if isinstance(reply, Policy) else ""
    if isinstance(stage.consent, ByPolicy):
        return let_run(state, stage, ByPolicy(ruling.ground, ruling.rule), version)
    by = stage.consent
    record = record_of(stage, by.via, "", version)
    answering = Answering(stage.request_id, stage.call, by.choice, by.user, record)
    return Step(with_stage(state, answering)).answer(stage.asker, _answer(stage, by))


def let_run(state: Gate, stage: Confirming, by: ByPolicy, version: str = "") -> Step[Gate]:
    """The policy alone lets it run."""
    step = Step(without_stage(state, stage)).answer(stage.asker, _answer(stage, by))
    return audited(step, stage.call, record_of(stage, by.ground, by.rule, version))


def refuse(state: Gate, stage: Consented, by: Ground, reason: str, rule: str = "") -> Step[Gate]:
    """What was allowed does not run after all."""
    step = Step(without_stage(state, stage))
    step = user_superseded(step, stage, "denied").answer(stage.asker, denied(stage.call, reason))
    record = audit_record(
        stage.call, stage.request_id, "denied", by, reason, rule=rule, paths=stage.paths
    )
    return audited(step, stage.call, record)


def record_of(stage: Confirming, by: Ground, rule: str, version: str) -> AuditRecord:
    scope = stage.consent.choice.scope if isinstance(stage.consent, ByUser) else "once"
    return audit_record(
        stage.call,
        stage.request_id,
        "allowed",
        by,
        rule=rule,
        scope=scope,
        paths=stage.paths,
        policy=version,
        checkpoint=stage.checkpoint,
    )


# --- pure helpers ------------------------------------------------------------------------


def _answer(stage: Confirming, by: Consent) -> Reply:
    request_id = stage.request_id if isinstance(by, ByUser) else None
    reply = allowed(stage.call, stage.expects, request_id)
    return type(reply)(
        call_id=reply.call_id,
        digest=reply.digest,
        expects=reply.expects,
        request_id=reply.request_id,
        paths=stage.paths,
        checkpoint=stage.checkpoint,
    )


def _previewed(by: Consent) -> str:
    """The digest of the file that somebody saw; empty for none."""
    if isinstance(by, ByUser) and by.request.preview is not None:
        return by.request.preview.digest
    return ""


def _expected(stage: Keeping, images: tuple[FileImage, ...]) -> str:
    """What the file must still be when the tool runs: what was seen, else what was kept."""
    seen = _previewed(stage.consent)
    if seen or not images or not stage.call.tool.previews:
        return seen
    return images[0].digest or ABSENT
