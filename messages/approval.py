"""The ApprovalActor's vocabulary: may this call run, and who said so."""

import hashlib
from typing import Any, Literal

import msgspec

from tenure.messages.base import Command, Effect, Event, Outcome, Query, Refusal, Reply
from tenure.messages.models import ToolSpec
from tenure.messages.tokens import CallId, RequestId, SessionId, SessionToken, TurnId

Scope = Literal["once", "session", "always"]
"""How long an answer holds: for this call, for this session, or written into the policy."""

Ground = Literal[
    "mode",
    "rule",
    "pattern",
    "grant",
    "default",
    "working_dirs",
    "person",
    "approver",
    "remote",
    "expiry",
    "turn",
    "policy_unread",
    "checkpoint",
    "links",
]
"""What a decision rests on: the policy (first six), who answered, or why nobody could."""

Via = Literal["person", "approver", "remote"]
"""Whose answer it is: a user's in this process, the host's own callable's, another process's."""

# --- choices: allow, deny and stop are types, never inferred from text ----------------------


class Allow(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    scope: Scope = "once"


class Deny(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The call gets an error result with the reason; the turn goes on."""

    reason: str = ""
    scope: Scope = "once"


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """The turn ends."""


Choice = Allow | Deny | Stop


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a call would do to a file."""

    path: str
    diff: str
    """A unified diff; empty where there is none to show."""
    digest: str
    """Of the file as it is now: the tool refuses another one.  `absent` for a new file."""
    summary: str


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user is asked.  Bound to one call of one turn of one session."""

    request_id: RequestId
    token: SessionToken
    turn_id: TurnId
    call_id: CallId
    tool: str
    label: str
    arguments: dict[str, Any]
    digest: str
    """SHA-256 of the tool's name and arguments."""
    policy_version: str
    preview: Preview | None
    asked_ms: int
    expires_ms: int = 0
    """Wall-clock milliseconds at which it is denied where nobody answered; 0 for never."""


# --- commands --------------------------------------------------------------------------


class DecideCall(Command, frozen=True, kw_only=True):
    """The TurnActor asks: may this call run?  Answered when it is decided."""

    token: SessionToken
    turn_id: TurnId
    call_id: CallId
    tool: ToolSpec
    arguments: dict[str, Any]
    ask_deadline_s = None


class NoteDecision(Command, frozen=True, kw_only=True):
    """The TurnActor tells what became of an answer."""

    request_id: RequestId
    fate: Literal["applied", "superseded"]


class AnswerApproval(Command, frozen=True, kw_only=True):
    """A user's answer to a request.  Answered `Applied`, `Superseded` or `Expired`."""

    request_id: RequestId
    choice: Choice
    via: Via = "person"
    """The host itself sets it where the answer came from another process."""


class RevokeApprovals(Command, frozen=True, kw_only=True):
    """A turn ended: nothing of it may be approved any more."""

    turn_id: TurnId


class RevokeSeatApprovals(Command, frozen=True, kw_only=True):
    """A TurnActor was started again: no turn of the seat lives, and none may be approved."""


class EndSessionGrants(Command, frozen=True, kw_only=True):
    """A session left this seat: its requests and its session grants end."""

    session_id: SessionId


class GetApprovals(Query, frozen=True, kw_only=True):
    """Answered `ApprovalsOpen`."""


# --- replies ---------------------------------------------------------------------------


class CallAllowed(Reply, frozen=True, kw_only=True):
    call_id: CallId
    digest: str
    """The arguments that were allowed."""
    expects: str
    """The digest of the previewed file; empty for none."""
    request_id: RequestId | None
    """None where the policy decided alone."""
    paths: tuple[str, ...] = ()
    """The files that were allowed, with links followed: the tool may touch no others."""
    checkpoint: str = ""
    """Names what the files held before; empty where there is nothing to undo."""


class CallDenied(Reply, frozen=True, kw_only=True):
    call_id: CallId
    reason: str
    request_id: RequestId | None


class CallStopped(Reply, frozen=True, kw_only=True):
    call_id: CallId
    request_id: RequestId


class Applied(Reply, frozen=True, kw_only=True):
    """The answer took effect on its call."""

    request_id: RequestId
    remembered: bool = False
    """True once an `always` is written into the policy."""


class ApprovalsOpen(Reply, frozen=True, kw_only=True):
    requests: tuple[ApprovalRequest, ...]


# --- refusals --------------------------------------------------------------------------


class Superseded(Refusal, frozen=True, kw_only=True):
    """The request is closed: answered before, revoked, or of a turn that is over."""

    request_id: RequestId

    @property
    def remedy(self) -> str:
        return "this request is closed; nothing was run because of this answer"


class Expired(Refusal, frozen=True, kw_only=True):
    """The request ran out of time, or nobody knows it: not of this seat, or long over."""

    request_id: RequestId

    @property
    def remedy(self) -> str:
        return "this request is not open in this seat; nothing was run because of this answer"


# --- events ----------------------------------------------------------------------------


ApprovalOutcome = Literal[
    "allowed", "denied", "stopped", "revoked", "superseded", "expired", "owner_lost"
]


class ApprovalRequested(Event, frozen=True, kw_only=True):
    request: ApprovalRequest


class ApprovalResolved(Event, frozen=True, kw_only=True):
    request_id: RequestId
    turn_id: TurnId
    outcome: ApprovalOutcome


# --- effects and their outcomes ----------------------------------------------------------


class PreviewCall(Effect, frozen=True, kw_only=True):
    """Work out what a call would do to its file."""

    request_id: RequestId
    tool: str
    arguments: dict[str, Any]
    concurrent = True

    @property
    def key(self) -> str:
        return f"preview {self.request_id}"

    def failed(self, reason: str) -> Outcome:
        return CallNotPreviewed(request_id=self.request_id, reason=reason)


class CallPreviewed(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    preview: Preview


class CallNotPreviewed(Outcome, frozen=True, kw_only=True):
    """There is nothing to show; the raw arguments are."""

    request_id: RequestId
    reason: str


class AskUser(Effect, frozen=True, kw_only=True):
    """Put a request before the host's approver.  Cancelled when the request closes."""

    request: ApprovalRequest
    concurrent = True

    @property
    def key(self) -> str:
        return f"ask {self.request.request_id}"

    def failed(self, reason: str) -> Outcome:
        return UserNotAsked(request_id=self.request.request_id, reason=reason)


class AwaitExpiry(Effect, frozen=True, kw_only=True):
    """Let the time of a request run out.  Cancelled when the request closes."""

    request_id: RequestId
    delay_ms: int
    concurrent = True

    @property
    def key(self) -> str:
        return f"expiry {self.request_id}"

    def failed(self, reason: str) -> Outcome:
        return ExpiryNotReached(request_id=self.request_id, reason=reason)


class ExpiryReached(Outcome, frozen=True, kw_only=True):
    request_id: RequestId


class ExpiryNotReached(Outcome, frozen=True, kw_only=True):
    """It was cancelled, or the clock failed: the request stays as it is."""

    request_id: RequestId
    reason: str


class UserAnswered(Outcome, frozen=True, kw_only=True):
    request_id: RequestId
    choice: Choice


class UserNotAsked(Outcome, frozen=True, kw_only=True):
    """No approver, or it failed: the request stays open for an `AnswerApproval`."""

    request_id: RequestId
    reason: str


def digest_of(tool: str, arguments: dict[str, Any]) -> str:
    """SHA-256 of a call, the same whatever the order of the arguments' names."""
    call = repr(_ordered({"tool": tool, "arguments": arguments}))
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((str(name), _ordered(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return [_ordered(each) for each in value]
    return value
