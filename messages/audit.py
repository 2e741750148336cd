"""The audit: an entry in the transcript for every decision about a tool call."""

from typing import Any, Literal

import msgspec

from tenure.messages.approval import DecideCall, Ground, Scope, digest_of
from tenure.messages.base import Event
from tenure.messages.entries import CustomEntry
from tenure.messages.tokens import CallId, RequestId, TurnId

AUDIT = "tenure/audit"
REASON_CHARS_MAX = 500

Decision = Literal["allowed", "denied", "stopped", "revoked", "superseded", "expired"]


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decided what about which call.  Arguments stand as their digest only."""

    decision: Decision
    by: Ground
    tool: str
    turn: TurnId
    call: CallId
    digest: str
    """SHA-256 of the tool's name and arguments."""
    request: RequestId
    rule: str = ""
    """The rule of the policy that decided."""
    scope: Scope = "once"
    reason: str = ""
    paths: tuple[str, ...] = ()
    """The files of the call, with links followed."""
    policy: str = ""
    """The version of the policy that was looked at."""
    checkpoint: str = ""


class AuditNotSaved(Event, frozen=True, kw_only=True):
    """A decision was made, and could not be written into the transcript."""

    record: AuditRecord
    reason: str


def audit_record(
    call: DecideCall,
    request_id: RequestId,
    decision: Decision,
    by: Ground,
    reason: str = "",
    **more: Any,
) -> AuditRecord:
    return AuditRecord(
        decision=decision,
        by=by,
        tool=call.tool.name,
        turn=call.turn_id,
        call=call.call_id,
        digest=digest_of(call.tool.name, call.arguments),
        request=request_id,
        reason=reason[:REASON_CHARS_MAX],
        **more,
    )


def audit_entry(record: AuditRecord) -> CustomEntry:
    return CustomEntry(custom_type=AUDIT, data=msgspec.to_builtins(record))
