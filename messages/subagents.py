"""A subagent is a tool call that runs a conversation of its own; its calls pass the same gate.

Nothing of it is an owner: it lives and dies with the call that runs it.
"""

from typing import Any, Literal

from tenure.messages.base import Command, Effect, Outcome, Refusal, Reply
from tenure.messages.models import ToolSpec
from tenure.messages.tokens import CallId, TurnId


class StopCall(Command, frozen=True, kw_only=True):
    """Stop one tool call that runs; its turn goes on.  Answered `CallStopping`."""

    turn_id: TurnId
    call_id: CallId


class CallStopping(Reply, frozen=True, kw_only=True):
    """The call was cancelled; its result says so."""

    turn_id: TurnId
    call_id: CallId


class CallNotRunning(Refusal, frozen=True, kw_only=True):
    turn_id: TurnId
    call_id: CallId

    @property
    def remedy(self) -> str:
        return f"call {self.call_id} of turn {self.turn_id} does not run; nothing was stopped"


class ChildCalled(Outcome, frozen=True, kw_only=True):
    """Progress of a `RunTool`: its subagent wants to make a tool call."""

    turn_id: TurnId
    call_id: CallId
    """The call that runs the subagent."""
    child_call_id: CallId
    """Unique within the turn: `subagent:CALL:ID`."""
    tool: ToolSpec
    arguments: dict[str, Any]


class GateChild(Effect, frozen=True, kw_only=True):
    """Tell a subagent whether its call may run."""

    turn_id: TurnId
    child_call_id: CallId
    verdict: Literal["allow", "deny"]
    reason: str = ""
    expects: str = ""
    """The digest of the file that the user saw in the preview; empty for none."""
    concurrent = True

    @property
    def key(self) -> str:
        return f"gate {self.turn_id} {self.child_call_id}"

    def failed(self, reason: str) -> Outcome:
        return ChildNotGated(turn_id=self.turn_id, child_call_id=self.child_call_id)


class ChildGated(Outcome, frozen=True, kw_only=True):
    turn_id: TurnId
    child_call_id: CallId


class ChildNotGated(Outcome, frozen=True, kw_only=True):
    """The subagent waits no more."""

    turn_id: TurnId
    child_call_id: CallId
