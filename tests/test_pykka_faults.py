"""What is known to go wrong with actors, in pykka and elsewhere, cannot be seen through ours.

The numbers 1 to 7 are faults that were measured on pykka 4.5; `I..` are public
reports about actor and message-bus runtimes.
"""

import asyncio
import threading
import time
from typing import Any

import pykka
import pytest
from toys import (
    AnswerKept,
    Break,
    DoWork,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    RelayAsk,
    Relayed,
    Toy,
    ToyActor,
    asynchronous,
    of_kind,
    settle,
    toy_step,
)

from tenure.messages.base import Message
from tenure.messages.bus import DeadlinePassed, OwnerLost, OwnerStarted, OwnerStopped
from tenure.messages.tokens import Role
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, Taken
from tenure.runtime.supervisor import RESTARTS_MAX, OwnerSpec


@asynchronous
async def test_1_asks_that_timed_out_are_not_executed_afterwards() -> None:
    machine = Machine()
    await machine.away()
    asks = [
        asyncio.ensure_future(
            machine.bus.ask("main/session", Note(text=str(number)), deadline_s=0.01)
        )
        for number in range(3)
    ]
    await machine.advance(0.02)
    assert await asyncio.gather(*asks) == [DeadlinePassed(begun=False)] * 3
    await machine.restarted()
    assert await machine.noted() == ()


class NeverMade(Owner):
    """Its construction fails, as a thread that cannot be started does."""

    @staticmethod
    def first() -> Any:
        raise RuntimeError("can't start")


@asynchronous
async def test_2_owner_that_cannot_be_made_stays_nowhere_and_stops_nobody() -> None:
    machine = Machine()
    with pytest.raises(RuntimeError, match="can't start"):
        machine.supervisor.add("side", OwnerSpec(role="session", owner=NeverMade))
    assert "side/session" not in machine.supervisor.addresses
    assert isinstance(await machine.ask(Note(text="x"), "side/session"), OwnerStopped)
    machine.supervisor.add("side", OwnerSpec(role="session", owner=ToyActor))
    assert isinstance(await machine.ask(Note(text="x"), "side/session"), Noted)
    await machine.supervisor.stop_all("closed")
    assert machine.supervisor.addresses == ()


@asynchronous
async def test_2_owner_that_cannot_be_made_again_is_lost_and_nobody_waits_for_it() -> None:
    made = 0

    class MadeOnce(Owner):
        step = staticmethod(toy_step)

        @staticmethod
        def first() -> Any:
            nonlocal made
            made += 1
            if made > 1:
                raise RuntimeError("can't start")
            return Toy()

    machine = Machine(owners={"session": MadeOnce})
    await machine.away()
    waiting = machine.asking(Note(text="x"))
    await machine.restarted()
    reply = await waiting
    assert isinstance(reply, OwnerStopped)
    assert "can't start" in reply.reason
    assert machine.supervisor.addresses == ()


@asynchronous
async def test_2_no_thread_is_started_for_an_owner() -> None:
    before = threading.active_count()
    machine = Machine()
    for number in range(200):
        machine.add_seat(f"seat {number}")
    await machine.ask(Note(text="x"), "seat 7/turn")
    assert threading.active_count() == before


@asynchronous
async def test_3_start_that_raises_is_a_failure_that_everybody_can_see() -> None:
    class BadStart(Owner):
        first = Toy

        @staticmethod
        def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
            if isinstance(message, OwnerStarted):
                raise RuntimeError("no start")
            return toy_step(state, message, taken)

    machine = Machine(owners={"session": BadStart})
    waiting = machine.asking(Note(text="x"))
    for _ in range(RESTARTS_MAX + 1):
        await machine.restarted()
    reply = await waiting
    assert isinstance(reply, OwnerStopped)
    assert "no start" in reply.reason
    assert len(machine.supervisor.quarantine) == RESTARTS_MAX + 1
    assert len(of_kind(machine.events, OwnerLost)) == 1


@asynchronous
async def test_4_tells_behind_a_failing_tell_are_not_lost() -> None:
    machine = Machine()
    for command in (Note(text="1"), Break(), Note(text="3"), Note(text="4"), Note(text="5")):
        machine.bus.tell("main/session", command)
    await machine.restarted()
    assert await machine.noted() == ("3", "4", "5")  # the first was handled before the failure
    assert machine.dead() == []


@asynchronous
async def test_4_tells_to_an_owner_that_is_lost_become_dead_letters() -> None:
    machine = Machine()
    for _ in range(RESTARTS_MAX + 1):
        machine.bus.tell("main/session", Break())
    for number in range(3):
        machine.bus.tell("main/session", Note(text=str(number)))
    for _ in range(RESTARTS_MAX + 1):
        await machine.restarted(0.5)
    assert machine.dead() == [("Note", "owner_stopped")] * 3


@pytest.mark.parametrize("gap", range(8))
@asynchronous
async def test_5_ask_that_races_a_stop_is_answered_at_every_point_of_the_stop(gap: int) -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    asks = []
    stopping = asyncio.ensure_future(machine.supervisor.stop("main/session", "closed"))
    for point in range(8):
        asks.append(machine.asking(Note(text=str(point))))
        if point == gap:
            gate.set()
        await asyncio.sleep(0)
    await stopping
    asks.append(machine.asking(Note(text="after")))
    await settle()
    assert all(ask.done() for ask in asks)
    assert {type(ask.result()) for ask in asks} <= {Noted, OwnerStopped}
    assert len(machine.bus.asks) == 0


