"""Every decision is written into the transcript of its session."""

from tenure.actors.approval_state import AuditSaved, Gate
from tenure.messages.approval import DecideCall
from tenure.messages.audit import AuditNotSaved, AuditRecord, audit_entry
from tenure.messages.base import Refusal, Reply
from tenure.messages.session import Appended, AppendEntries
from tenure.runtime.step import Step


def audited(step: Step[Gate], call: DecideCall, record: AuditRecord) -> Step[Gate]:
    """Write it down.  Nobody waits for it: the result of the call comes behind it in the file."""
    append = AppendEntries(token=call.token, entries=(audit_entry(record),), turn_id=call.turn_id)
    return step.ask("session", append, re=AuditSaved(record=record))


def on_audit_saved(state: Gate, record: AuditRecord, reply: Reply) -> Step[Gate]:
    """One that could not be written is told to whoever listens."""
    if isinstance(reply, Appended):
        return Step(state)
    reason = reply.remedy if isinstance(reply, Refusal) else type(reply).__name__
    return Step(state).emit(AuditNotSaved(record=record, reason=reason))
