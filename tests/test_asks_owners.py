"""Asks between owners: the answer is a message, and a forward moves the duty to answer."""

import pytest
from toys import (
    AnswerKept,
    AnswerNothing,
    Break,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    RelayAsk,
    Relayed,
    RelayForward,
    asynchronous,
    settle,
)

from tenure.messages.bus import OwnerStopped

OTHER = "main/turn"


@asynchronous
async def test_owner_that_asks_another_gets_the_answer_as_a_message() -> None:
    machine = Machine()
    reply = await machine.ask(RelayAsk(to="turn", message=Note(text="hi")))
    assert reply == Relayed(reply=Noted(before=(), incarnation=1))


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_owner_that_asks_one_that_dies_or_is_gone_is_answered() -> None:
    machine = Machine()
    broken = await machine.ask(RelayAsk(to="turn", message=Break(reason="odd")))
    assert broken == Relayed(reply=OwnerStopped(begun=True, reason="RuntimeError: odd"))
    await machine.restarted()
    missing = await machine.ask(RelayAsk(to="settings", message=Note(text="x")))
    assert isinstance(missing, Relayed)
    assert isinstance(missing.reply, OwnerStopped)
    assert not missing.reply.begun


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_forward_moves_the_duty_to_answer_to_the_other_owner() -> None:
    machine = Machine()
    asking = machine.asking(RelayForward(to="turn", message=KeepAsker(text="over there")))
    await settle()
    await machine.supervisor.stop("main/session", "its first owner may go")
    assert not asking.done()
    await machine.ask(AnswerKept(), OTHER)
    assert await asking == Kept(text="over there")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_forward_to_an_owner_that_dies_or_is_gone_is_answered() -> None:
    machine = Machine()
    asking = machine.asking(RelayForward(to="turn", message=KeepAsker(text="x")))
    await settle()
    await machine.supervisor.stop(OTHER, "closed")
    assert await asking == OwnerStopped(begun=True, reason="closed")
    gone = await machine.ask(RelayForward(to="turn", message=Note(text="x")))
    assert isinstance(gone, OwnerStopped)
    assert not gone.begun
    assert machine.dead() == []


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_forwarded_message_that_the_other_owner_never_took_was_not_begun() -> None:
    machine = Machine()
    await machine.away(OTHER)
    asking = machine.asking(RelayForward(to="turn", message=Note(text="x")))
    await settle()
    await machine.supervisor.stop(OTHER, "closed")
    assert await asking == OwnerStopped(begun=False, reason="closed")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_forwarded_message_whose_asker_left_never_runs() -> None:
    machine = Machine()
    await machine.away(OTHER)
    asking = machine.asking(RelayForward(to="turn", message=Note(text="forwarded")))
    await settle()
    asking.cancel()
    await machine.restarted()
    assert await machine.noted(OTHER) == ()


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_answer_for_a_dead_incarnation_does_not_reach_its_successor() -> None:
    machine = Machine()
    asking = machine.asking(RelayAsk(to="turn", message=KeepAsker(text="x")))
    await settle()
    await machine.ask(Break())
    await machine.restarted()
    assert isinstance(await asking, OwnerStopped)
    await machine.ask(AnswerKept(), OTHER)
    await settle()
    assert machine.dead() == [("Kept", "late_reply")]
    assert await machine.noted() == ()


@asynchronous
async def test_step_that_gives_no_step_is_a_failure_and_its_asker_is_told() -> None:
    machine = Machine()
    reply = await machine.ask(AnswerNothing())
    assert isinstance(reply, OwnerStopped)
    assert "NoneType" in reply.reason
    await machine.restarted()
    assert await machine.ask(Note(text="x")) == Noted(before=(), incarnation=2)
