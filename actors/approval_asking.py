"""Asking the user: what the call would do is shown, and time may run out.

Looking -> Showing -> Open        asked
Open -> gone                      nobody answered in time
"""

from msgspec.structs import replace

from tenure.actors.approval_audit import audited
from tenure.actors.approval_replies import denied, no_more, previewing, request_of, resolved
from tenure.actors.approval_state import (
    Gate,
    Looking,
    Open,
    Showing,
    find,
    with_expired,
    with_stage,
)
from tenure.messages.approval import ApprovalRequested, AskUser, AwaitExpiry, Preview
from tenure.messages.audit import audit_record
from tenure.messages.settings import Policy
from tenure.messages.tokens import RequestId
from tenure.runtime.step import Step, Taken

UNANSWERED = "nobody answered in time"


def ask(state: Gate, stage: Looking, policy: Policy, taken: Taken) -> Step[Gate]:
    """Ask the user, who sees first what the call would do."""
    call = stage.call
    request = request_of(stage.request_id, call, policy.version, stage.taken_ms)
    showing = Showing(stage.request_id, call, stage.asker, request, stage.paths, policy.expires_s)
    shown = with_stage(state, showing)
    if not call.tool.previews:
        return on_previewed(shown, stage.request_id, None, taken)
    return Step(shown).do(previewing(showing))


def on_previewed(
    state: Gate, request_id: RequestId, preview: Preview | None, taken: Taken
) -> Step[Gate]:
    """Everything that the user needs to see is there: ask."""
    stage = find(state, request_id)
    if not isinstance(stage, Showing):
        return Step(state)
    delay_ms = stage.expires_s * 1_000
    expires_ms = taken.now_ms + delay_ms if delay_ms else 0
    request = replace(stage.request, preview=preview, expires_ms=expires_ms)
    asked = Open(request_id, stage.call, stage.asker, request, stage.paths)
    step = Step(with_stage(state, asked)).emit(ApprovalRequested(request=request))
    step = step.do(AskUser(request=request))
    if not delay_ms:
        return step
    return step.do(AwaitExpiry(request_id=request_id, delay_ms=delay_ms))


def on_expired(state: Gate, request_id: RequestId) -> Step[Gate]:
    """An unanswered request is denied, and a later answer is told that it came too late."""
    stage = find(state, request_id)
    if not isinstance(stage, Open):  # guard: APPROVE-4
        return Step(state)
    step = Step(with_expired(state, stage)).emit(resolved(stage, "expired"))
    step = step.answer(stage.asker, denied(stage.call, UNANSWERED))
    record = audit_record(
        stage.call, request_id, "expired", "expiry", UNANSWERED, paths=stage.paths
    )
    return no_more(audited(step, stage.call, record), stage)
