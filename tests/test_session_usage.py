"""What a session has used: by model, over compactions, branches and reloads."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from host_world import Machine, events_of
from toys import asynchronous

from tenure.messages.content import Cost, Usage
from tenure.messages.limits import Budget, BudgetSpent
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelToolCall,
)
from tenure.messages.turn import TurnEnded
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host


class Priced:
    """A model whose every answer has 10 tokens and costs one cent, until it is told otherwise."""

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []
        self.usage = Usage(input=8, output=2, total_tokens=10, cost=Cost(total=0.01), priced=True)
        self.tools = 0
        self.model = "cent"

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        if self.tools:
            self.tools -= 1
            yield ModelToolCall(id=f"c{self.tools}", name="ls", arguments={"path": "."})
        yield ModelText(text="so it is")
        stop = "toolUse" if self.tools else "stop"
        yield ModelDone(stop_reason=stop, usage=self.usage, model=self.model)  # type: ignore[arg-type]


def opened(machine: Machine, model: Priced, **settings: object) -> Host:
    return Host.open("/root", leaves=machine.leaves(), model=model, settings=settings)


@asynchronous
async def test_usage_counts_what_was_compacted_and_left_behind_and_survives_a_reload() -> None:
    machine, model = Machine(), Priced()
    async with opened(machine, model) as host:
        seat = await host.seat()
        for number in range(4):
            await events_of(seat, f"question {number} " + "word " * 50)
        first = (await host.sessions.read((await seat.session()).path)).entries[0].id
        await seat.compact()
        assert (await seat.usage()).total.requests == 4
        await seat.rewind(first)
        model.model = "other"
        await events_of(seat, "and now?")
        spending = await seat.usage()
        assert (spending.total.requests, spending.abandoned.requests) == (5, 4)
        assert spending.total.usage.total_tokens == 50
        assert spending.total.usage.cost.total == pytest.approx(0.05)
        by_model = {each.model: each.spent.requests for each in spending.models}
        assert by_model == {"cent": 4, "other": 1}
        await seat.park()
        assert await seat.usage() == spending
    async with opened(machine, model) as host:
        seat = await host.seat()
        assert await seat.usage() == spending
        snapshot = await host.sessions.read((await seat.session()).path)
        assert snapshot.spending == spending


@asynchronous
async def test_seat_without_a_file_has_used_nothing() -> None:
    machine, model = Machine(), Priced()
    async with opened(machine, model) as host:
        seat = await host.seat()
        assert (await seat.usage()).total.requests == 0
        await seat.park()
        assert (await seat.usage()).total.requests == 0


@asynchronous
async def test_unknown_price_makes_the_sum_unknown_and_a_call_that_was_cut_off_does_not() -> None:
    machine, model = Machine(), Priced()
    async with opened(machine, model) as host:
        seat = await host.seat()
        await events_of(seat)
        model.usage = Usage()
        await events_of(seat)
        total = (await seat.usage()).total
        assert (total.requests, total.unmeasured, total.usage.priced) == (2, 1, True)
        model.usage = Usage(total_tokens=5)
        await events_of(seat)
        total = (await seat.usage()).total
        assert (total.usage.priced, total.usage.total_tokens) == (False, 15)


@pytest.mark.witness("TURN-12")
@asynchronous
async def test_budget_of_a_session_holds_over_a_reload_and_starts_anew_with_another_session() -> (
    None
):
    machine, model = Machine(), Priced()
    bounds = {"session": {"usd_max": 0.02}}
    async with opened(machine, model, budget=bounds) as host:
        seat = await host.seat()
        await events_of(seat)
        await events_of(seat)
    async with opened(machine, model, budget=bounds) as host:
        seat = await host.seat()
        before = (await seat.session()).seq
        with pytest.raises(Refused) as refused:
            await events_of(seat)
        reply = refused.value.reply
        assert isinstance(reply, BudgetSpent)
        assert (reply.scope, reply.kind) == ("session", "money")
        assert ((await seat.session()).seq, len(model.asked)) == (before, 2)
        await seat.new()
        ended = (await events_of(seat))[-1]
        assert isinstance(ended, TurnEnded)
        assert ended.stop_reason == "end_turn"


@asynchronous
async def test_prompt_brings_its_own_budget_and_thinking_for_itself_alone() -> None:
    machine, model = Machine(), Priced()
    async with opened(machine, model, thinking="low") as host:
        seat = await host.seat()
        model.tools = 5
        events = await events_of(seat, budget=Budget(requests_max=2), thinking="high")
        ended = events[-1]
        assert isinstance(ended, TurnEnded)
        assert (ended.cause, ended.stop_reason) == ("budget", "stopped")
        assert "2 of 2 requests" in ended.error
        model.tools = 0
        assert (await events_of(seat))[-1].stop_reason == "end_turn"  # type: ignore[attr-defined]
        assert [request.thinking for request in model.asked] == ["high", "high", "low"]


@asynchronous
async def test_time_of_a_turn_is_kept_by_the_clock_of_the_host() -> None:
    machine = Machine()

    async def slow(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="one")
        asyncio.get_running_loop().call_soon(machine.clock.advance, 100)
        await machine.clock.sleep(1_000)
        raise ModelCallError(ModelFailure(kind="bug", reason="it was not stopped"))

    async with Host.open("/root", leaves=machine.leaves(), model=slow) as host:
        seat = await host.seat()
        ended = (await events_of(seat, budget=Budget(wall_time_s_max=5)))[-1]
        assert isinstance(ended, TurnEnded)
        assert (ended.stop_reason, ended.cause) == ("stopped", "budget")
        assert "seconds" in ended.error
