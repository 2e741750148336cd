"""How turns are stopped: by name, from every state, in one way, with every call settled."""

from collections.abc import Callable

import pytest
from steps import A, B, DrivenTurn, answer, call, texts_in, token, tool

from tenure.messages.approval import RevokeApprovals
from tenure.messages.content import AssistantMessage, TextBlock, ToolResultMessage, UserMessage
from tenure.messages.session import AppendEntries
from tenure.messages.tokens import turn_id
from tenure.messages.turn import (
    AbandonDrain,
    AttachSession,
    DrainTurn,
    GetTurn,
    StopActiveTurn,
    StopCause,
    StopTurn,
    TurnAccepted,
    TurnDrained,
    TurnNotRunning,
    TurnNotStarted,
    TurnStarted,
    TurnStopping,
    TurnView,
)
from tenure.messages.turn_effects import CallModel, PrepareTurn, RunTool, WaitOver

READ = tool("read", mutating=False)
CAUSES: tuple[StopCause, ...] = ("user", "approval", "budget", "swap", "shutdown", "loop_guard")


def preparing(turn: DrivenTurn) -> None:
    turn.run()


def saving_prompt(turn: DrivenTurn) -> None:
    turn.run()
    turn.prepared()


def calling(turn: DrivenTurn) -> None:
    turn.to_calling()


def retrying(turn: DrivenTurn) -> None:
    turn.to_calling()
    turn.fails("transport")


def saving_answer(turn: DrivenTurn) -> None:
    turn.to_calling()
    turn.says(answer("", call("c1"), call("c2")))


def deciding(turn: DrivenTurn) -> None:
    turn.to_acting(call("c1"), call("c2"))


def running(turn: DrivenTurn) -> None:
    deciding(turn)
    turn.allows("c1")
    turn.allows("c2")


def saving_results(turn: DrivenTurn) -> None:
    running(turn)
    turn.runs("c1")


def wind_down(turn: DrivenTurn) -> None:
    """Everything that a stopped turn waits for comes to its end."""
    for _ in range(10):
        if turn.name in ("Idle", "Drained"):
            return
        if turn.open_asks(AppendEntries):
            turn.saved()
        elif turn.name == "StoppingModel":
            turn.fails("cancelled", partial=(TextBlock(text="half"),))
        elif turn.name == "StoppingTools":
            for effect in turn.wanted(RunTool):
                turn.tell(effect.failed("cancelled"))
    raise AssertionError(f"it never ended: {turn.name}")


POINTS: tuple[Callable[[DrivenTurn], None], ...] = (
    preparing,
    saving_prompt,
    calling,
    retrying,
    saving_answer,
    deciding,
    running,
    saving_results,
)
at_each_point = pytest.mark.parametrize("reach", POINTS, ids=lambda point: point.__name__)


def pairs_in_order(written: list[object]) -> bool:
    """Whether every call is followed by exactly its results, in the order of the calls."""
    owed: list[str] = []
    for message in written:
        if isinstance(message, ToolResultMessage):
            if not owed or owed.pop(0) != message.tool_call_id:
                return False
        elif owed:
            return False
        elif isinstance(message, AssistantMessage):
            owed = [block.id for block in message.content if hasattr(block, "arguments")]
    return not owed


# --- one turn --------------------------------------------------------------------------------


@pytest.mark.witness("TURN-7", "TURN-9")
@at_each_point
def test_stop_at_each_point_ends_the_turn_with_every_call_settled_in_order(
    reach: Callable[[DrivenTurn], None],
) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    assert turn.stop() == TurnStopping(turn_id=turn_id(A, 1))
    wind_down(turn)
    assert [(each.stop_reason, each.cause) for each in turn.ended] == [("stopped", "user")]
    assert pairs_in_order(turn.written)
    # The next prompt runs, over a conversation that is whole.
    turn.run("next")
    turn.prepared(2)
    turn.saved()
    assert turn.name == "Calling"
    assert pairs_in_order(turn.written)