@asynchronous
async def test_6_owners_stand_in_no_registry_and_cost_the_same_however_many_there_are() -> None:
    async def seconds_for(seats: int) -> float:
        machine = Machine()
        begin = time.process_time()
        for number in range(seats):
            machine.add_seat(f"seat {number}")
        await machine.supervisor.stop_all("closed")
        return time.process_time() - begin

    registered = len(pykka.ActorRegistry.get_all())
    await seconds_for(100)  # warm
    few = min([await seconds_for(250) for _ in range(3)])
    many = min([await seconds_for(2_000) for _ in range(2)])
    assert many / few < 3 * (2_000 / 250)
    assert len(pykka.ActorRegistry.get_all()) == registered


@asynchronous
async def test_6_end_of_one_owner_does_not_look_at_the_asks_of_all_others() -> None:
    async def seconds_for(seats: int) -> float:
        machine = Machine()
        for number in range(seats):
            machine.add_seat(f"seat {number}")
        asks = [
            machine.asking(KeepAsker(text="x"), f"seat {number}/session") for number in range(seats)
        ]
        await settle()
        begin = time.process_time()
        await machine.supervisor.stop_all("closed")
        seconds = time.process_time() - begin
        assert {type(reply) for reply in await asyncio.gather(*asks)} == {OwnerStopped}
        machine.bus.close()
        return seconds

    few = min([await seconds_for(250) for _ in range(3)])
    many = min([await seconds_for(2_000) for _ in range(3)])
    assert many / few < 4 * (2_000 / 250)


@asynchronous
async def test_7_loop_goes_on_while_an_answer_is_awaited() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="x"))
    beats = 0
    for _ in range(20):
        await asyncio.sleep(0)
        beats += 1
    assert not asking.done()
    await machine.ask(AnswerKept())
    assert (await asking, beats) == (Kept(text="x"), 20)


@asynchronous
async def test_owner_cannot_be_asked_behind_the_back_of_the_bus() -> None:
    machine = Machine()
    owner = machine.bus.boxes["main/session"].owner
    assert owner is not None
    with pytest.raises(TypeError, match="through the bus"):
        owner.actor_ref.tell(Note(text="x"))
    with pytest.raises(TypeError, match="through the bus"):
        owner.actor_ref.ask(Note(text="x"))
    assert await machine.noted() == ()


# --- public reports ------------------------------------------------------------------------------


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_i01_failure_of_the_second_of_five_messages_is_seen_and_the_others_are_handled() -> (
    None
):
    machine = Machine()
    watching = machine.bus.subscribe(seat="main")
    commands = (Note(text="1"), Break(reason="two"), *(Note(text=text) for text in "345"))
    for command in commands:
        machine.bus.tell("main/session", command)
    await machine.restarted()
    assert await machine.noted() == ("3", "4", "5")
    assert [type(event).__name__ for event in (p.event for p in watching.waiting)] == [
        "MessageQuarantined",
        "OwnerRestarted",
    ]


@pytest.mark.witness("BUS-1")
@pytest.mark.parametrize("length", [2, 3])
@asynchronous
async def test_i03_cycle_of_asks_does_not_hold_anybody_up(length: int) -> None:
    every: tuple[Role, ...] = ("session", "turn", "approval")
    roles = every[:length]
    machine = Machine(owners=dict.fromkeys(roles, ToyActor))
    question: Any = Note(text="round")
    for role in (roles[0], *reversed(roles[1:])):
        question = RelayAsk(to=role, message=question)  # the last asks the first
    reply = await machine.ask(question)
    for _ in range(length):
        assert isinstance(reply, Relayed)
        reply = reply.reply
    assert reply == Noted(before=(), incarnation=1)


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_i03_cycle_in_which_nobody_answers_is_ended_by_its_deadline() -> None:
    machine = Machine()
    cycle = RelayAsk(to="turn", message=RelayAsk(to="session", message=KeepAsker(text="x")))
    asking = machine.asking(cycle)
    await settle()
    assert isinstance(await machine.ask(Note(text="meanwhile")), Noted)
    await machine.advance(10.1)
    assert await asking == Relayed(reply=Relayed(reply=DeadlinePassed(begun=True)))


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_i04_everything_queued_around_a_stop_is_answered_and_every_stop_returns() -> None:
    machine = Machine()
    asks = [machine.asking(Note(text=str(number))) for number in range(5)]
    await asyncio.sleep(0)
    stops = [asyncio.ensure_future(machine.supervisor.stop_all("closed")) for _ in range(3)]
    asks += [machine.asking(Note(text=str(number))) for number in range(5)]
    machine.bus.tell("main/session", Note(text="told"))
    await asyncio.gather(*stops)
    assert {type(reply) for reply in await asyncio.gather(*asks)} <= {Noted, OwnerStopped}
    machine.bus.tell("main/session", Note(text="told later"))
    assert machine.dead()[-1] == ("Note", "no_owner")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_i06_failure_in_a_handler_reaches_the_asker_and_others_get_their_message() -> None:
    machine = Machine()
    bad = machine.asking(Break(reason="bad subscriber"))
    good = machine.asking(Note(text="x"), "main/turn")
    assert await bad == OwnerStopped(begun=True, reason="RuntimeError: bad subscriber")
    assert await good == Noted(before=(), incarnation=1)


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_i08_what_waits_at_a_restart_is_delivered_once_in_order() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    machine.bus.tell("main/session", Break())
    for text in "12345":
        machine.bus.tell("main/session", Note(text=text))
    await settle()
    machine.bus.tell("main/session", Note(text="arrives during the restart"))
    gate.set()
    await machine.restarted()
    assert await machine.noted() == (*"12345", "arrives during the restart")
