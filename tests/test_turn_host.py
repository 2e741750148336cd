"""Turns on a whole host: what clients see, what the model is shown, and what stands on the disk."""

import asyncio
from itertools import permutations

import pytest
from seat_world import Counted, Gate, Seated, crash, seated, use

from tenure.messages.base import Reply
from tenure.messages.bus import DeadlinePassed, OwnerStopped
from tenure.messages.content import ToolResultMessage, calls_of
from tenure.messages.models import ModelFailure
from tenure.messages.session import CancelTurn, StartTurn
from tenure.messages.turn import (
    ModelAnswered,
    ModelRetrying,
    StopTurn,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnAccepted,
    TurnBusy,
    TurnEnded,
    TurnNotRunning,
    TurnNotStarted,
    TurnQueued,
    TurnStarted,
    TurnStopping,
)
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.errors import Refused

SEEDS = range(6)


def stop(seated: Seated, number: int = 1) -> Reply:
    return seated.ask(StopTurn(turn_id=seated.turn(number)))


def shown_in_pairs(model: Scripted) -> bool:
    """Whether every request that the model got has one result behind each call, in order."""
    for request in model.requests:
        owed: list[str] = []
        for message in request.messages:
            if isinstance(message, ToolResultMessage):
                if not owed or owed.pop(0) != message.tool_call_id:
                    return False
            elif owed:
                return False
            elif message.__class__.__name__ == "AssistantMessage":
                owed = [block.id for block in calls_of(message)]  # type: ignore[arg-type]
        if owed:
            return False
    return True


# --- a whole turn ----------------------------------------------------------------------------


def test_turn_says_everything_in_the_order_in_which_it_became_true() -> None:
    count = Counted(mutating=False)
    with seated(["look ", use("c1")], "done", tools=[count.tool]) as s:
        kinds = [type(event) for event in s.run("hello")]
        order = (TurnStarted, TextDelta, ModelAnswered, ToolCallStarted, ToolCallFinished)
        assert [kinds.index(kind) for kind in order] == sorted(kinds.index(kind) for kind in order)
        assert kinds[-1] is TurnEnded
        assert s.told() == ["user", "assistant c1", "result c1", "assistant"]
        assert count.runs == ["c1"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_parallel_tools_may_end_in_any_order_and_are_recorded_in_that_of_the_calls(
    order: tuple[int, ...],
) -> None:
    gates = [Gate() for _ in range(3)]
    tools = [Counted(f"t{number}", gates[number], mutating=False) for number in range(3)]
    model = Scripted([[use(f"c{number}", f"t{number}") for number in range(3)], "done"])
    with seated(model=model, tools=[each.tool for each in tools]) as s:
        turn = s.prompt()
        s.until(lambda: all(gate.reached for gate in gates))
        for number in order:
            gates[number].open()
            s.until(lambda: True)
        s.world.run(turn)
        assert s.told()[2:5] == ["result c0", "result c1", "result c2"]
        assert shown_in_pairs(model)


def test_leaving_the_loop_over_a_turn_does_not_stop_it() -> None:
    """What a consumer does with its stream is no business of what was accepted."""
    gate = Gate()
    with seated([gate, "the whole answer"]) as s:

        async def leave() -> None:
            async for event in s.seat.prompt("go"):
                if isinstance(event, TurnStarted):
                    return

        s.do(leave())
        gate.open()
        s.settle()
        assert s.ends() == [("end_turn", None)]
        assert s.told() == ["user", "assistant"]


def test_asker_who_gives_up_loses_the_answer_and_not_the_prompt() -> None:
    gate = Gate()
    with seated([gate, "done"]) as s:
        for patience in range(0, 40, 3):
            asking = s.world.tell(s.host, StartTurn(text=f"{patience}", when_busy="queue"))

            async def wait(steps: int = patience) -> None:
                for _ in range(steps):
                    await asyncio.sleep(0)

            s.world.run(wait())
            asking.cancel()
        gate.open()
        s.settle()
        told = s.told()
        assert told.count("user") == told.count("assistant") == len(s.said(TurnStarted))
        assert len(s.said(TurnStarted)) == len(s.said(TurnEnded))


# --- stops -----------------------------------------------------------------------------------


@pytest.mark.witness("TURN-7")
@pytest.mark.parametrize("results", [0, 1, 2])
@pytest.mark.parametrize("sequential", [False, True])
def test_stop_in_a_batch_of_three_leaves_a_conversation_that_the_next_prompt_can_use(
    results: int, sequential: bool
) -> None:
    gates = [Gate() for _ in range(3)]
    for gate in gates[:results]:
        gate.open()
    tools = [
        Counted(f"t{number}", gates[number], mutating=False, sequential=sequential)
        for number in range(3)
    ]
    model = Scripted([[use(f"c{number}", f"t{number}") for number in range(3)], "done"])
    with seated(model=model, tools=[each.tool for each in tools]) as s:
        s.prompt()
        s.until(lambda: len(s.said(ToolCallFinished)) >= results and gates[results].reached > 0)
        assert isinstance(stop(s), TurnStopping)
        s.settle()
        assert s.ends() == [("stopped", "user")]
        assert s.told() == ["user", "assistant c0 c1 c2", "result c0", "result c1", "result c2"]
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)
        assert shown_in_pairs(model)


