"""The bus: telling, dead letters, routes, and what it keeps of them."""

import asyncio

import pytest
from toys import (
    AnswerKept,
    DoWork,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    RelayForward,
    RelayTell,
    Said,
    Say,
    WorkDone,
    asynchronous,
    settle,
)

from tenure.messages.bus import DeadLetter, Overloaded, OwnerStopped, Told
from tenure.runtime.bus import DEAD_LETTERS_KEPT_MAX
from tenure.runtime.mailbox import COMMANDS_MAX, Delivery


@asynchronous
async def test_tell_is_taken_and_says_so() -> None:
    machine = Machine()
    assert machine.bus.tell("main/session", Note(text="told")) == Told()
    assert await machine.noted() == ("told",)


@asynchronous
async def test_tell_to_a_stopped_owner_is_a_dead_letter_and_the_sender_sees_it() -> None:
    machine = Machine()
    await machine.supervisor.stop("main/session", "closed")
    reply = machine.bus.tell("main/session", Note(text="x"))
    assert isinstance(reply, OwnerStopped)
    assert list(machine.bus.dead_letters) == [
        DeadLetter(to="main/session", message="Note", cause="no_owner")
    ]


@asynchronous
async def test_tell_while_the_owner_ends_is_a_dead_letter() -> None:
    machine = Machine()
    gate = machine.bench.hold("slow")
    await machine.ask(DoWork(texts=("slow",)))
    stopping = asyncio.ensure_future(machine.supervisor.stop("main/session", "closed"))
    await settle()
    assert machine.bus.tell("main/session", Note(text="x")) == OwnerStopped(
        begun=False, reason="closed"
    )
    assert machine.dead() == [("Note", "owner_stopped")]
    gate.set()
    await stopping


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_tell_to_a_full_lane_is_refused_and_counted() -> None:
    machine = Machine()
    for _ in range(COMMANDS_MAX):
        assert machine.bus.tell("main/session", Note(text="x")) == Told()
    assert machine.bus.tell("main/session", Note(text="y")) == Overloaded(waiting=COMMANDS_MAX)
    assert machine.bus.dead_letters_count["overloaded"] == 1


@asynchronous
async def test_what_was_told_and_waits_at_a_stop_becomes_dead_letters() -> None:
    machine = Machine()
    for number in range(3):
        machine.bus.tell("main/session", Note(text=str(number)))
    machine.bus.post("main/session", Delivery(WorkDone(text="an outcome")))
    await machine.supervisor.stop("main/session", "closed")
    assert sorted(machine.dead()) == [("Note", "owner_stopped")] * 3 + [
        ("WorkDone", "owner_stopped")
    ]


@asynchronous
async def test_mail_to_an_owner_that_is_not_there_is_a_dead_letter() -> None:
    machine = Machine()
    await machine.ask(RelayTell(to="approval", message=Note(text="x")))
    assert list(machine.bus.dead_letters) == [
        DeadLetter(to="main/approval", message="Note", cause="no_owner")
    ]


@asynchronous
async def test_dead_letters_are_bounded_and_all_of_them_counted() -> None:
    machine = Machine()
    for _ in range(DEAD_LETTERS_KEPT_MAX + 50):
        machine.bus.tell("nobody", Note(text="x"))
    assert len(machine.bus.dead_letters) == DEAD_LETTERS_KEPT_MAX
    assert machine.bus.dead_letters_count["no_owner"] == DEAD_LETTERS_KEPT_MAX + 50


@asynchronous
async def test_owners_of_one_seat_are_told_apart_by_role_and_seats_by_name() -> None:
    machine = Machine()
    machine.add_seat("side")
    await machine.ask(RelayTell(to="turn", message=Note(text="main")))
    await machine.ask(RelayTell(to="turn", message=Note(text="side")), "side/session")
    await settle()
    assert await machine.noted("main/turn") == ("main",)
    assert await machine.noted("side/turn") == ("side",)


@asynchronous
async def test_owner_that_sends_to_itself_gets_it_after_the_step() -> None:
    machine = Machine()
    reply = await machine.ask(RelayForward(to="session", message=Note(text="again")))
    assert isinstance(reply, Noted)
    assert await machine.noted() == ("again",)


@asynchronous
async def test_told_mail_keeps_the_order_in_which_it_was_sent() -> None:
    machine = Machine()
    for number in range(200):
        machine.bus.tell("main/session", RelayTell(to="turn", message=Note(text=str(number))))
    await settle()
    assert await machine.noted("main/turn") == tuple(str(number) for number in range(200))


@asynchronous
async def test_event_with_a_route_is_mail_to_every_owner_of_that_role() -> None:
    machine = Machine(routes={Said: "turn"})
    machine.add_seat("side")
    await machine.ask(Say(name="x", texts=("news",)))
    await settle()
    for seat in ("main", "side"):
        assert await machine.noted(f"{seat}/turn") == ("Said",)
        assert await machine.noted(f"{seat}/session") == ()


@asynchronous
async def test_ask_in_the_lane_of_owners_is_never_refused_and_keeps_their_order() -> None:
    machine = Machine()
    await machine.away("main/turn")
    fill = [machine.asking(Note(text="fill"), "main/turn") for _ in range(COMMANDS_MAX)]
    forwarded = machine.asking(RelayForward(to="turn", message=Note(text="forwarded")))
    await settle()
    ordered = asyncio.ensure_future(
        machine.bus.ask_in_order("main/turn", Note(text="ordered"), deadline_s=5)
    )
    await machine.restarted()
    assert await forwarded == Noted(before=(), incarnation=2)
    assert await ordered == Noted(before=("forwarded",), incarnation=2)
    await asyncio.gather(*fill)


@asynchronous
async def test_ask_in_the_lane_of_owners_is_answered_where_nobody_is() -> None:
    machine = Machine()
    reply = await machine.bus.ask_in_order("nobody/turn", Note(text="x"), deadline_s=5)
    assert isinstance(reply, OwnerStopped)
    assert not reply.begun


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_asker_that_is_answered_and_cancelled_at_once_is_closed_once() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="x"))
    await settle()
    answering = machine.asking(AnswerKept())
    answering.add_done_callback(lambda _: asking.cancel())
    assert await answering == Kept(text="")
    await settle()
    assert asking.done()
    assert len(machine.bus.asks) == 0