@pytest.mark.witness("TURN-2")
@at_each_point
@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_stops_a_turn_and_is_said_at_its_end(
    reach: Callable[[DrivenTurn], None], cause: StopCause
) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    turn.stop(cause=cause)
    wind_down(turn)
    assert [each.cause for each in turn.ended] == [cause]


@at_each_point
def test_second_stop_is_answered_and_ends_nothing_twice(
    reach: Callable[[DrivenTurn], None],
) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    turn.stop()
    again = turn.stop(cause="budget")
    if turn.name == "Idle":
        assert again == TurnNotRunning(turn_id=None)
    else:
        assert again == TurnStopping(turn_id=turn_id(A, 1))
    wind_down(turn)
    assert [each.cause for each in turn.ended] == ["user"]


def test_stop_before_anything_is_written_refuses_the_start_and_writes_nothing() -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.stop()
    assert turn.reply_to(asker) == TurnNotStarted(turn_id=turn_id(A, 1), cause="user")
    assert turn.cancelled == [turn.wanted(PrepareTurn)[0].key]
    assert turn.sent(AppendEntries) == []
    turn.prepared()
    assert turn.name == "Idle"


def test_stop_while_the_prompt_is_written_accepts_it_and_calls_no_model() -> None:
    turn = DrivenTurn()
    asker = turn.run()
    turn.prepared()
    turn.stop()
    turn.saved()
    assert isinstance(turn.reply_to(asker), TurnAccepted)
    turn.saved()  # that it was stopped: its prompt would look like a crash's
    assert len(turn.said(TurnStarted)) == len(turn.ended) == 1
    assert turn.wanted(CallModel) == []


def test_stop_keeps_what_the_model_had_said() -> None:
    turn = DrivenTurn().to_calling()
    turn.stop()
    assert turn.cancelled == [turn.wanted(CallModel)[0].key]
    turn.fails("cancelled", partial=(TextBlock(text="half of"), call("c1")))
    turn.saved()
    (last,) = [message for message in turn.written if isinstance(message, AssistantMessage)]
    assert (last.content, last.stop_reason) == ((TextBlock(text="half of"),), "aborted")


def test_answer_that_was_whole_before_the_cancel_is_kept_and_its_calls_are_not_run() -> None:
    turn = DrivenTurn(READ).to_calling()
    turn.stop()
    turn.says(answer("so", call("c1"), call("c2")))
    turn.saved()
    assert turn.wanted(RunTool) == []
    results = [each for each in turn.written if isinstance(each, ToolResultMessage)]
    assert [(each.tool_call_id, each.is_error) for each in results] == [("c1", True), ("c2", True)]


def test_stop_waits_for_the_last_word_of_each_tool_and_keeps_real_results() -> None:
    turn = DrivenTurn(READ)
    running(turn)
    turn.stop()
    assert turn.cancelled == [effect.key for effect in turn.wanted(RunTool)]
    turn.tell(turn.wanted(RunTool)[0].failed("cancelled"))
    assert turn.ended == []
    turn.runs("c2", "came in time")
    turn.saved()
    results = [each for each in turn.written if isinstance(each, ToolResultMessage)]
    assert "interrupted" in results[0].content[0].text  # type: ignore[union-attr]
    assert results[1].content == (TextBlock(text="came in time"),)
    assert not results[1].is_error


@pytest.mark.witness("APPROVE-6")
@pytest.mark.parametrize("reach", [deciding, running, saving_results])
def test_stop_revokes_what_the_turn_had_asked(reach: Callable[[DrivenTurn], None]) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    turn.stop()
    assert turn.sent(RevokeApprovals) == [RevokeApprovals(turn_id=turn_id(A, 1))]