@pytest.mark.witness("TURN-2", "TURN-9")
@pytest.mark.parametrize("seed", range(4))
def test_prompt_and_stop_back_to_back_leave_a_turn_that_is_stopped_and_no_tool_run(
    seed: int,
) -> None:
    count = Counted(mutating=False)
    rounds = 250
    gate = Gate()
    model = Scripted([[gate, use(f"c{number}")] for number in range(2 * rounds)])
    with seated(model=model, tools=[count.tool], seed=seed) as s:
        for number in range(1, rounds + 1):
            asks = [
                s.world.tell(s.host, StartTurn(text="go")),
                s.world.tell(s.host, StopTurn(turn_id=s.turn(number))),
            ]
            s.world.run(asyncio.wait_for(asyncio.gather(*asks), None))
            s.settle()
            start, stopped = (ask.result() for ask in asks)
            assert isinstance(start, TurnAccepted | TurnNotStarted), start
            assert isinstance(stopped, TurnStopping | DeadlinePassed), stopped
            last = s.said(TurnEnded)[-1]
            assert (last.turn_id, last.stop_reason) == (s.turn(number), "stopped")
        assert count.runs == []
        assert len(s.said(TurnEnded)) == rounds


def test_late_stop_touches_nothing() -> None:
    gate = Gate()
    with seated("one", [gate, "two"]) as s:
        s.run("first")
        second = s.prompt("second")
        s.until(lambda: gate.reached > 0)
        assert stop(s, 1) == TurnNotRunning(turn_id=s.turn(2))
        gate.open()
        s.world.run(second)
        assert s.ends() == [("end_turn", None), ("end_turn", None)]
        assert stop(s, 2) == TurnNotRunning(turn_id=None)


@pytest.mark.witness("TURN-9")
def test_stop_in_one_seat_never_touches_another() -> None:
    gates = {"main": Gate(), "other": Gate()}
    with seated([gates["main"], "one"]) as s:
        other = s.world.run(s.host.seat("other"))
        here = s.prompt("here")
        s.until(lambda: gates["main"].reached > 0)
        there = s.prompt("there", seat="other")
        s.until(lambda: gates["main"].reached > 1)
        # The other seat is told to stop the turn of this one, and any turn at all of its own.
        reply = s.ask(StopTurn(turn_id=s.turn(1)), seat="other")
        assert isinstance(reply, TurnNotRunning)
        assert isinstance(s.ask(CancelTurn(), seat="other"), TurnStopping)
        s.world.run(there)
        gates["main"].open()
        s.world.run(here)
        ends = {event.turn_id: event.stop_reason for event in s.said(TurnEnded)}
        assert ends[s.turn(1)] == "end_turn"
        assert [ends[turn] for turn in ends if turn != s.turn(1)] == ["stopped"]
        assert s.told(other.token.session_id) == ["user", "assistant"]


@pytest.mark.witness("TURN-3")
def test_stop_gives_waiting_prompts_back_and_the_next_prompt_does_not_see_them() -> None:
    gate = Gate()
    model = Scripted([[gate, "one"], "two"])
    with seated(model=model) as s:
        first = s.prompt("first")
        s.until(lambda: gate.reached > 0)
        waiting = []
        for texts in (("second",), ("second", "third")):
            waiting.append(s.prompt(texts[-1], when_busy="queue"))
            s.until_queued(*texts)
        assert stop(s) == TurnStopping(turn_id=s.turn(1), dropped=("second", "third"))
        s.world.run(asyncio.wait([first, *waiting]))
        assert s.ends() == [("stopped", "user")] * 3
        s.run("after")
        texts = [message.content for message in model.requests[-1].messages]
        assert "second" not in str(texts)
        assert "after" in str(texts)


