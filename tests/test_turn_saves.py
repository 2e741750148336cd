"""Only what is durable counts: the order of writing, and what becomes of a write that failed."""

import pytest
from steps import A, DrivenTurn, answer, call, opened, texts_in, token, tool

from tenure.messages.base import Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped, Told
from tenure.messages.content import AssistantMessage, TextBlock, ToolResultMessage
from tenure.messages.session import (
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    CallsSettled,
    ChangedOutside,
    NoSession,
    SettleCalls,
    Stale,
)
from tenure.messages.tokens import turn_id
from tenure.messages.turn import (
    AttachSession,
    DrainTurn,
    ModelAnswered,
    ToolCallFinished,
    TurnStarted,
)
from tenure.messages.turn_effects import CallModel, PrepareTurn, RunTool

READ = tool("read", mutating=False)
REFUSALS: tuple[Reply, ...] = (
    Stale(current=token(epoch=2)),
    AppendFailed(reason="no space left"),
    AppendUnknown(reason="the sync failed"),
    ChangedOutside(path="a.jsonl"),
    NoSession(),
    DeadlinePassed(begun=True),
    OwnerStopped(begun=True),
    Told(),
)
every_refusal = pytest.mark.parametrize("reply", REFUSALS, ids=lambda reply: type(reply).__name__)


# --- the order of writing --------------------------------------------------------------------


@pytest.mark.witness("TURN-8")
def test_model_is_called_only_when_the_prompt_is_durable() -> None:
    turn = DrivenTurn()
    turn.run()
    turn.prepared()
    assert turn.wanted(CallModel) == []
    turn.saved()
    assert len(turn.wanted(CallModel)) == 1


@pytest.mark.witness("TURN-8")
def test_tools_run_only_when_the_models_message_is_durable() -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.says(answer("", call("c1")))
    assert turn.mail[-1].message.entries[0].message.content == (call("c1"),)
    assert turn.wanted(RunTool) == []
    turn.saved()
    turn.allows("c1")
    assert len(turn.wanted(RunTool)) == 1


@pytest.mark.witness("TURN-8")
def test_next_model_call_waits_for_the_results_to_be_durable() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"))
    turn.allows("c1")
    turn.allows("c2")
    turn.runs("c1")
    turn.runs("c2")
    assert turn.said(ToolCallFinished) == []
    turn.saved()
    assert len(turn.wanted(CallModel)) == 1
    turn.saved()
    assert len(turn.wanted(CallModel)) == 2
    assert [event.call_id for event in turn.said(ToolCallFinished)] == ["c1", "c2"]


def test_answer_is_said_when_it_is_durable() -> None:
    turn = DrivenTurn().to_calling()
    turn.says(answer("hello"))
    assert turn.said(ModelAnswered) == []
    turn.saved()
    assert [event.text for event in turn.said(ModelAnswered)] == ["hello"]
    assert turn.events[-1] == turn.ended[0]


# --- a write that failed ---------------------------------------------------------------------


@pytest.mark.witness("TURN-8")
@every_refusal
def test_prompt_that_is_not_durable_starts_no_turn(reply: Reply) -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.prepared()
    turn.refused(reply)
    assert turn.reply_to(asker) is not None
    assert (turn.wanted(CallModel), turn.said(TurnStarted)) == ([], [])
    assert [each.stop_reason for each in turn.ended] == ["error"]
    assert turn.name == "Idle"


@pytest.mark.witness("TURN-8")
@every_refusal
def test_answer_that_is_not_durable_ends_the_turn_and_runs_no_tool(reply: Reply) -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.says(answer("", call("c1")))
    turn.refused(reply)
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]
    assert turn.ended[0].error
    assert turn.wanted(RunTool) == []
    assert turn.name == "Recovering"


@every_refusal
def test_results_that_are_not_durable_stop_the_other_tools_and_are_owed_again(
    reply: Reply,
) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"), call("c2"), call("c3"))
    for name in ("c1", "c2", "c3"):
        turn.allows(name)
    turn.runs("c1", "first")
    turn.refused(reply)
    assert turn.name == "StoppingTools"
    assert len(turn.cancelled) == 2
    turn.runs("c2", "second")
    turn.tell(turn.wanted(RunTool)[2].failed("cancelled"))
    (last,) = turn.open_asks(AppendEntries)
    results = [entry.message for entry in last.entries]  # type: ignore[union-attr]
    assert [each.tool_call_id for each in results] == ["c1", "c2", "c3"]  # type: ignore[union-attr]
    turn.saved()
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]
    assert turn.name == "Idle"


def test_last_results_that_are_not_durable_either_are_settled_before_anything_starts() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    turn.queue("second")
    turn.runs("c1")
    turn.refused(AppendFailed(reason="no space left"))
    turn.refused(AppendFailed(reason="no space left"))
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]
    assert len(turn.open_asks(SettleCalls)) == 1
    assert len(turn.wanted(PrepareTurn)) == 1
    turn.answer(SettleCalls, CallsSettled(token=token(), settled=1, last_turn=1))
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 2)


