"""Tool calls of a turn: decided before they run, side by side or in turn, recorded in order."""

from itertools import permutations

import pytest
from steps import A, DrivenTurn, answer, call, tool

from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    CallStopped,
    DecideCall,
    NoteDecision,
    RevokeApprovals,
    digest_of,
)
from tenure.messages.base import Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped
from tenure.messages.content import TextBlock, ToolCallBlock, ToolResultMessage
from tenure.messages.tokens import CallId, RequestId, turn_id
from tenure.messages.turn import ToolCallFinished, ToolCallStarted
from tenure.messages.turn_effects import CallModel, RunTool, ToolCallDone

READ = tool("read", mutating=False)
WRITE = tool("write", sequential=True)
R1 = RequestId("r1")


def results(turn: DrivenTurn) -> list[tuple[str, str]]:
    """Every result that was written: whose, and its text."""
    return [
        (each.tool_call_id, "".join(block.text for block in each.content))  # type: ignore[union-attr]
        for each in turn.written
        if isinstance(each, ToolResultMessage)
    ]


def started(turn: DrivenTurn) -> list[str]:
    return [effect.call_id for effect in turn.wanted(RunTool)]


def allowed(block: ToolCallBlock, request_id: RequestId | None = R1, expects: str = "") -> Reply:
    return CallAllowed(
        call_id=CallId(block.id),
        digest=digest_of(block.name, block.arguments),
        expects=expects,
        request_id=request_id,
    )


def denied(call_id: str, reason: str = "no", request_id: RequestId | None = R1) -> Reply:
    return CallDenied(call_id=CallId(call_id), reason=reason, request_id=request_id)


# --- decided first ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(("c1", "c2", "c3"))))
def test_batch_runs_once_all_its_calls_are_decided_in_whatever_order(
    order: tuple[str, ...],
) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"), call("c3"))
    assert [each.call_id for each in turn.sent(DecideCall)] == ["c1", "c2", "c3"]
    for name in order:
        assert started(turn) == []
        turn.allows(name)
    assert started(turn) == ["c1", "c2", "c3"]
    assert [event.call_id for event in turn.said(ToolCallStarted)] == ["c1", "c2", "c3"]


def test_call_that_needs_no_answer_waits_for_the_gated_one_of_its_batch() -> None:
    turn = DrivenTurn(READ).to_acting(call("gated"), call("free"))
    turn.allows("free")
    assert started(turn) == []
    turn.decides("gated", denied("gated"))
    assert started(turn) == ["free"]


@pytest.mark.parametrize("order", list(permutations(("c1", "c2", "c3"))))
def test_results_are_recorded_in_the_order_of_the_calls(order: tuple[str, ...]) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"), call("c3"))
    for name in ("c1", "c2", "c3"):
        turn.allows(name)
    for name in order:
        turn.runs(name, f"of {name}")
    while turn.name == "Acting":
        turn.saved()
    assert results(turn) == [("c1", "of c1"), ("c2", "of c2"), ("c3", "of c3")]
    assert [event.call_id for event in turn.said(ToolCallFinished)] == ["c1", "c2", "c3"]
    assert len(turn.wanted(CallModel)) == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_batch_with_a_sequential_tool_runs_one_call_after_the_other(place: int) -> None:
    blocks = [call(f"c{number}") for number in range(3)]
    blocks[place] = call(f"c{place}", "write")
    turn = DrivenTurn(READ, WRITE).to_acting(*blocks)
    for number in range(3):
        assert [each.call_id for each in turn.open_asks(DecideCall)] == [f"c{number}"]
        turn.allows(f"c{number}")
        assert started(turn) == [f"c{each}" for each in range(number + 1)]
        turn.runs(f"c{number}")
        # The next one is not even asked about before this result is durable.
        assert turn.open_asks(DecideCall) == []
        turn.saved()
    assert len(turn.wanted(CallModel)) == 2


# --- calls that are not run ------------------------------------------------------------------


def test_answer_that_was_cut_off_runs_none_of_its_calls_and_says_so_to_each() -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.says(answer("", call("c1"), call("c2"), stop_reason="length"))
    turn.saved()
    assert (turn.sent(DecideCall), started(turn)) == ([], [])
    turn.saved()
    assert [name for name, text in results(turn) if "cut off" in text] == ["c1", "c2"]
    assert len(turn.wanted(CallModel)) == 2


def test_unknown_tool_gets_a_result_that_names_the_tools_there_are() -> None:
    turn = DrivenTurn(READ, WRITE).to_acting(call("c1", "frobnicate"))
    assert turn.sent(DecideCall) == []
    assert results(turn) == [("c1", "There is no tool 'frobnicate'. The tools are: read, write.")]


def test_unknown_tool_in_a_batch_leaves_the_other_calls_alone() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1", "frobnicate"), call("c2"))
    turn.allows("c2")
    assert started(turn) == ["c2"]


@pytest.mark.witness("APPROVE-4")
def test_permission_for_other_arguments_runs_nothing() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1", path="a"))
    turn.decides("c1", allowed(call("c1", path="b")))
    assert started(turn) == []
    assert results(turn) == [("c1", "Not run: another call was approved.")]
    assert turn.sent(NoteDecision) == [NoteDecision(request_id=R1, fate="superseded")]


