"""The ApprovalActor's state: requests in their stages, grants for a session, and an undo."""

from typing import Literal

import msgspec
from msgspec.structs import replace

from tenure.messages.approval import Allow, ApprovalRequest, Choice, DecideCall, Ground, Via
from tenure.messages.audit import AuditRecord
from tenure.messages.checkpoints import (
    FileRestore,
    RunUndo,
    UndoOutcome,
    UndoRecord,
)
from tenure.messages.questions import QuestionRequest
from tenure.messages.tokens import RequestId, SessionId
from tenure.runtime.step import AskId, Step

CLOSED_KEPT_MAX = 256
"""Requests that are over and still known by name, so that a late answer is `Superseded`."""

# --- who allows it -----------------------------------------------------------------------


class ByPolicy(msgspec.Struct, frozen=True):
    """The policy alone lets it run."""

    ground: Ground
    rule: str


class ByUser(msgspec.Struct, frozen=True):
    """Somebody was asked, and allowed it."""

    request: ApprovalRequest
    choice: Allow
    user: AskId | None
    via: Via


Consent = ByPolicy | ByUser

# --- stages of a request -------------------------------------------------------------------


class Resolving(msgspec.Struct, frozen=True):
    """The links of its files are being followed."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    taken_ms: int


class Looking(msgspec.Struct, frozen=True):
    """The policy is being asked for."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    taken_ms: int
    paths: tuple[str, ...] = ()


class Showing(msgspec.Struct, frozen=True):
    """What the call would do is being worked out."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    request: ApprovalRequest
    paths: tuple[str, ...] = ()
    expires_s: int = 0


class Open(msgspec.Struct, frozen=True):
    """The user was asked."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    request: ApprovalRequest
    paths: tuple[str, ...] = ()


class Keeping(msgspec.Struct, frozen=True):
    """It is allowed; what its files hold is being made durable."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    paths: tuple[str, ...]
    consent: Consent


class Intending(msgspec.Struct, frozen=True):
    """What its files hold is durable; that it is about to change them is being written."""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    paths: tuple[str, ...]
    consent: Consent
    expects: str


class Confirming(msgspec.Struct, frozen=True):
    """Everything is ready; does the policy still let it be allowed?"""

    request_id: RequestId
    call: DecideCall
    asker: AskId | None
    paths: tuple[str, ...]
    consent: Consent
    expects: str
    checkpoint: str


class Answering(msgspec.Struct, frozen=True):
    """The turn was told the answer; did it take effect?"""

    request_id: RequestId
    call: DecideCall
    choice: Choice
    user: AskId | None
    record: AuditRecord


class Remembering(msgspec.Struct, frozen=True):
    """The answer took effect and is being written into the policy."""

    request_id: RequestId
    call: DecideCall
    user: AskId | None


Consented = Keeping | Intending | Confirming
Undecided = Resolving | Looking | Showing | Open
Stage = Undecided | Consented | Answering | Remembering

# --- an undo -----------------------------------------------------------------------------


class NoUndo(msgspec.Struct, frozen=True):
    """None is under way."""


class Planning(msgspec.Struct, frozen=True):
    """The last change is being looked for."""

    run: RunUndo
    asker: AskId | None


class Announcing(msgspec.Struct, frozen=True):
    """That it is about to be undone is being written."""

    run: RunUndo
    asker: AskId | None
    record: UndoRecord
    steps: tuple[FileRestore, ...]
    undo: str


class Restoring(msgspec.Struct, frozen=True):
    """The files are being taken back."""

    run: RunUndo
    asker: AskId | None
    record: UndoRecord
    steps: tuple[FileRestore, ...]
    undo: str


class Concluding(msgspec.Struct, frozen=True):
    """How it went is being written."""

    run: RunUndo
    asker: AskId | None
    record: UndoRecord
    steps: tuple[FileRestore, ...]
    outcome: UndoOutcome


Undo = NoUndo | Planning | Announcing | Restoring | Concluding

# --- the state ---------------------------------------------------------------------------


class Grant(msgspec.Struct, frozen=True):
    """What the user said of a tool for a whole session."""

    session_id: SessionId
    tool: str
    rule: Literal["allow", "deny"]


class Asked(msgspec.Struct, frozen=True):
    """A question of a running tool that waits for its answer."""

    request: QuestionRequest
    asker: AskId | None


class Gate(msgspec.Struct, frozen=True):
    """The owner's one state: what is under way, and what was granted."""

    stages: tuple[Stage, ...] = ()
    grants: tuple[Grant, ...] = ()
    closed: tuple[RequestId, ...] = ()
    questions: tuple[Asked, ...] = ()
    expired: tuple[RequestId, ...] = ()
    undo: Undo = NoUndo()


# --- what the owner wrote on its asks ------------------------------------------------------


class PolicyForCall(msgspec.Struct, frozen=True):
    request_id: RequestId


class RuleSaved(msgspec.Struct, frozen=True):
    request_id: RequestId


class IntentSaved(msgspec.Struct, frozen=True):
    request_id: RequestId


class AuditSaved(msgspec.Struct, frozen=True):
    record: AuditRecord


class UndoAnnounced(msgspec.Struct, frozen=True):
    undo: str


class UndoConcluded(msgspec.Struct, frozen=True):
    checkpoint: str


# --- pure helpers ------------------------------------------------------------------------


def find(gate: Gate, request_id: RequestId) -> Stage | None:
    """The only place that matches a `RequestId`."""
    return next((stage for stage in gate.stages if stage.request_id == request_id), None)


def with_stage(gate: Gate, stage: Stage) -> Gate:
    """The same request, in its next stage."""
    stages = tuple(stage if each.request_id == stage.request_id else each for each in gate.stages)
    return replace(gate, stages=stages)


def without_stage(gate: Gate, stage: Stage) -> Gate:
    """The request is over; its name is remembered."""
    stages = tuple(each for each in gate.stages if each.request_id != stage.request_id)
    closed = (*gate.closed, stage.request_id)[-CLOSED_KEPT_MAX:]
    return replace(gate, stages=stages, closed=closed)


def with_expired(gate: Gate, stage: Stage) -> Gate:
    """The request ran out of time; an answer to it is told so."""
    expired = (*gate.expired, stage.request_id)[-CLOSED_KEPT_MAX:]
    return replace(without_stage(gate, stage), expired=expired)


def with_grant(gate: Gate, call: DecideCall, rule: Literal["allow", "deny"]) -> Gate:
    """What the user said last of a tool is what counts."""
    session_id, tool = call.token.session_id, call.tool.name
    others = tuple(
        each for each in gate.grants if (each.session_id, each.tool) != (session_id, tool)
    )
    return replace(gate, grants=(*others, Grant(session_id, tool, rule)))


def granted(gate: Gate, call: DecideCall) -> Literal["allow", "deny"] | None:
    """A grant is of one session: another session's never counts."""
    for grant in gate.grants:
        if grant.tool == call.tool.name and grant.session_id == call.token.session_id:
            return grant.rule
    return None


def joined(step: Step[Gate], further: Step[Gate]) -> Step[Gate]:
    """The state of `further`, with what both send."""
    return Step(
        further.state,
        step.replies + further.replies,
        step.events + further.events,
        step.mail + further.mail,
        step.effects + further.effects,
    )
