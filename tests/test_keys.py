"""Idempotency keys: a repeat gets the first answer, and nothing is done twice."""

import asyncio

from toys import (
    AnswerKept,
    Break,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    asynchronous,
    settle,
)

from tenure.messages.bus import DeadlinePassed, KeyReused, Overloaded, OwnerStopped
from tenure.runtime.keys import ANSWERS_KEPT_MAX
from tenure.runtime.mailbox import COMMANDS_MAX

OTHER = "main/turn"


@asynchronous
async def test_repeat_of_a_key_gets_the_first_answer_and_is_not_done_again() -> None:
    machine = Machine()
    first = await machine.ask(Note(text="a", idempotency_key="k"))
    await machine.ask(Note(text="b"))
    assert await machine.ask(Note(text="a", idempotency_key="k")) == first
    assert await machine.noted() == ("a", "b")


@asynchronous
async def test_repeat_of_a_key_in_flight_joins_it() -> None:
    machine = Machine()
    asks = [machine.asking(KeepAsker(text="x", idempotency_key="k")) for _ in range(3)]
    await settle()
    await machine.ask(AnswerKept())
    assert await asyncio.gather(*asks) == [Kept(text="x")] * 3
    assert machine.dead() == []


@asynchronous
async def test_key_with_other_content_is_refused_in_flight_and_afterwards() -> None:
    machine = Machine()
    refusal = KeyReused(idempotency_key="k")
    first = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await settle()
    assert await machine.ask(KeepAsker(text="y", idempotency_key="k")) == refusal
    assert await machine.ask(Note(text="x", idempotency_key="k")) == refusal
    await machine.ask(AnswerKept())
    assert await first == Kept(text="x")
    assert await machine.ask(KeepAsker(text="y", idempotency_key="k")) == refusal


@asynchronous
async def test_keys_belong_to_an_address() -> None:
    machine = Machine()
    await machine.ask(Note(text="a", idempotency_key="k"))
    await machine.ask(Note(text="b", idempotency_key="k"), OTHER)
    assert (await machine.noted(), await machine.noted(OTHER)) == (("a",), ("b",))


@asynchronous
async def test_key_is_not_remembered_when_the_owner_stopped() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await settle()
    await machine.ask(Break())
    assert isinstance(await asking, OwnerStopped)
    await machine.restarted()
    again = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await settle()
    await machine.ask(AnswerKept())
    assert await again == Kept(text="x")


@asynchronous
async def test_key_is_not_remembered_when_the_lane_was_full_or_nobody_is_there() -> None:
    machine = Machine()
    fill = [machine.asking(Note(text="fill")) for _ in range(COMMANDS_MAX)]
    keyed = machine.asking(Note(text="a", idempotency_key="k"))
    assert isinstance(await keyed, Overloaded)
    await asyncio.gather(*fill)
    assert isinstance(await machine.ask(Note(text="a", idempotency_key="k")), Noted)
    gone = await machine.ask(Note(text="a", idempotency_key="k"), "side/session")
    assert isinstance(gone, OwnerStopped)
    machine.add_seat("side")
    assert isinstance(await machine.ask(Note(text="a", idempotency_key="k"), "side/session"), Noted)


@asynchronous
async def test_key_whose_command_was_not_begun_in_time_is_free_and_the_command_never_runs() -> None:
    machine = Machine()
    await machine.away()
    early = asyncio.ensure_future(
        machine.bus.ask("main/session", Note(text="early", idempotency_key="k"), deadline_s=0.01)
    )
    await machine.advance(0.02)
    assert await early == DeadlinePassed(begun=False)
    await machine.restarted()
    await machine.ask(Note(text="other", idempotency_key="k"))
    assert await machine.noted() == ("other",)


@asynchronous
async def test_key_whose_command_was_begun_is_not_done_twice_after_its_deadline() -> None:
    machine = Machine()
    first = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await machine.advance(10.1)
    assert await first == DeadlinePassed(begun=True)
    again = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await settle()
    await machine.ask(AnswerKept())
    assert await again == Kept(text="x")
    assert machine.dead() == []  # it was taken once, and its one answer was wanted
    assert await machine.ask(KeepAsker(text="x", idempotency_key="k")) == Kept(text="x")


@asynchronous
async def test_cancelled_first_asker_does_not_cancel_the_others() -> None:
    machine = Machine()
    await machine.away()
    first = machine.asking(Note(text="a", idempotency_key="k"))
    second = machine.asking(Note(text="a", idempotency_key="k"))
    await settle()
    first.cancel()
    await machine.restarted()
    assert await second == Noted(before=(), incarnation=2)
    assert await machine.noted() == ("a",)


@asynchronous
async def test_deadline_of_one_asker_of_a_key_is_not_that_of_the_others() -> None:
    machine = Machine()
    command = KeepAsker(text="x", idempotency_key="k")
    short = asyncio.ensure_future(machine.bus.ask("main/session", command, deadline_s=1))
    long = asyncio.ensure_future(machine.bus.ask("main/session", command, deadline_s=100))
    await machine.advance(2)
    assert await short == DeadlinePassed(begun=True)
    await machine.ask(AnswerKept())
    assert await long == Kept(text="x")


@asynchronous
async def test_command_with_a_key_never_runs_when_the_last_asker_left_before_it_began() -> None:
    machine = Machine()
    await machine.away()
    asks = [machine.asking(Note(text="a", idempotency_key="k")) for _ in range(2)]
    await settle()
    for ask in asks:
        ask.cancel()
    await machine.restarted()
    assert await machine.noted() == ()
    await machine.ask(Note(text="b", idempotency_key="k"))
    assert await machine.noted() == ("b",)


@asynchronous
async def test_answer_to_a_key_is_kept_when_every_asker_left_after_it_began() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="x", idempotency_key="k"))
    await settle()
    asking.cancel()
    await settle()
    await machine.ask(AnswerKept())
    assert await machine.ask(KeepAsker(text="x", idempotency_key="k")) == Kept(text="x")


@asynchronous
async def test_oldest_answers_of_keys_are_forgotten_first() -> None:
    machine = Machine()
    for number in range(ANSWERS_KEPT_MAX + 1):
        await machine.ask(Note(text="a", idempotency_key=str(number)))
    await machine.ask(Note(text="b", idempotency_key=str(ANSWERS_KEPT_MAX)))
    await machine.ask(Note(text="c", idempotency_key="0"))
    assert (await machine.noted())[ANSWERS_KEPT_MAX + 1 :] == ("c",)


@asynchronous
async def test_key_works_for_content_that_no_codec_takes() -> None:
    machine = Machine()
    text = "a lone surrogate \ud800"
    first = await machine.ask(Note(text=text, idempotency_key="k"))
    assert await machine.ask(Note(text=text, idempotency_key="k")) == first
    other = await machine.ask(Note(text=text + "!", idempotency_key="k"))
    assert other == KeyReused(idempotency_key="k")
