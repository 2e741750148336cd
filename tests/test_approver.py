"""The approver door: what the embedder's callable gives is a choice, or nothing is decided."""

import asyncio
from typing import Any

import pytest

from tenure.messages.approval import (
    Allow,
    ApprovalRequest,
    AskUser,
    Deny,
    Stop,
    UserAnswered,
    UserNotAsked,
)
from tenure.messages.tokens import CallId, RequestId, SessionId, SessionToken, TurnId
from tenure.runtime.doors.approver import Approver
from tenure.runtime.doors.context import Context

CONTEXT = Context(owner="main/approval", seat="main", progress=lambda outcome: None)

REQUEST = ApprovalRequest(
    request_id=RequestId("r1"),
    token=SessionToken(session_id=SessionId("s"), epoch=1),
    turn_id=TurnId("s/1"),
    call_id=CallId("c1"),
    tool="write",
    label="write",
    arguments={"path": "a.md"},
    digest="d",
    policy_version="v",
    preview=None,
    asked_ms=0,
)


def asked(choice: Any) -> UserAnswered | UserNotAsked:
    """What the door says where the callable gives this."""

    async def approve(request: ApprovalRequest) -> Any:
        assert request is REQUEST
        return choice

    return asyncio.run(Approver(approve).ask(AskUser(request=REQUEST), CONTEXT))


@pytest.mark.parametrize("choice", [Allow(scope="session"), Deny(reason="stop"), Stop()])
def test_choice_is_handed_on_as_it_is(choice: Allow | Deny | Stop) -> None:
    assert asked(choice) == UserAnswered(request_id=RequestId("r1"), choice=choice)


@pytest.mark.witness("APPROVE-2")
@pytest.mark.parametrize("word", ["allow", "yes", "deny", "stop", "", True, None, Allow])
def test_what_only_sounds_like_a_choice_is_none(word: object) -> None:
    with pytest.raises(TypeError, match="it must give Allow, Deny or Stop"):
        asked(word)


def test_request_stays_open_where_nobody_approves() -> None:
    said = asyncio.run(Approver(None).ask(AskUser(request=REQUEST), CONTEXT))
    assert said == UserNotAsked(request_id=RequestId("r1"), reason="this host has no approver")