def test_cancel_without_a_turn_says_so_and_one_with_a_turn_stops_it() -> None:
    gate = Gate()
    with seated([gate, "one"]) as s:
        assert s.ask(CancelTurn()) == TurnNotRunning(turn_id=None)
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        assert isinstance(s.ask(CancelTurn()), TurnStopping)
        s.world.run(turn)
        assert s.ends() == [("stopped", "user")]


@pytest.mark.witness("TURN-2")
@pytest.mark.parametrize("seed", range(12))
def test_cancel_stops_the_turn_that_ran_when_it_was_taken_and_no_later_one(seed: int) -> None:
    gate = Gate()
    with seated([gate, "one"], "two", seed=seed) as s:
        start = s.world.tell(s.host, StartTurn(text="go"))
        cancel = s.world.tell(s.host, CancelTurn())
        s.world.run(asyncio.wait([start, cancel]))
        s.world.settle(1)
        if isinstance(cancel.result(), TurnNotRunning):
            # It was taken before the start, which it must not have touched.
            assert isinstance(start.result(), TurnAccepted)
            assert s.ends() == []
            gate.open()
            s.settle()
            assert s.ends() == [("end_turn", None)]
        else:
            assert isinstance(start.result(), TurnAccepted | TurnNotStarted)
            assert s.ends() == [("stopped", "user")]


@pytest.mark.parametrize("seed", range(12))
def test_partial_answer_is_written_before_what_the_user_says_next(seed: int) -> None:
    with seated(["half of ", Gate()], "two", seed=seed) as s:
        first = s.prompt("first")
        s.until(lambda: bool(s.said(TextDelta)))
        asks = [
            s.world.tell(s.host, StopTurn(turn_id=s.turn(1))),
            s.world.tell(s.host, StartTurn(text="next", when_busy="queue")),
        ]
        s.world.run(asyncio.wait([first, *asks]))
        s.settle()
        lines = [line["message"] for line in s.lines() if "message" in line]
        assert [line["role"] for line in lines[:2]] == ["user", "assistant"]
        assert (lines[1]["stopReason"], lines[1]["content"][0]["text"]) == ("aborted", "half of ")
        assert [line["role"] for line in lines[2:]] in ([], ["user", "assistant"])


# --- starts that race --------------------------------------------------------------------------


@pytest.mark.witness("TURN-1")
@pytest.mark.parametrize("seed", SEEDS)
def test_of_starts_that_race_exactly_one_runs(seed: int) -> None:
    gate = Gate()
    with seated([gate, "one"], "two", seed=seed) as s:
        asks = [s.world.tell(s.host, StartTurn(text=f"{number}")) for number in range(3)]
        s.world.run(asyncio.wait(asks))
        replies = [ask.result() for ask in asks]
        assert sorted(type(reply).__name__ for reply in replies) == [
            "TurnAccepted",
            "TurnBusy",
            "TurnBusy",
        ]
        running = next(reply for reply in replies if isinstance(reply, TurnAccepted))
        busy = {reply.turn_id for reply in replies if isinstance(reply, TurnBusy)}
        assert busy == {running.turn_id}
        gate.open()
        s.settle()
        assert s.told() == ["user", "assistant"]


@pytest.mark.witness("TURN-1")
@pytest.mark.parametrize("seed", SEEDS)
def test_starts_that_may_wait_run_one_after_the_other_whoever_sent_them(seed: int) -> None:
    answers = [f"answer {number}" for number in range(9)]
    with seated(*answers, seed=seed) as s:
        asks = [
            s.world.tell(s.host, StartTurn(text=f"{number}", when_busy="queue"))
            for number in range(9)
        ]
        s.world.run(asyncio.wait(asks))
        s.settle()
        accepted = [ask for ask in asks if isinstance(ask.result(), TurnAccepted | TurnQueued)]
        assert len(accepted) == len(s.said(TurnStarted)) == len(s.said(TurnEnded)) == 9
        assert s.told() == ["user", "assistant"] * 9


# --- failures --------------------------------------------------------------------------------