@pytest.mark.witness("APPROVE-3")
@pytest.mark.parametrize("reason", ["no", "stop", "Stop", "the user stopped the turn", ""])
def test_denial_is_an_error_result_and_the_turn_goes_on(reason: str) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.decides("c1", denied("c1", reason))
    turn.allows("c2")
    turn.runs("c2")
    while turn.name == "Acting":
        turn.saved()
    assert results(turn) == [("c1", f"Denied: {reason}"), ("c2", "ok")]
    assert turn.sent(NoteDecision) == [NoteDecision(request_id=R1, fate="applied")]
    assert turn.name == "Calling"
    assert turn.ended == []


@pytest.mark.witness("APPROVE-2")
def test_stop_for_one_call_ends_the_turn_and_settles_the_others() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.allows("c2")
    turn.decides("c1", CallStopped(call_id=CallId("c1"), request_id=R1))
    assert started(turn) == []
    turn.saved()
    assert [(each.stop_reason, each.cause) for each in turn.ended] == [("stopped", "approval")]
    assert [name for name, _ in results(turn)] == ["c1", "c2"]


def test_stop_by_approval_is_said_to_have_taken_effect_before_the_rest_is_revoked() -> None:
    """Else whoever said stop would be told that nothing came of it."""
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.decides("c1", CallStopped(call_id=CallId("c1"), request_id=R1))
    told = [mail.message for mail in turn.mail if type(mail).__name__ == "Tell"]
    assert told == [
        NoteDecision(request_id=R1, fate="applied"),
        RevokeApprovals(turn_id=turn_id(A, 1)),
    ]


@pytest.mark.parametrize(
    "reply", [OwnerStopped(begun=True), DeadlinePassed(begun=False)], ids=["stopped", "deadline"]
)
def test_call_that_cannot_be_decided_is_not_run_and_the_turn_goes_on(reply: Reply) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.decides("c1", reply)
    assert started(turn) == []
    assert results(turn) == [("c1", "Not run: it could not be decided.")]


# --- decisions that come late ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["allow", "deny", "stop"])
def test_decision_for_a_turn_that_was_stopped_is_superseded_and_runs_nothing(kind: str) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.stop()
    late: dict[str, Reply] = {
        "allow": allowed(call("c1")),
        "deny": denied("c1"),
        "stop": CallStopped(call_id=CallId("c1"), request_id=R1),
    }
    turn.decides("c1", late[kind])
    assert started(turn) == []
    assert turn.sent(NoteDecision) == [NoteDecision(request_id=R1, fate="superseded")]


def test_decision_for_an_earlier_turn_never_runs_the_same_call_id_of_the_next() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    old = turn.waiting_for(DecideCall)[1]
    turn.stop()
    turn.saved()
    turn.run("next")
    turn.prepared(2)
    turn.saved()
    turn.says(answer("", call("c1")), number=2)
    turn.saved()
    turn.answered(old, allowed(call("c1")))
    assert started(turn) == []
    assert turn.sent(NoteDecision) == [NoteDecision(request_id=R1, fate="superseded")]


def test_applied_is_said_for_every_answer_that_took_effect_and_for_none_of_the_policy() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.decides("c1", allowed(call("c1"), RequestId("r7"), expects="digest of the file"))
    turn.decides("c2", allowed(call("c2"), None))
    assert turn.sent(NoteDecision) == [NoteDecision(request_id=RequestId("r7"), fate="applied")]
    assert [effect.expects for effect in turn.wanted(RunTool)] == ["digest of the file", ""]


# --- how tools end -------------------------------------------------------------------------


def test_tool_that_failed_has_unknown_side_effects_and_says_so() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    turn.tell(turn.wanted(RunTool)[0].failed("the handler broke"))
    ((_, text),) = results(turn)
    assert "the handler broke" in text
    assert "side effects are not known" in text


def test_tool_that_ends_twice_is_recorded_once() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.allows("c1")
    turn.allows("c2")
    turn.runs("c1", "first")
    turn.runs("c1", "second")
    turn.runs("c2")
    while turn.name == "Acting":
        turn.saved()
    assert results(turn) == [("c1", "first"), ("c2", "ok")]


def test_details_of_a_result_are_kept_for_programs() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    done = ToolCallDone(
        turn_id=turn_id(A, 1),
        call_id=CallId("c1"),
        content=(TextBlock(text="x"),),
        details={"lines": 3},
        is_error=True,
    )
    turn.tell(done)
    result = turn.written[-1]
    assert isinstance(result, ToolResultMessage)
    assert (result.details, result.is_error) == ({"lines": 3}, True)


def test_event_of_a_long_result_shows_its_beginning_and_the_transcript_the_whole() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    turn.runs("c1", "x" * 1_000)
    turn.saved()
    (event,) = turn.said(ToolCallFinished)
    assert event.text == "x" * 400 + "…"
    assert results(turn) == [("c1", "x" * 1_000)]
