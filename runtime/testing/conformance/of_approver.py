"""Conformance of the approver port: `async (ApprovalRequest) -> Allow | Deny | Stop`."""

import asyncio
from dataclasses import dataclass

import msgspec

from tenure.messages.approval import Allow, ApprovalRequest, Choice, Deny, Preview, Stop
from tenure.messages.tokens import CallId, RequestId, SessionId, SessionToken, turn_id
from tenure.runtime.doors.approver import Approve
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same

ANSWER_S_MAX = 30.0
CANCEL_S_MAX = 2.0
PASSES = 50
"""Turns of the loop that an approver gets before its request is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproverUnderTest:
    """An approver, in the two ways in which its user can behave."""

    approve: Approve
    """Its user answers."""
    unanswered: Approve
    """The same with a user who does not answer."""


APPROVER: Kit[ApproverUnderTest] = Kit("approver")
_check = APPROVER.check

_SESSION = SessionId("0b54cc8e-6f8b-4a5e-9d51-5e5a1f9f6a01")

REQUEST = ApprovalRequest(
    request_id=RequestId("00000000000000a1"),
    token=SessionToken(session_id=_SESSION, epoch=1),
    turn_id=turn_id(_SESSION, 1),
    call_id=CallId("c1"),
    tool="write",
    label="Write",
    arguments={"path": "a.md", "content": "one\n"},
    digest="0" * 64,
    policy_version="0" * 16,
    preview=Preview(path="a.md", diff="+one\n", digest="", summary="a new file of 1 line"),
    asked_ms=1_700_000_000_000,
)
"""What the checks ask about."""


async def _choice(approve: Approve, request: ApprovalRequest) -> Choice:
    task = asyncio.ensure_future(approve(request))
    await asyncio.wait({task}, timeout=ANSWER_S_MAX)
    if not task.done():
        task.cancel()
        fail(f"no answer within {ANSWER_S_MAX:g} s")
    choice = task.result()
    holds(
        isinstance(choice, Allow | Deny | Stop),
        f"the approver gave {choice!r}; give Allow(), Deny() or Stop()",
    )
    return choice


@_check
async def an_answer_is_allow_deny_or_stop(at: ApproverUnderTest) -> None:
    """They are types: nothing is read out of a text or a truth value."""
    await _choice(at.approve, REQUEST)


@_check
async def a_request_without_a_preview_is_answered(at: ApproverUnderTest) -> None:
    """Most tools have none."""
    await _choice(at.approve, msgspec.structs.replace(REQUEST, preview=None))


@_check
async def a_request_with_odd_arguments_is_answered(at: ApproverUnderTest) -> None:
    """What the model wrote is shown, whatever it wrote: control characters, half a pair."""
    odd = {"path": "\x1b[2Jhalf a pair: \ud83d", "nested": {"list": [None, 1.5, True]}, "": ""}
    await _choice(at.approve, msgspec.structs.replace(REQUEST, arguments=odd, preview=None))


@_check
async def two_requests_at_the_same_time_have_an_answer_each(at: ApproverUnderTest) -> None:
    """Parallel tools, and several seats, ask side by side."""
    other = msgspec.structs.replace(
        REQUEST, request_id=RequestId("00000000000000a2"), call_id=CallId("c2")
    )
    choices = await asyncio.gather(_choice(at.approve, REQUEST), _choice(at.approve, other))
    same("answers", len(choices), 2)


@_check
async def the_same_call_in_a_new_request_is_answered_anew(at: ApproverUnderTest) -> None:
    """A request is used once; what is remembered is the host's business, by its scopes."""
    again = msgspec.structs.replace(REQUEST, request_id=RequestId("00000000000000a3"))
    await _choice(at.approve, REQUEST)
    await _choice(at.approve, again)


@_check
async def a_request_that_is_closed_is_asked_no_more(at: ApproverUnderTest) -> None:
    """The turn was stopped, or somebody else answered: the approver's task is cancelled."""
    task = asyncio.ensure_future(at.unanswered(REQUEST))
    for _ in range(PASSES):
        await asyncio.sleep(0)
    if task.done():
        fail("the unanswered approver answered: it must be one whose user does not")
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S_MAX)
    holds(task.done(), f"it still asks {CANCEL_S_MAX:g} s after its request was closed")
    holds(
        task.cancelled(),
        "a cancelled approver gave an answer all the same; let the CancelledError pass",
    )
