"""The conformance kit of approvers, and what the approver's door promises in return."""

import asyncio

import pytest

from tenure.messages.approval import Allow, ApprovalRequest, AskUser, Choice, Deny, UserAnswered
from tenure.messages.models import ModelToolCall
from tenure.messages.turn import TurnEnded
from tenure.runtime.doors.approver import Approve, Approver
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing import conformance
from tenure.runtime.testing.conformance import ApproverUnderTest, Check
from tenure.runtime.testing.conformance.of_approver import REQUEST
from tenure.runtime.testing.expect import expect_event
from tenure.runtime.testing.world import simulate


async def drafts_only(request: ApprovalRequest) -> Choice:
    path = request.preview.path if request.preview else ""
    return Allow() if path.startswith("drafts/") else Deny(reason="drafts only")


async def silent(request: ApprovalRequest) -> Choice:
    await asyncio.Event().wait()
    return Deny()


def through_the_door(approve: Approve) -> Approve:
    """The approver as a host asks it."""
    door = Approver(approve)
    context = Context(owner="main/approval", seat="main", progress=lambda outcome: None)

    async def ask(request: ApprovalRequest) -> Choice:
        outcome = await door.ask(AskUser(request=request), context)
        assert isinstance(outcome, UserAnswered)
        return outcome.choice

    return ask


@pytest.mark.parametrize("check", conformance.APPROVER)
def test_an_approver_keeps_the_contract_also_behind_the_door(
    check: Check[ApproverUnderTest],
) -> None:
    check(ApproverUnderTest(approve=drafts_only, unanswered=silent))
    check(
        ApproverUnderTest(
            approve=through_the_door(drafts_only), unanswered=through_the_door(silent)
        )
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_host_asks_an_approver_once_a_call(seed: int) -> None:
    asked: list[str] = []

    async def approve(request: ApprovalRequest) -> Choice:
        asked.append(request.call_id)
        return Allow()

    calls = [
        ModelToolCall(id=f"c{n}", name="write", arguments={"path": f"{n}.md", "content": "x"})
        for n in range(3)
    ]
    with simulate(seed) as world:
        host = world.host(model=Scripted([calls, "done"]), approve=approve)
        world.run(host.seat())
        events = world.run(host.prompt("write"))
        expect_event(events, TurnEnded, stop_reason="end_turn")
    assert sorted(asked) == ["c0", "c1", "c2"]


# --- broken ones -------------------------------------------------------------------------------


async def yes(request: ApprovalRequest) -> Choice:
    return True  # type: ignore[return-value]


async def printing(request: ApprovalRequest) -> Choice:
    """Writes the arguments as UTF-8 without a thought."""
    for value in request.arguments.values():
        str(value).encode()
    return Allow()


async def deaf(request: ApprovalRequest) -> Choice:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return Allow()
    return Deny()


class OneAtATime:
    """Forgets that it may be asked twice."""

    def __init__(self) -> None:
        self._asking = False

    async def __call__(self, request: ApprovalRequest) -> Choice:
        if self._asking:
            raise RuntimeError("already asking")
        self._asking = True
        await asyncio.sleep(0)
        self._asking = False
        return Allow()


@pytest.mark.parametrize(
    ("approve", "unanswered", "name", "reason"),
    [
        (
            yes,
            silent,
            "an answer is allow deny or stop",
            "the approver gave True; give Allow(), Deny() or Stop()",
        ),
        (
            printing,
            silent,
            "a request with odd arguments is answered",
            "raised UnicodeEncodeError: ",
        ),
        (
            OneAtATime(),
            silent,
            "two requests at the same time have an answer each",
            "raised RuntimeError: already asking",
        ),
        (
            drafts_only,
            deaf,
            "a request that is closed is asked no more",
            "a cancelled approver gave an answer all the same",
        ),
        (
            drafts_only,
            drafts_only,
            "a request that is closed is asked no more",
            "the unanswered approver answered",
        ),
    ],
    ids=["truth", "unprintable", "one-at-a-time", "deaf", "answering"],
)
def test_a_broken_approver_is_told_where_and_why(
    approve: Approve,
    unanswered: Approve,
    name: str,
    reason: str,
) -> None:
    report = conformance.approver(lambda: ApproverUnderTest(approve=approve, unanswered=unanswered))
    failed = {failure.name: failure.reason for failure in report.failures}
    assert failed[name].startswith(reason)


def test_the_door_refuses_what_is_no_choice() -> None:
    assert REQUEST.tool == "write"
    report = conformance.approver(
        lambda: ApproverUnderTest(approve=through_the_door(yes), unanswered=silent)
    )
    assert "it must give Allow, Deny or Stop" in report.failures[0].reason
