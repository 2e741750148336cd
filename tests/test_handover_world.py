"""Handovers in a simulated world: every order of handover, turn and crash that the seeds give.

Every run is watched by all checkers: one holder of a session at a time, one
result for each call, whole chains, nobody without an answer.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from seat_world import Counted, Gate, use
from socket_world import Client

from tenure.messages.base import Event, Reply
from tenure.messages.handover import HandedOver, HandoverPending, HandOverSession
from tenure.messages.models import Model, ModelDone, ModelEvent, ModelRequest, ModelText
from tenure.messages.remote import NoHost
from tenure.messages.session import NoSession, SessionInUse, Stale, StartTurn
from tenure.messages.tokens import SessionId
from tenure.messages.turn import TextDelta, ToolCallStarted, TurnEnded, TurnNotStarted, TurnQueued
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.doors.tools.door import AnyTool
from tenure.runtime.errors import HostClosed, Refused
from tenure.runtime.remote import RemoteHost
from tenure.runtime.seat import Seat
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.world import ProcessEnded, World, simulate

SEEDS = range(25)


async def talks(request: ModelRequest) -> AsyncIterator[ModelEvent]:
    for number in range(50):
        yield ModelText(text=f"{number} ")
        await asyncio.sleep(0)
    yield ModelDone()


class Two:
    """A host that has a session with a turn in it, and one that wants it."""

    def __init__(self, world: World, model: Model, tools: tuple[AnyTool, ...]) -> None:
        self.world = world
        self.old = world.host("old", model=Scripted(["hello"]), tools=tools, socket=True)
        world.run(self.old.seat())
        world.run(self.old.prompt("hi"))
        self.session: SessionId = self.old.host.seats["main"].token.session_id
        world.run(self.old.close())
        # The session has a file now; the host that has it is another run of the program.
        self.old = world.host("old", model=model, tools=tools, socket=True)
        world.run(self.old.seat())
        self.new = world.host("new", model=Scripted(["here now"]), socket=True)
        world.run(self.new.start())

    def begin(self, text: str = "go") -> "asyncio.Task[list[Event]]":
        return self.world.loop.create_task(self.old.prompt(text))

    async def take(self, within_s: float = 30.0) -> Seat:
        taking = self.new.host.take_over(self.session, within_s=within_s)
        return await self.world.inside(self.new.process, taking)

    def refused(self, within_s: float) -> Reply:
        with pytest.raises(Refused) as caught:
            self.world.run(self.take(within_s))
        return caught.value.reply


@contextmanager
def two(
    *answers: Any, seed: int | None = None, model: Model | None = None, tools: Any = ()
) -> Iterator[Two]:
    choices = () if seed is None else None
    with simulate(seed or 0, choices=choices, watchers=all_checkers()) as world:
        yield Two(world, model if model is not None else Scripted(answers), tuple(tools))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.witness("SESSION-5")
def test_session_changes_hands_at_any_moment_of_a_turn(seed: int) -> None:
    counted = Counted(mutating=False)
    with two((use("c1"),), "done", seed=seed, tools=[counted.tool]) as both:
        turn = both.begin()
        both.world.run(both.world.clock.sleep(both.world.chance.random() * 0.01))
        seat = both.world.run(both.take())
        assert seat.token.session_id == both.session
        assert seat.token.epoch == 3
        fate = both.world.run(_fate(turn))
        assert isinstance(fate, TurnEnded | NoSession | Stale | TurnNotStarted)
        assert both.world.run(both.new.prompt("and here"))


@pytest.mark.parametrize("seed", SEEDS)
def test_session_of_a_holder_that_is_killed_in_a_handover_is_taken(seed: int) -> None:
    with two(seed=seed, model=talks) as both:
        turn = both.begin()
        both.world.run_until(both.old, TextDelta)
        taking = both.world.loop.create_task(both.take())
        both.world.run(both.world.clock.sleep(both.world.chance.random() * 0.05))
        both.old.kill()
        seat = both.world.run(_result(taking))
        assert seat.token.session_id == both.session
        with suppress(ProcessEnded):  # unless it had been stopped before the kill
            both.world.run(_fate(turn))
        assert both.world.run(both.new.prompt("and here"))


@pytest.mark.parametrize("seed", range(10))
def test_asker_that_is_killed_leaves_a_session_that_anybody_can_have(seed: int) -> None:
    with two(seed=seed, model=talks) as both:
        both.begin()
        both.world.run_until(both.old, TextDelta)
        taking = both.world.loop.create_task(both.take())
        both.world.run(both.world.clock.sleep(both.world.chance.random() * 0.05))
        both.new.kill()
        with suppress(ProcessEnded):  # unless it had the session before the kill
            both.world.run(_result(taking))
        third = both.world.host("third", model=Scripted(["mine"]), socket=True)
        both.world.run(third.start())
        seat = both.world.run(both.world.inside(third.process, third.host.take_over(both.session)))
        assert seat.token.session_id == both.session


@pytest.mark.parametrize("seed", range(10))
def test_of_two_that_take_a_session_over_at_once_each_gets_it_or_is_told(seed: int) -> None:
    with two(seed=seed, model=talks) as both:
        both.begin()
        third = both.world.host("third", model=Scripted(["mine"]), socket=True)
        both.world.run(third.start())

        async def race() -> list[Any]:
            other = both.world.inside(third.process, third.host.take_over(both.session))
            return await asyncio.gather(both.take(), other, return_exceptions=True)

        results = both.world.run(race())
        assert any(isinstance(result, Seat) for result in results)
        for result in results:
            assert isinstance(result, Seat) or isinstance(result.reply, SessionInUse)


def test_stopped_holder_keeps_its_session_until_it_goes_on() -> None:
    with two(model=talks) as both:
        both.begin()
        both.world.run_until(both.old, TextDelta)
        both.old.stop()
        refused = both.refused(within_s=10.0)
        assert isinstance(refused, SessionInUse)
        assert refused.holder is not None
        assert refused.holder.process == both.old.process.name
        both.old.resume()
        assert both.world.run(both.take()).token.session_id == both.session


def test_tool_that_goes_on_makes_the_handover_pending_until_it_ends() -> None:
    gate = Gate()

    async def stubborn() -> None:
        try:
            await gate()
        except asyncio.CancelledError:
            await gate()

    counted = Counted(gate=stubborn, mutating=False)  # type: ignore[arg-type]
    with two((use("c1"),), "done", tools=[counted.tool]) as both:
        turn = both.begin()
        both.world.run_until(both.old, ToolCallStarted)
        both.world.settle(0.1)
        pending = both.refused(within_s=2.0)
        assert isinstance(pending, HandoverPending)
        assert pending.calls == ("c1",)
        taking = both.world.loop.create_task(both.take())
        both.world.run(both.world.clock.sleep(1.0))
        assert not taking.done()
        gate.open()
        assert both.world.run(_result(taking)).token.session_id == both.session
        ended = both.world.run(_result(turn))[-1]
        assert (ended.stop_reason, ended.cause) == ("stopped", "handover")


def test_prompts_that_wait_are_given_back_to_who_asks() -> None:
    with two(model=talks) as both:
        both.begin()
        both.world.run_until(both.old, TextDelta)
        queued = both.world.ask(both.old, StartTurn(text="later", when_busy="queue"))
        assert isinstance(queued, TurnQueued)
        client = Client(both.world)
        reply = client.run(
            client.remote(both.old).ask(HandOverSession(session_id=both.session), "main")
        )
        assert isinstance(reply, HandedOver)
        assert reply.dropped == ("later",)


def test_seat_that_gave_its_session_away_opens_another_one() -> None:
    with two("x") as both:
        both.world.run(both.take())
        with pytest.raises(HostClosed):
            _ = both.old.host.seats["main"].token
        seat = both.world.run(both.old.seat("main"))
        assert seat.token.session_id != both.session
        assert both.world.run(both.old.prompt("something else"))


def test_restarted_owner_does_not_open_what_its_seat_gave_away() -> None:
    with two("x") as both:
        both.world.run(both.take())
        both.world.settle(1.0)
        both.world.crashes.plan(both.old.process.name, "session")
        both.world.ask(both.old, StartTurn(text="go"))
        both.world.settle(5.0)
        refused = both.world.ask(both.old, StartTurn(text="go"))
        assert isinstance(refused, NoSession)
        assert both.world.run(both.new.prompt("still mine"))


def test_parked_session_is_simply_opened_by_another_host() -> None:
    with two("x") as both:
        park = both.old.host.seats["main"].park()
        both.world.run(both.world.inside(both.old.process, park))
        assert both.world.run(both.take()).token.session_id == both.session


async def _result(task: "asyncio.Task[Any]") -> Any:
    return await task


async def _fate(turn: "asyncio.Task[list[Event]]") -> Event | Reply:
    """The last event of a turn, or why it was not started."""
    try:
        return (await turn)[-1]
    except Refused as refused:
        return refused.reply


def test_host_that_is_named_and_gone_is_a_refusal_and_no_error_of_the_socket() -> None:
    """Found by a search: a client that knew the id of a host that had ended."""
    with two() as both:
        known = both.old.host.host_id
        both.old.kill()
        leaves = both.new.leaves

        async def connect() -> None:
            await RemoteHost.connect(host_id=known, leaves=leaves)

        with pytest.raises(Refused) as caught:
            both.world.run(both.world.inside(both.new.process, connect()))
        assert isinstance(caught.value.reply, NoHost)