@every_refusal
def test_stopped_turn_whose_last_words_are_not_durable_ends_all_the_same(reply: Reply) -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    turn.stop()
    turn.tell(turn.wanted(RunTool)[0].failed("cancelled"))
    turn.refused(reply)
    (ended,) = turn.ended
    assert (ended.stop_reason, ended.cause) == ("stopped", "user")
    assert ended.error
    assert turn.name == "Recovering"


@every_refusal
def test_stop_during_a_write_that_fails_ends_the_turn_once(reply: Reply) -> None:
    for reach in ("prompt", "answer", "results"):
        turn = DrivenTurn(READ)
        if reach == "prompt":
            turn.run()
            turn.prepared()
        elif reach == "answer":
            turn.to_calling()
            turn.says(answer("", call("c1")))
        else:
            turn.to_acting(call("c1"))
            turn.allows("c1")
            turn.runs("c1")
        turn.stop()
        turn.refused(reply)
        if turn.open_asks(AppendEntries):
            turn.saved()
        assert [each.stop_reason for each in turn.ended] == ["stopped"], reach


@every_refusal
def test_drain_is_answered_also_when_nothing_more_can_be_written(reply: Reply) -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.says(answer("", call("c1")))
    turn.queue("second")
    drain = turn.ask(DrainTurn())
    turn.refused(reply)
    assert texts_in(turn.reply_to(drain)) == ("second",)
    assert turn.open_asks(SettleCalls) == []


def test_calls_that_cannot_be_settled_hold_nothing_up() -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.queue("second")
    turn.says(answer("", call("c1")))
    turn.refused(AppendFailed(reason="no space left"))
    turn.answer(SettleCalls, AppendFailed(reason="no space left"))
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 2)


def test_late_answer_to_an_append_of_an_ended_turn_changes_nothing() -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.says(answer("", call("c1")))
    _, re = turn.waiting_for(AppendEntries)
    turn.refused(Stale(current=token(epoch=2)))
    turn.answer(SettleCalls, CallsSettled(token=token(epoch=2), settled=0, last_turn=1))
    turn.run("next")
    before = turn.state
    turn.answered(re, Stale(current=token(epoch=2)))
    assert turn.state == before


# --- the session was opened again under the turn ---------------------------------------------


def again() -> AttachSession:
    return AttachSession(token=opened().token, last_turn=1)


def test_turn_whose_session_was_opened_again_cancels_its_model_and_ends_as_lost() -> None:
    turn = DrivenTurn().to_calling()
    turn.tell(again())
    assert turn.cancelled == [turn.wanted(CallModel)[0].key]
    turn.fails("cancelled", partial=(TextBlock(text="half"),))
    turn.refused(Stale(current=token(epoch=2)))
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]


def test_turn_whose_session_was_opened_again_cancels_its_tools_and_awaits_them() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.allows("c1")
    turn.tell(again())
    assert turn.cancelled == [turn.wanted(RunTool)[0].key]
    assert turn.ended == []
    turn.runs("c1")
    turn.refused(Stale(current=token(epoch=2)))
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]


def test_retry_of_a_lost_turn_is_not_made() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("transport")
    turn.tell(again())
    turn.refused(Stale(current=token(epoch=2)))
    assert [each.stop_reason for each in turn.ended] == ["session_lost"]
    assert len(turn.wanted(CallModel)) == 1


@pytest.mark.parametrize("reach", ["preparing", "saving"])
def test_start_that_meets_a_new_opening_is_told_by_its_own_append(reach: str) -> None:
    turn = DrivenTurn()
    asker = turn.run()
    if reach == "saving":
        turn.prepared()
    turn.tell(again())
    if reach == "preparing":
        turn.prepared()
    turn.refused(Stale(current=token(epoch=2)))
    assert turn.reply_to(asker) == Stale(current=token(epoch=2))
    assert turn.name == "Idle"


def test_stopping_turn_keeps_its_cause_when_the_session_is_opened_again() -> None:
    turn = DrivenTurn().to_calling()
    turn.stop()
    turn.tell(again())
    turn.fails("cancelled")
    turn.refused(Stale(current=token(epoch=2)))
    assert [(each.stop_reason, each.cause) for each in turn.ended] == [("stopped", "user")]


def test_results_say_why_a_call_of_a_lost_turn_was_not_run() -> None:
    turn = DrivenTurn(READ).to_acting(call("c1"))
    turn.tell(again())
    result = turn.written[-1]
    assert isinstance(result, ToolResultMessage)
    assert result.content == (TextBlock(text="Not run: the turn could not go on."),)
    assert isinstance(turn.written[-2], AssistantMessage)