def test_late_wait_of_a_retry_starts_no_model_call_after_a_stop() -> None:
    turn = DrivenTurn().to_calling()
    turn.fails("overloaded")
    turn.stop()
    assert turn.cancelled == [f"wait {turn_id(A, 1)}"]
    turn.tell(WaitOver(turn_id=turn_id(A, 1), call=1))
    turn.saved()
    turn.tell(WaitOver(turn_id=turn_id(A, 1), call=1))
    assert len(turn.wanted(CallModel)) == 1
    assert turn.name == "Idle"


# --- names ---------------------------------------------------------------------------------


@pytest.mark.witness("TURN-2")
def test_stop_of_a_turn_that_is_over_touches_nothing() -> None:
    turn = DrivenTurn(last_turn=4)
    turn.run()
    turn.prepared(5)
    turn.saved()
    assert turn.stop(4) == TurnNotRunning(turn_id=turn_id(A, 5))
    assert turn.name == "Calling"
    assert turn.cancelled == []


@pytest.mark.witness("TURN-2")
@pytest.mark.parametrize("session", [B, "elsewhere"])
def test_stop_of_another_sessions_turn_touches_nothing(session: str) -> None:
    turn = DrivenTurn().to_calling()
    other = StopTurn(turn_id=turn_id(session, 1))  # type: ignore[arg-type]
    assert turn.reply_to(turn.ask(other)) == TurnNotRunning(turn_id=turn_id(A, 1))
    assert turn.name == "Calling"


def test_stop_of_a_prompt_that_waits_takes_it_out_and_lets_the_turn_run() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.queue("third")
    assert turn.stop(2) == TurnStopping(turn_id=turn_id(A, 2), dropped=("second",))
    assert [each.turn_id for each in turn.ended] == [turn_id(A, 2)]
    assert turn.stop(2) == TurnNotRunning(turn_id=turn_id(A, 1))
    turn.says(answer())
    turn.saved()
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 3)


def test_cancel_without_an_id_stops_what_runs_and_says_when_nothing_does() -> None:
    turn = DrivenTurn()
    assert turn.reply_to(turn.ask(StopActiveTurn(cause="user"))) == TurnNotRunning(turn_id=None)
    turn.to_calling()
    stopping = turn.reply_to(turn.ask(StopActiveTurn(cause="user")))
    assert stopping == TurnStopping(turn_id=turn_id(A, 1))


@pytest.mark.witness("TURN-3")
@at_each_point
def test_stop_gives_the_queue_back_and_nothing_of_it_starts(
    reach: Callable[[DrivenTurn], None],
) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    turn.queue("second")
    turn.queue("third")
    stopping = TurnStopping(turn_id=turn_id(A, 1), dropped=("second", "third"))
    assert turn.stop() == stopping
    wind_down(turn)
    assert sorted(each.turn_id for each in turn.ended) == [turn_id(A, n) for n in (1, 2, 3)]
    assert len(turn.wanted(PrepareTurn)) == 1
    assert turn.name == "Idle"
    assert turn.stop(3) == TurnNotRunning(turn_id=None)


def test_prompt_that_is_queued_behind_a_stop_runs_when_the_turn_has_ended() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("dropped")
    turn.stop()
    turn.queue("after the stop")
    turn.fails("cancelled")
    turn.saved()
    assert [each.turn_id for each in turn.wanted(PrepareTurn)] == [turn_id(A, 1), turn_id(A, 3)]
    # A late word of the stopped turn cannot end the one that runs now.
    turn.fails("cancelled")
    assert turn.name == "Preparing"


# --- drains ----------------------------------------------------------------------------------


@pytest.mark.witness("TURN-9")
@at_each_point
def test_drain_is_answered_only_when_nothing_runs_and_keeps_the_queue(
    reach: Callable[[DrivenTurn], None],
) -> None:
    turn = DrivenTurn(READ)
    reach(turn)
    turn.queue("second")
    drain = turn.ask(DrainTurn())
    if reach is not preparing:
        assert turn.reply_to(drain) is None
    wind_down(turn)
    assert texts_in(turn.reply_to(drain)) == ("second",)
    assert [(each.turn_id, each.cause) for each in turn.ended] == [(turn_id(A, 1), "swap")]
    assert pairs_in_order(turn.written)
    assert turn.name == "Drained"


