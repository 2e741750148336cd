"""Every effect ends in exactly one terminal outcome, whatever its handler does."""

import asyncio
from typing import Any

import pytest
from toys import (
    Bench,
    CancelBeside,
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
    settle,
)

from tenure.messages.base import Effect, Outcome
from tenure.runtime.doors.context import Context
from tenure.runtime.effects import EffectRunner
from tenure.runtime.host_doors import Wishes, open_doors
from tenure.runtime.system import handlers_of
from tenure.runtime.testing.leaves import memory_leaves


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


async def raises(context: Context) -> Outcome:
    raise ValueError("no luck")


async def raises_without_words(context: Context) -> Outcome:
    raise KeyError


async def gives_none(context: Context) -> None:
    return None


async def is_cancelled_from_inside(context: Context) -> Outcome:
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


BAD_HANDLERS = [
    (raises, "ValueError: no luck"),
    (raises_without_words, "KeyError"),
    (gives_none, "the handler gave a NoneType"),
    (is_cancelled_from_inside, "cancelled"),
]


# --- whatever the handler does ---------------------------------------------------------------


@pytest.mark.witness("BUS-3")
@pytest.mark.parametrize("kind", [Work, WorkBeside])
@asynchronous
async def test_effect_whose_handler_returns_ends_in_that_outcome(
    kind: type[Work] | type[WorkBeside],
) -> None:
    bench, wanting = Bench(), Wanting()
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(kind(text="x"), wanting)
    await settle()
    assert wanting.ended == [WorkDone(text="x")]
    assert runner.under_way == ()


@pytest.mark.witness("BUS-3")
@pytest.mark.parametrize("kind", [Work, WorkBeside])
@pytest.mark.parametrize(("plan", "reason"), BAD_HANDLERS)
@asynchronous
async def test_effect_whose_handler_does_badly_ends_in_its_failure(
    kind: type[Work] | type[WorkBeside], plan: Any, reason: str
) -> None:
    bench, wanting = Bench(), Wanting()
    bench.plans["x"] = plan
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(kind(text="x"), wanting)
    await settle()
    assert wanting.ended == [WorkFailed(text="x", reason=reason)]


@pytest.mark.witness("BUS-3")
@pytest.mark.parametrize(("plan", "reason"), BAD_HANDLERS)
@asynchronous
async def test_bad_handler_does_not_take_from_what_waits_behind_it(plan: Any, reason: str) -> None:
    bench, wanting = Bench(), Wanting()
    bench.plans["1"] = plan
    runner = EffectRunner(bench.handlers, "a", "main")
    for text in ("1", "2", "3"):
        runner.start(Work(text=text), wanting)
    await settle()
    assert wanting.ended == [
        WorkFailed(text="1", reason=reason),
        WorkDone(text="2"),
        WorkDone(text="3"),
    ]


@pytest.mark.witness("BUS-3")
@pytest.mark.parametrize("kind", [Work, WorkBeside])
@asynchronous
async def test_effect_without_a_handler_ends_in_its_failure(
    kind: type[Work] | type[WorkBeside],
) -> None:
    wanting = Wanting()
    EffectRunner({}, "a", "main").start(kind(text="x"), wanting)
    await settle()
    (outcome,) = wanting.ended
    assert isinstance(outcome, WorkFailed)
    assert "KeyError" in outcome.reason


@asynchronous
async def test_handler_is_told_who_wants_the_effect_and_can_report_progress() -> None:
    bench, wanting = Bench(), Wanting()
    seen: list[Context] = []

    async def report(context: Context) -> Outcome:
        seen.append(context)
        context.progress(WorkMoved(text="half"))
        return WorkDone(text="x")

    bench.plans["x"] = report
    EffectRunner(bench.handlers, "main/turn", "main").start(WorkBeside(text="x"), wanting)
    await settle()
    assert [(context.owner, context.seat) for context in seen] == [("main/turn", "main")]
    assert (wanting.moved, wanting.ended) == ([WorkMoved(text="half")], [WorkDone(text="x")])


# --- order -----------------------------------------------------------------------------------


@asynchronous
async def test_effects_of_one_owner_run_in_order_one_at_a_time() -> None:
    bench, wanting = Bench(), Wanting()
    gate = bench.hold("1")
    runner = EffectRunner(bench.handlers, "a", "main")
    for text in ("1", "2"):
        runner.start(Work(text=text), wanting)
    await settle()
    assert (bench.begun, runner.under_way) == (["1"], ("Work", "Work"))
    gate.set()
    await settle()
    runner.start(Work(text="3"), wanting)
    await settle()
    assert [type(outcome) for outcome in wanting.ended] == [WorkDone] * 3
    assert bench.begun == bench.ended == ["1", "2", "3"]


