"""Subagents: their calls pass the gate of the turn, they end with their call, usage is summed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from host_world import Machine, events_of, last, reading
from steps import A, DrivenTurn, call, tool
from toys import asynchronous, settle

from tenure.messages.approval import (
    CallAllowed,
    CallDenied,
    CallStopped,
    DecideCall,
    NoteDecision,
    digest_of,
)
from tenure.messages.content import Usage
from tenure.messages.limits import Budget
from tenure.messages.models import ModelDone, ModelEvent, ModelRequest, ModelText, ModelToolCall
from tenure.messages.subagents import (
    CallNotRunning,
    CallStopping,
    ChildCalled,
    GateChild,
    StopCall,
)
from tenure.messages.tokens import CallId, RequestId, turn_id
from tenure.messages.turn import ToolCallFinished, ToolCallStarted
from tenure.runtime.doors.tools.subagent import SYSTEM
from tenure.runtime.host import Host

FIRST = turn_id(A, 1)
CHILD = CallId("subagent:c1:1")
WRITE = tool("write")


# --- the turn --------------------------------------------------------------------------------


def calling() -> DrivenTurn:
    """A turn whose subagent wants to make a call."""
    turn = DrivenTurn(tool("subagent", mutating=False)).to_acting(call("c1", "subagent"))
    turn.allows("c1")
    turn.tell(
        ChildCalled(
            turn_id=FIRST,
            call_id=CallId("c1"),
            child_call_id=CHILD,
            tool=WRITE,
            arguments={"path": "a"},
        )
    )
    return turn


def allowed(**arguments: Any) -> CallAllowed:
    digest = digest_of("write", arguments)
    return CallAllowed(call_id=CHILD, digest=digest, expects="d", request_id=RequestId("r"))


def test_call_of_a_subagent_is_decided_under_a_name_of_its_own_and_its_answer_is_applied() -> None:
    turn = calling()
    (asked,) = turn.open_asks(DecideCall)
    assert (asked.call_id, asked.tool) == (CHILD, WRITE)
    turn.answer(DecideCall, allowed(path="a"))
    (gate,) = turn.wanted(GateChild)
    assert (gate.verdict, gate.expects) == ("allow", "d")
    assert [note.fate for note in turn.sent(NoteDecision)] == ["applied"]


def test_permission_for_other_arguments_lets_a_subagent_run_nothing() -> None:
    turn = calling()
    turn.answer(DecideCall, allowed(path="another"))
    assert [gate.verdict for gate in turn.wanted(GateChild)] == ["deny"]


def test_denial_goes_to_the_subagent_and_a_stop_ends_the_turn() -> None:
    turn = calling()
    turn.answer(DecideCall, CallDenied(call_id=CHILD, reason="no", request_id=RequestId("r")))
    assert [(gate.verdict, gate.reason) for gate in turn.wanted(GateChild)] == [("deny", "no")]
    turn = calling()
    turn.answer(DecideCall, CallStopped(call_id=CHILD, request_id=RequestId("r")))
    assert turn.name == "StoppingTools"
    assert f"tool {FIRST} c1" in turn.cancelled


def test_decision_that_comes_when_the_turn_is_being_stopped_is_superseded() -> None:
    turn = calling()
    turn.stop()
    turn.answer(DecideCall, allowed(path="a"))
    assert turn.wanted(GateChild) == []
    assert [note.fate for note in turn.sent(NoteDecision)] == ["superseded"]


def test_one_call_is_stopped_alone_and_no_other() -> None:
    turn = calling()
    other = turn.reply_to(turn.ask(StopCall(turn_id=turn_id(A, 9), call_id=CallId("c1"))))
    unknown = turn.reply_to(turn.ask(StopCall(turn_id=FIRST, call_id=CallId("c9"))))
    assert [type(each) for each in (other, unknown)] == [CallNotRunning, CallNotRunning]
    assert turn.cancelled == []
    stopping = turn.reply_to(turn.ask(StopCall(turn_id=FIRST, call_id=CallId("c1"))))
    assert isinstance(stopping, CallStopping)
    assert (turn.name, turn.cancelled) == ("Acting", [f"tool {FIRST} c1"])


# --- through a seat ----------------------------------------------------------------------------


class Family:
    """A model that gives its task to a subagent, which then makes these calls."""

    def __init__(self, *calls: ModelToolCall, **task: Any) -> None:
        self.calls = list(calls)
        self.task = {"task": "look"} | task
        self.children: list[ModelRequest] = []
        self.stalled = False

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        usage = Usage(total_tokens=10, priced=True)
        if request.system == SYSTEM:
            self.children.append(request)
            if self.stalled:
                await asyncio.Event().wait()
            if self.calls:
                yield self.calls.pop(0)
            else:
                yield ModelText(text="found it")
        elif len(request.messages) == 1:
            yield ModelToolCall(id="c1", name="subagent", arguments=self.task)
        else:
            yield ModelText(text="done")
        yield ModelDone(usage=usage)


def opened(machine: Machine, model: Family, **wishes: Any) -> Host:
    return Host.open("/root", leaves=machine.leaves(), model=model, **wishes)


def result_of(events: list[Any]) -> ToolCallFinished:
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    return finished


@asynchronous
async def test_what_a_subagent_read_and_used_comes_back_with_its_call() -> None:
    machine, model = Machine(), Family(ModelToolCall(id="l", name="ls", arguments={"path": "."}))
    async with opened(machine, model) as host:
        seat = await host.seat()
        events = await events_of(seat)
        assert result_of(events).text == "found it"
        assert last(events).usage.total_tokens == 40
        total = (await seat.usage()).total
        assert (total.requests, total.usage.total_tokens, total.tool_calls) == (4, 40, 2)


@asynchronous
async def test_subagent_without_a_list_of_tools_only_reads_and_has_no_subagents() -> None:
    model = Family()
    async with opened(Machine(), model) as host:
        await events_of(await host.seat())
    names = {spec.name for spec in model.children[0].tools}
    assert {"read", "ls", "search"} <= names
    assert not names & {"write", "edit", "delete", "rename", "subagent", "ask_user"}


@asynchronous
@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"task": " "}, "task is empty"),
        ({"tools": ["fly"]}, "no tool fly"),
        ({"tools": ["write"]}, "no tool write"),
        ({"tools": ["subagent"]}, "no tool subagent"),
        ({"requests_max": 0}, "at least 1"),
    ],
)
async def test_task_that_cannot_be_meant_is_refused(task: dict[str, Any], said: str) -> None:
    model = Family(**task)
    async with opened(Machine(), model) as host:
        finished = result_of(await events_of(await host.seat()))
    assert finished.is_error
    assert said in finished.text
    assert model.children == []


@asynchronous
async def test_subagent_that_comes_to_no_answer_is_bounded() -> None:
    ls = [ModelToolCall(id=f"l{n}", name="ls", arguments={"path": "."}) for n in range(9)]
    model = Family(*ls, requests_max=3)
    async with opened(Machine(), model) as host:
        finished = result_of(await events_of(await host.seat()))
    assert "used up its 3 model calls" in finished.text
    assert len(model.children) == 3


@asynchronous
async def test_what_a_subagent_used_counts_for_the_budget_of_its_turn() -> None:
    model = Family()
    async with opened(Machine(), model) as host:
        events = await events_of(await host.seat(), budget=Budget(requests_max=2))
    assert last(events).cause == "budget"


@asynchronous
@pytest.mark.parametrize("whole", ["call", "turn"])
async def test_stop_ends_a_subagent_alone_or_with_its_turn(whole: str) -> None:
    model = Family()
    model.stalled = True
    async with opened(Machine(), model) as host:
        seat = await host.seat()
        events = host.events()
        running = reading(seat)
        async for published in events:
            if isinstance(published.event, ToolCallStarted):
                turn = published.event.turn_id
                break
        while not model.children:
            await settle()
        if whole == "turn":
            await seat.stop(turn)
            assert last(await running).cause == "user"
        else:
            reply = await seat.ask(StopCall(turn_id=turn, call_id=CallId("c1")))
            assert isinstance(reply, CallStopping)
            said = await running
            assert "interrupted" in result_of(said).text
            assert last(said).stop_reason == "end_turn"
        assert len(model.children) == 1