def test_drained_seat_takes_its_queue_up_again_when_the_swap_did_not_happen() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.ask(DrainTurn())
    wind_down(turn)
    turn.tell(AbandonDrain())
    assert turn.wanted(PrepareTurn)[-1].turn_id == turn_id(A, 2)


def test_drained_queue_ends_when_the_seat_has_another_session() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    drain = turn.ask(DrainTurn())
    wind_down(turn)
    held = turn.reply_to(drain)
    assert isinstance(held, TurnDrained)
    returned = tuple(each.item_id for each in held.queued)
    turn.tell(AttachSession(token=token(B), last_turn=9, returned=returned))
    assert [(each.turn_id, each.cause) for each in turn.ended][1:] == [(turn_id(A, 2), "swap")]
    assert turn.name == "Idle"
    assert turn.stop(2) == TurnNotRunning(turn_id=None)
    assert isinstance(turn.reply_to(turn.ask(StopTurn(turn_id=turn_id(B, 10)))), TurnStopping)


def test_stop_while_a_drain_waits_empties_the_queue_that_the_drain_would_give_back() -> None:
    turn = DrivenTurn(READ)
    running(turn)
    turn.queue("second")
    drain = turn.ask(DrainTurn())
    assert turn.stop() == TurnStopping(turn_id=turn_id(A, 1), dropped=("second",))
    wind_down(turn)
    assert texts_in(turn.reply_to(drain)) == ()


def test_stop_at_the_very_end_of_a_drained_turn_leaves_the_drain_answered_once() -> None:
    turn = DrivenTurn(READ)
    running(turn)
    drain = turn.ask(DrainTurn())
    for effect in turn.wanted(RunTool):
        turn.tell(effect.failed("cancelled"))
    assert turn.name == "Ending"
    turn.queue("second")
    assert turn.stop() == TurnStopping(turn_id=turn_id(A, 1), dropped=("second",))
    turn.saved()
    assert texts_in(turn.reply_to(drain)) == ()
    assert turn.name == "Drained"


def test_two_drains_of_one_turn_are_both_answered() -> None:
    turn = DrivenTurn().to_calling()
    first, second = turn.ask(DrainTurn()), turn.ask(DrainTurn(cause="shutdown"))
    wind_down(turn)
    third = turn.ask(DrainTurn())
    assert {turn.reply_to(each) == TurnDrained() for each in (first, second, third)} == {True}


def test_drain_for_the_end_of_the_seat_is_not_undone_by_a_swap() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    turn.ask(DrainTurn(cause="shutdown"))
    turn.ask(DrainTurn())
    wind_down(turn)
    turn.tell(AbandonDrain())
    turn.tell(AttachSession(token=token(B), last_turn=0))
    assert turn.name == "Drained"
    late = turn.run("late")
    assert turn.reply_to(late) == TurnNotStarted(turn_id=turn_id(A, 3), cause="shutdown")


def test_view_names_the_running_turn_and_what_waits() -> None:
    turn = DrivenTurn().to_calling()
    turn.queue("second")
    view = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(view, TurnView)
    assert (view.state, view.turn_id, view.queued) == ("Calling", turn_id(A, 1), ("second",))
    turn.ask(DrainTurn())
    wind_down(turn)
    drained = turn.reply_to(turn.ask(GetTurn()))
    assert isinstance(drained, TurnView)
    assert (drained.turn_id, drained.queued) == (None, ("second",))


def test_user_message_is_the_first_thing_that_a_turn_writes() -> None:
    turn = DrivenTurn().to_calling()
    turn.says(answer())
    turn.saved()
    assert [type(each) for each in turn.written] == [UserMessage, AssistantMessage]
