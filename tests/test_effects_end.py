"""What becomes of the effects of an owner that ends."""

import asyncio

import pytest
from toys import (
    Bench,
    DoBeside,
    DoWork,
    Kept,
    Machine,
    Work,
    WorkBeside,
    WorkDone,
    WorkFailed,
    WorkMoved,
    asynchronous,
    of_kind,
    settle,
)

from tenure.messages.base import Outcome
from tenure.messages.bus import OwnerLost
from tenure.runtime.doors.context import Context
from tenure.runtime.effects import EffectRunner
from tenure.runtime.testing.clock import ManualClock


class Wanting:
    """Stands for the incarnation that wanted an effect; keeps what it is told."""

    def __init__(self) -> None:
        self.moved: list[Outcome] = []
        self.ended: list[Outcome] = []

    def progress(self, outcome: Outcome) -> None:
        self.moved.append(outcome)

    def end(self, outcome: Outcome) -> None:
        self.ended.append(outcome)


async def never(seconds: float) -> None:
    await asyncio.Event().wait()


@pytest.mark.witness("BUS-3")
@asynchronous
async def test_end_cancels_what_runs_beside_and_lets_a_door_finish() -> None:
    bench, wanting = Bench(), Wanting()
    for text in ("door", "beside"):
        bench.hold(text)
    runner = EffectRunner(bench.handlers, "a", "main")
    for effect in (Work(text="door"), Work(text="waits"), WorkBeside(text="beside")):
        runner.start(effect, wanting)
    await settle()
    ending = asyncio.ensure_future(runner.ended(5, never))
    await settle()
    assert not ending.done()
    assert wanting.ended == [
        WorkFailed(text="waits", reason="its owner ended before it began"),
        WorkFailed(text="beside", reason="cancelled"),
    ]
    bench.gates["door"].set()
    assert await ending
    assert wanting.ended[2:] == [WorkDone(text="door")]
    assert "waits" not in bench.begun


@asynchronous
async def test_end_gives_up_after_its_time_and_says_so() -> None:
    bench, wanting, clock = Bench(), Wanting(), ManualClock()
    bench.hold("door")
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(Work(text="door"), wanting)
    await settle()
    ending = asyncio.ensure_future(runner.ended(5, clock.sleep))
    await settle()
    clock.advance(4.9)
    await settle()
    assert not ending.done()
    clock.advance(0.2)
    assert not await ending
    bench.gates["door"].set()
    await runner.settled()
    assert wanting.ended == [WorkDone(text="door")]


@asynchronous
async def test_end_of_a_runner_with_nothing_under_way_is_immediate() -> None:
    runner = EffectRunner(Bench().handlers, "a", "main")
    assert await runner.ended(5, never)
    await runner.settled()


@pytest.mark.witness("BUS-3", "SUP-1")
@asynchronous
async def test_queue_belongs_to_the_address_across_a_restart() -> None:
    machine = Machine()
    gate = machine.bench.hold("old")
    await machine.ask(DoWork(texts=("old", "old and waiting")))
    await machine.away()
    new = machine.asking(DoWork(texts=("new",)))
    await machine.advance(1)
    assert machine.bench.begun == ["old"]
    assert not new.done()
    gate.set()
    await machine.advance(1)
    assert await new == Kept(text="begun")
    await settle()
    assert machine.bench.begun == machine.bench.ended == ["old", "new"]
    assert await machine.noted() == ("done new",)


@pytest.mark.witness("BUS-3", "SUP-1")
@asynchronous
async def test_outcomes_of_a_dead_owner_are_dead_letters() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    machine.bench.hold("beside")
    await machine.ask(DoWork(texts=("door", "waits")))
    await machine.ask(DoBeside(texts=("beside",)))
    await settle()
    await machine.away()
    gate.set()
    await machine.restarted()
    assert sorted(machine.dead()) == [
        ("WorkDone", "dead_effect"),
        ("WorkFailed", "dead_effect"),
        ("WorkFailed", "dead_effect"),
    ]
    assert await machine.noted() == ()


@asynchronous
async def test_progress_of_a_dead_owner_is_a_dead_letter() -> None:
    machine = Machine()
    contexts: list[Context] = []

    async def report(context: Context) -> Outcome:
        contexts.append(context)
        try:
            await asyncio.Event().wait()
        finally:
            context.progress(WorkMoved(text="late"))
        raise AssertionError

    machine.bench.plans["x"] = report
    await machine.ask(DoBeside(texts=("x",)))
    await settle()
    await machine.away()
    await machine.restarted()
    assert ("WorkMoved", "dead_effect") in machine.dead()
    contexts[0].progress(WorkMoved(text="later still"))
    assert await machine.noted() == ()


@asynchronous
async def test_progress_that_waits_reaches_the_owner_joined_and_before_the_end() -> None:
    machine = Machine()

    async def report(context: Context) -> Outcome:
        for text in "abc":
            context.progress(WorkMoved(text=text))
        return WorkDone(text="x")

    machine.bench.plans["x"] = report
    await machine.ask(DoBeside(texts=("x",)))
    await settle()
    assert await machine.noted() == ("moved abc", "done x")


@pytest.mark.witness("BUS-3")
@asynchronous
async def test_handler_that_does_not_end_costs_its_seat_and_its_claims_stay_until_it_has() -> None:
    let_go: list[str] = []

    async def give_back(seat: str) -> None:
        let_go.append(seat)

    machine = Machine(let_go=give_back)
    gate = machine.bench.hold("stuck")
    await machine.ask(DoWork(texts=("stuck",)))
    stopping = asyncio.ensure_future(machine.supervisor.stop("main/session", "closed"))
    await machine.advance(5.1)
    await stopping
    assert let_go == []
    gate.set()
    await settle()
    assert let_go == ["main"]
    assert machine.dead() == [("WorkDone", "dead_effect")]
    assert of_kind(machine.events, OwnerLost) == [OwnerLost(owner="main/session", reason="closed")]