@asynchronous
async def test_concurrent_effects_run_beside_the_queue_and_each_other() -> None:
    bench, wanting = Bench(), Wanting()
    for text in ("queued", "a", "b"):
        bench.hold(text)
    runner = EffectRunner(bench.handlers, "x", "main")
    runner.start(Work(text="queued"), wanting)
    runner.start(WorkBeside(text="a"), wanting)
    runner.start(WorkBeside(text="b"), wanting)
    await settle()
    assert bench.begun == ["queued", "a", "b"]
    for text in ("b", "queued", "a"):
        bench.gates[text].set()
        await settle()
    assert wanting.ended == [WorkDone(text=text) for text in ("b", "queued", "a")]


@asynchronous
async def test_effect_that_is_started_as_the_last_one_ends_is_carried_out() -> None:
    bench = Bench()

    class Again(Wanting):
        def end(self, outcome: Outcome) -> None:
            super().end(outcome)
            if len(self.ended) < 50:
                runner.start(Work(text=str(len(self.ended))), self)

    wanting = Again()
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(Work(text="0"), wanting)
    for _ in range(10):
        await settle()
    assert [outcome.text for outcome in wanting.ended if isinstance(outcome, WorkDone)] == [
        str(number) for number in range(50)
    ]


# --- cancel ----------------------------------------------------------------------------------


@pytest.mark.witness("BUS-3")
@asynchronous
async def test_cancelled_effect_ends_in_its_failure_once() -> None:
    machine = Machine()
    machine.bench.hold("a")
    machine.bench.hold("b")
    await machine.ask(DoBeside(texts=("a", "b")))
    await settle()
    assert await machine.ask(CancelBeside(text="a")) == Kept(text="cancelled")
    await settle()
    await machine.ask(CancelBeside(text="a"))
    machine.bench.gates["b"].set()
    await settle()
    assert await machine.noted() == ("failed a: cancelled", "done b")


@pytest.mark.witness("BUS-3")
@asynchronous
async def test_effect_that_is_cancelled_before_it_began_ends_in_its_failure() -> None:
    bench, wanting = Bench(), Wanting()
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(WorkBeside(text="x"), wanting)
    runner.cancel("work x")
    await settle()
    assert bench.begun == []
    assert wanting.ended == [WorkFailed(text="x", reason="cancelled")]


@asynchronous
async def test_handler_may_end_a_cancel_in_an_outcome_of_its_own() -> None:
    bench, wanting = Bench(), Wanting()

    async def clean_up(context: Context) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return WorkFailed(text="x", reason="half of it was done")
        raise AssertionError

    bench.plans["x"] = clean_up
    runner = EffectRunner(bench.handlers, "a", "main")
    runner.start(WorkBeside(text="x"), wanting)
    await settle()
    runner.cancel("work x")
    await settle()
    assert wanting.ended == [WorkFailed(text="x", reason="half of it was done")]


@asynchronous
async def test_cancel_of_a_key_that_nothing_has_does_nothing() -> None:
    machine = Machine()
    assert await machine.ask(CancelBeside(text="nothing")) == Kept(text="cancelled")
    assert await machine.noted() == ()


@pytest.mark.witness("BUS-3")
@pytest.mark.parametrize("begun", [True, False])
@asynchronous
async def test_torn_down_queue_ends_what_runs_and_what_waits_in_failures(begun: bool) -> None:
    bench, wanting = Bench(), Wanting()
    bench.hold("1")
    runner = EffectRunner(bench.handlers, "a", "main")
    for text in ("1", "2"):
        runner.start(Work(text=text), wanting)
    if begun:
        await settle()
    (task,) = runner._running()
    task.cancel()
    await settle()
    assert [type(outcome) for outcome in wanting.ended] == [WorkFailed, WorkFailed]
    assert runner.under_way == ()
    bench.gates["1"].set()
    runner.start(Work(text="3"), wanting)
    await settle()
    assert wanting.ended[2:] == [WorkDone(text="3")]


# --- every effect there is -----------------------------------------------------------------------


def _effects_of_the_vocabulary(kind: type[Effect] = Effect) -> set[type[Effect]]:
    found = {each for each in kind.__subclasses__() if each.__module__.startswith("tenure.")}
    return found.union(*(_effects_of_the_vocabulary(each) for each in found))


@pytest.mark.witness("BUS-3")
def test_every_effect_has_a_handler_and_says_how_it_fails() -> None:
    wishes = Wishes()
    handlers = handlers_of(open_doors(memory_leaves(), "/root", "host", wishes), wishes)
    effects = _effects_of_the_vocabulary()
    assert effects == set(handlers)
    assert [effect.__name__ for effect in effects if effect.failed is Effect.failed] == []


@asynchronous
async def test_view_of_an_owner_shows_what_runs_and_what_waits() -> None:
    machine = Machine()
    machine.bench.hold("1")
    machine.bench.hold("b")
    await machine.ask(DoWork(texts=("1", "2")))
    await machine.ask(DoBeside(texts=("b",)))
    await settle()
    view = machine.supervisor.view("main/session")
    assert view is not None
    assert view.effects == ("Work", "Work", "WorkBeside")
    assert (view.state, view.incarnation, view.restarts) == ("Toy", 1, 0)