def test_model_that_fails_is_tried_again_after_a_pause_and_the_model_sees_no_trace_of_it() -> None:
    cut = ModelFailure(kind="transport", reason="cut")
    model = Scripted([["half ", cut], [cut], "whole"])
    with seated(model=model) as s:
        before = s.world.loop.time()
        s.run()
        retries = s.said(ModelRetrying)
        assert [(each.attempt, each.kind) for each in retries] == [
            (2, "transport"),
            (3, "transport"),
        ]
        waited = s.world.loop.time() - before
        assert waited >= sum(each.delay_ms for each in retries) / 1000
        assert s.told() == ["user", "assistant"]
        assert [len(request.messages) for request in model.requests] == [1, 1, 1]


def test_stop_during_the_pause_before_a_retry_ends_the_turn_at_once() -> None:
    slow = ModelFailure(kind="rate_limit", reason="later", retry_after_ms=60_000)
    with seated([slow], "never") as s:
        turn = s.prompt()
        s.until(lambda: bool(s.said(ModelRetrying)))
        before = s.world.loop.time()
        assert isinstance(stop(s), TurnStopping)
        s.world.run(turn)
        assert s.world.loop.time() - before < 1.0
        assert s.ends() == [("stopped", "user")]
        s.settle()
        assert s.told() == ["user", "assistant"]


def test_provider_that_asks_for_a_pause_gets_it() -> None:
    slow = ModelFailure(kind="rate_limit", reason="later", retry_after_ms=17_000)
    with seated([slow], "done") as s:
        before = s.world.loop.time()
        s.run()
        assert s.world.loop.time() - before >= 17.0
        assert s.ends() == [("end_turn", None)]


def test_clock_that_goes_back_changes_nothing_about_how_a_turn_ends() -> None:
    gate = Gate()
    with seated([gate, "one"]) as s:
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        s.world.loop.wall_offset_ms = -3_600_000
        gate.open()
        s.world.run(turn)
        assert s.ends() == [("end_turn", None)]


# --- an owner that fails -----------------------------------------------------------------------


@pytest.mark.witness("TURN-7")
@pytest.mark.parametrize("seed", SEEDS)
def test_turn_whose_owner_fails_ends_and_its_calls_are_settled_before_the_next(seed: int) -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    model = Scripted([[use("c1"), use("c2")], "done"])
    with seated(model=model, tools=[count.tool], seed=seed) as s:
        turn = s.prompt()
        s.until(lambda: gate.reached == 2)
        crash(s, "turn")
        asking = s.world.tell(s.host, StopTurn(turn_id=s.turn(1)))
        s.world.run(turn)
        assert s.ends() == [("owner_lost", None)]
        assert isinstance(s.world.run(asking), OwnerStopped)
        s.run("next")
        assert s.told() == [
            "user",
            "assistant c1 c2",
            "result c1",
            "result c2",
            "user",
            "assistant",
        ]
        assert shown_in_pairs(model)


def test_prompts_that_waited_behind_a_turn_whose_owner_fails_end_their_streams() -> None:
    gate = Gate()
    with seated([gate, "one"]) as s:
        first = s.prompt("first")
        s.until(lambda: gate.reached > 0)
        second = s.prompt("second", when_busy="queue")
        s.until_queued("second")
        crash(s, "turn")
        s.world.tell(s.host, StopTurn(turn_id=s.turn(9)))
        for task in (first, second):
            events = s.world.run(task)
            assert events[-1].stop_reason == "owner_lost"


def test_seat_that_is_closed_during_a_turn_stops_it_and_settles_its_calls() -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        session_id = s.seat.token.session_id
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        s.do(s.host.host.close_seat("main"))
        events = s.world.run(turn)
        assert (events[-1].stop_reason, events[-1].cause) == ("stopped", "shutdown")
        assert s.told(session_id) == ["user", "assistant c1", "result c1"]


def test_host_that_is_closed_during_a_turn_stops_it_and_settles_its_calls() -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    with seated([use("c1")], "done", tools=[count.tool]) as s:
        session_id = s.seat.token.session_id
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        s.world.run(s.host.close())
        events = s.world.run(turn)
        assert events[-1].stop_reason == "stopped"
        assert s.told(session_id) == ["user", "assistant c1", "result c1"]


def test_unknown_model_refuses_the_prompt_and_appends_nothing() -> None:
    with seated("one") as s:
        with pytest.raises(Refused, match="acme"):
            s.run("go", model="acme:1")
        assert s.lines() == []
        s.run("go")
        assert s.ends()[-1] == ("end_turn", None)
