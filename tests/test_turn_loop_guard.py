"""The loop guard: equal tool batches with equal results end a turn, and nothing else does."""

import pytest
from steps import DrivenTurn, answer, call, tool

from tenure.actors.turn_loop_guard import EQUAL_BATCHES_MAX
from tenure.messages.content import ToolCallBlock
from tenure.messages.turn import TurnEnded
from tenure.messages.turn_effects import CallModel

READ = tool("read", mutating=False)
WRITE = tool("write", sequential=True)


def batch(turn: DrivenTurn, *blocks: ToolCallBlock, text: str = "same", number: int = 1) -> None:
    """The model makes these calls, each runs with this result, all of it durable."""
    turn.says(answer("", *blocks), number)
    turn.saved()
    for block in blocks:
        turn.allows(block.id)
        turn.runs(block.id, text, number)
        turn.saved()


def looped(turn: DrivenTurn, times: int) -> None:
    for number in range(times):
        batch(turn, call(f"c{number}", path="a", limit=1))


@pytest.mark.witness("TURN-11")
def test_fourth_equal_batch_with_equal_results_stops_the_turn_and_says_what_came_again() -> None:
    turn = DrivenTurn(READ).to_calling()
    looped(turn, EQUAL_BATCHES_MAX - 1)
    assert turn.ended == []
    batch(turn, call("last", limit=1, path="a"))
    turn.saved()  # that it was stopped
    (ended,) = turn.ended
    assert (ended.stop_reason, ended.cause) == ("stopped", "loop_guard")
    assert "read 4 times" in ended.error
    assert (turn.name, len(turn.wanted(CallModel))) == ("Idle", EQUAL_BATCHES_MAX)


@pytest.mark.parametrize(
    "other",
    [
        {"block": call("x", path="b", limit=1)},
        {"block": call("x", path="a", limit=1), "text": "another result"},
        {"block": call("x", "write", path="a", limit=1)},
    ],
    ids=["arguments", "result", "tool"],
)
def test_whatever_differs_begins_the_count_anew(other: dict[str, object]) -> None:
    turn = DrivenTurn(READ, WRITE).to_calling()
    looped(turn, EQUAL_BATCHES_MAX - 1)
    block = other.pop("block")
    assert isinstance(block, ToolCallBlock)
    batch(turn, block, **other)  # type: ignore[arg-type]
    looped(turn, EQUAL_BATCHES_MAX - 1)
    assert turn.ended == []
    batch(turn, call("last", path="a", limit=1))
    turn.saved()  # that it was stopped
    assert [ended.cause for ended in turn.ended] == ["loop_guard"]


def test_calls_in_another_order_are_another_batch() -> None:
    turn = DrivenTurn(READ).to_calling()
    for number in range(EQUAL_BATCHES_MAX + 1):
        names = ("a", "b") if number % 2 else ("b", "a")
        turn.says(answer("", *(call(f"{number}{name}", path=name) for name in names)))
        turn.saved()
        for name in names:
            turn.allows(f"{number}{name}")
        for name in names:
            turn.runs(f"{number}{name}", "same")
            turn.saved()
    assert turn.ended == []


def test_count_is_of_one_prompt() -> None:
    turn = DrivenTurn(READ).to_calling()
    looped(turn, EQUAL_BATCHES_MAX - 1)
    turn.says(answer("so it is"))
    turn.saved()
    turn.run("again")
    turn.prepared(2)
    turn.saved()
    batch(turn, call("c", path="a", limit=1), number=2)
    assert [ended.stop_reason for ended in turn.ended] == ["end_turn"]


def test_loop_of_a_batch_that_runs_one_by_one_is_seen_too() -> None:
    turn = DrivenTurn(WRITE).to_calling()
    for number in range(EQUAL_BATCHES_MAX):
        turn.says(answer("", call(f"a{number}", "write"), call(f"b{number}", "write")))
        turn.saved()
        for name in ("a", "b"):
            turn.allows(f"{name}{number}")
            turn.runs(f"{name}{number}")
            turn.saved()
    turn.saved()  # that it was stopped
    assert [ended.cause for ended in turn.ended] == ["loop_guard"]


def test_stop_by_the_guard_ends_what_waits_as_every_stop_does() -> None:
    turn = DrivenTurn(READ).to_calling()
    looped(turn, EQUAL_BATCHES_MAX - 1)
    turn.queue("later")
    batch(turn, call("last", path="a", limit=1))
    turn.saved()  # that it was stopped
    causes = [(ended.turn_id.rpartition("/")[2], ended.cause) for ended in turn.said(TurnEnded)]
    assert causes == [("2", "loop_guard"), ("1", "loop_guard")]
