"""Owners that are stopped: in order, once, and never in the middle."""

import asyncio
from typing import Any

import pytest
from toys import (
    DoWork,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    Toy,
    WorkDone,
    asynchronous,
    of_kind,
    settle,
    spec,
    toy_step,
)

from tenure.messages.base import Command, Message
from tenure.messages.bus import (
    OwnerLost,
    OwnerRestarted,
    OwnerStarted,
    OwnerStopped,
)
from tenure.runtime.mailbox import Delivery
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, Taken
from tenure.runtime.supervisor import (
    RESTARTS_MAX,
)

FIRST, SECOND = "main/session", "main/turn"


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_stop_during_a_restart_ends_the_restart() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    await machine.away()
    stopping = asyncio.ensure_future(machine.supervisor.stop(FIRST, "closed"))
    await settle()
    gate.set()
    await stopping
    await machine.restarted(10)
    assert machine.supervisor.addresses == (SECOND,)
    assert of_kind(machine.events, OwnerRestarted) == []


@asynchronous
async def test_stop_during_the_backoff_ends_the_restart() -> None:
    machine = Machine()
    await machine.away()
    await settle()
    await machine.supervisor.stop(FIRST, "closed")
    await machine.restarted(10)
    assert machine.supervisor.addresses == (SECOND,)
    machine.supervisor.add("main", spec("session"))
    await machine.restarted(10)
    assert await machine.ask(Note(text="x")) == Noted(before=(), incarnation=1)


@asynchronous
async def test_stop_is_idempotent_and_every_caller_waits_for_the_end() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    stops = [asyncio.ensure_future(machine.supervisor.stop(FIRST, "closed")) for _ in range(3)]
    stops.append(asyncio.ensure_future(machine.supervisor.stop_seat("main", "closed")))
    stops.append(asyncio.ensure_future(machine.supervisor.stop_all("closed")))
    await settle()
    assert [stop.done() for stop in stops] == [False] * 5
    gate.set()
    await asyncio.gather(*stops)
    await machine.supervisor.stop(FIRST, "closed")
    await machine.supervisor.stop_all("closed")
    assert len(of_kind(machine.events, OwnerLost)) == 2


@asynchronous
async def test_cancel_of_who_stops_an_owner_does_not_cut_the_stop_short() -> None:
    let_go: list[str] = []

    async def give_back(seat: str) -> None:
        let_go.append(seat)

    machine = Machine(let_go=give_back)
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    stopping = asyncio.ensure_future(machine.supervisor.stop(FIRST, "closed"))
    await settle()
    stopping.cancel()
    await settle()
    assert let_go == []
    gate.set()
    await settle()
    assert let_go == ["main"]
    assert machine.supervisor.addresses == (SECOND,)


@asynchronous
async def test_address_cannot_be_taken_while_its_old_owner_ends() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    stopping = asyncio.ensure_future(machine.supervisor.stop(FIRST, "closed"))
    await settle()
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert view.state == "Stopping"
    with pytest.raises(ValueError, match="main/session"):
        machine.supervisor.add("main", spec("session"))
    gate.set()
    await stopping
    machine.supervisor.add("main", spec("session"))
    assert await machine.ask(Note(text="x")) == Noted(before=(), incarnation=1)


@asynchronous
async def test_owners_end_in_the_reverse_order_of_their_start_claims_last() -> None:
    order: list[str] = []

    async def give_back(seat: str) -> None:
        order.append(f"claims of {seat}")

    machine = Machine(let_go=give_back)
    gate = machine.bench.hold("turn")
    await machine.ask(DoWork(texts=("turn",)), SECOND)
    stopping = asyncio.ensure_future(machine.supervisor.stop_seat("main", "closed"))
    await settle()
    assert order == []  # the session, started first, waits for the turn
    assert isinstance(await machine.ask(Note(text="x")), OwnerStopped)
    gate.set()
    await stopping
    assert order == ["claims of main", "claims of main"]


@asynchronous
async def test_claims_that_cannot_be_given_back_do_not_stop_the_stop() -> None:
    async def give_back(seat: str) -> None:
        raise OSError("the disk is gone")

    machine = Machine(let_go=give_back)
    await machine.supervisor.stop_seat("main", "closed")
    assert machine.supervisor.addresses == ()


@asynchronous
async def test_loss_of_a_seat_while_the_host_closes_gives_its_claims_back() -> None:
    let_go: list[str] = []

    async def give_back(seat: str) -> None:
        let_go.append(seat)

    machine = Machine(let_go=give_back)
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)), SECOND)
    for _ in range(RESTARTS_MAX):
        await machine.away()
        await machine.restarted(0.5)
    let_go.clear()
    await machine.away()  # the seat is being lost, and waits for its turn's effect
    closing = asyncio.ensure_future(machine.supervisor.stop_all("the host is closed"))
    await settle()
    gate.set()
    await closing
    assert let_go == ["main", "main"]


@asynchronous
async def test_owner_that_is_stopped_steps_no_more() -> None:
    stepped: list[Message] = []

    class Journal(Owner):
        first = Toy

        @staticmethod
        def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
            stepped.append(message)
            return toy_step(state, message, taken)

    machine = Machine(owners={"session": Journal})
    for number in range(10):
        machine.bus.tell(FIRST, Note(text=str(number)))
    await machine.supervisor.stop(FIRST, "closed")
    machine.bus.post(FIRST, Delivery(WorkDone(text="late")))
    await settle()
    assert stepped == [OwnerStarted(incarnation=1)]


@asynchronous
async def test_two_thousand_seats_start_and_stop() -> None:
    machine = Machine()
    for number in range(2_000):
        machine.add_seat(f"seat {number}")
    asks = [machine.asking(KeepAsker(text="x"), f"seat {number}/turn") for number in range(2_000)]
    await settle()
    await machine.supervisor.stop_all("closed")
    replies = await asyncio.gather(*asks)
    assert set(replies) == {OwnerStopped(begun=True, reason="closed")}
    assert machine.supervisor.addresses == ()
    assert machine.bus.boxes == {}


@asynchronous
async def test_owners_state_what_is_now_true_only_by_their_steps() -> None:
    machine = Machine()
    commands: list[Command] = [Note(text="a"), Note(text="b")]
    replies = [await machine.ask(command) for command in commands]
    assert replies == [Noted(before=(), incarnation=1), Noted(before=("a",), incarnation=1)]
    assert await machine.ask(DoWork(texts=())) == Kept(text="begun")


@asynchronous
async def test_owner_goes_on_with_its_mail_when_an_observer_raises() -> None:
    class Bad:
        def stepped(self, *args: object) -> None:
            if any(isinstance(arg, Note) and arg.text == "bad" for arg in args):
                raise ZeroDivisionError

        raised = published = effect_started = effect_ended = stepped

    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, what: told.append(type(what["exception"]).__name__)
    )
    machine = Machine(observers=(Bad(),))
    for text in ("1", "bad", "2", "3"):
        machine.bus.tell(FIRST, Note(text=text))
    assert await machine.noted() == ("1", "bad", "2", "3")
    assert told == ["ZeroDivisionError"]
