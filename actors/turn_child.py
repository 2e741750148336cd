"""Subagents of the turn: their calls pass the turn's own gate, and one can be stopped alone."""

import msgspec

from tenure.actors.turn_end import after
from tenure.actors.turn_state import Acting, Running, State
from tenure.actors.turn_stop import stop
from tenure.actors.turn_tools import applied, find
from tenure.messages.approval import CallAllowed, CallDenied, CallStopped, DecideCall, digest_of
from tenure.messages.base import Reply
from tenure.messages.subagents import (
    CallNotRunning,
    CallStopping,
    ChildCalled,
    GateChild,
    StopCall,
)
from tenure.messages.tokens import CallId, TurnId
from tenure.runtime.step import Step, Taken


class ChildDecided(msgspec.Struct, frozen=True):
    turn_id: TurnId
    child_call_id: CallId
    digest: str
    """Of the call that the subagent wants to make."""


def on_child_called(state: Acting, asked: ChildCalled) -> Step[State]:
    """Only a call that runs may have calls of its own."""
    call = find(state.calls, asked.call_id)
    if call is None or not isinstance(call.status, Running):
        return Step(state)
    decide = DecideCall(
        token=state.run.token,
        turn_id=asked.turn_id,
        call_id=asked.child_call_id,
        tool=asked.tool,
        arguments=asked.arguments,
    )
    re = ChildDecided(
        turn_id=asked.turn_id,
        child_call_id=asked.child_call_id,
        digest=digest_of(asked.tool.name, asked.arguments),
    )
    return Step[State](state).ask("approval", decide, re=re)


def on_child_decided(
    state: Acting, decided: ChildDecided, reply: Reply, taken: Taken
) -> Step[State]:
    """The gate has decided a call of a subagent of the current turn."""
    step = Step[State](state)
    match reply:
        case CallStopped(request_id=request_id):
            return after(applied(step, request_id), stop(state, "approval", None, taken))
        case CallAllowed(digest=digest, expects=expects, request_id=request_id) if (
            digest == decided.digest
        ):
            return applied(step, request_id).do(_gate(decided, expects))
        case CallDenied(reason=reason, request_id=request_id):
            return applied(step, request_id).do(_refused(decided, reason))
        case _:
            return step.do(_refused(decided, "it could not be decided"))


def on_stop_call(state: State, message: StopCall, taken: Taken) -> Step[State]:
    """One call ends; its turn goes on with a result that says so."""
    step = Step[State](state)
    if isinstance(state, Acting):
        call = find(state.calls, message.call_id)
        if call is not None and isinstance(call.status, Running):
            stopping = CallStopping(turn_id=message.turn_id, call_id=message.call_id)
            key = f"tool {message.turn_id} {message.call_id}"
            return step.answer(taken.asker, stopping).cancel(key)
    return step.answer(
        taken.asker, CallNotRunning(turn_id=message.turn_id, call_id=message.call_id)
    )


# --- pure helpers ------------------------------------------------------------------------


def _gate(decided: ChildDecided, expects: str) -> GateChild:
    return GateChild(
        turn_id=decided.turn_id,
        child_call_id=decided.child_call_id,
        verdict="allow",
        expects=expects,
    )


def _refused(decided: ChildDecided, reason: str) -> GateChild:
    return GateChild(
        turn_id=decided.turn_id,
        child_call_id=decided.child_call_id,
        verdict="deny",
        reason=reason,
    )
