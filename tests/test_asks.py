"""Whoever asks is answered exactly once, whatever becomes of the owner or of the asker."""

import asyncio
from collections import Counter

import pytest
from toys import (
    AnswerKept,
    AnswerTwice,
    Break,
    DoWork,
    KeepAsker,
    Kept,
    Machine,
    Note,
    Noted,
    NoteUrgently,
    RelayAsk,
    RelayForward,
    SetState,
    asynchronous,
    settle,
)

from tenure.messages.base import Reply
from tenure.messages.bus import DeadlinePassed, Overloaded, OwnerStopped, Unhandled
from tenure.runtime.asks import CLOSED_KEPT_MAX, Asks
from tenure.runtime.mailbox import COMMANDS_MAX
from tenure.runtime.step import AskId
from tenure.runtime.testing.clock import ManualClock

OTHER = "main/turn"


# --- replies and refusals ------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_ask_is_answered_with_the_reply_of_the_step() -> None:
    machine = Machine()
    assert await machine.ask(Note(text="a")) == Noted(before=(), incarnation=1)
    assert await machine.ask(Note(text="b")) == Noted(before=("a",), incarnation=1)
    assert len(machine.bus.asks) == 0


@asynchronous
async def test_answer_may_come_many_messages_later() -> None:
    machine = Machine()
    first = machine.asking(KeepAsker(text="first"))
    second = machine.asking(KeepAsker(text="second"))
    await machine.ask(Note(text="between"))
    assert not first.done()
    await machine.ask(AnswerKept())
    assert (await first, await second) == (Kept(text="first"), Kept(text="second"))


@asynchronous
async def test_command_that_no_step_takes_is_answered_too() -> None:
    machine = Machine()
    assert await machine.ask(SetState(text="x")) == Unhandled(message="SetState")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_ask_of_an_address_that_nobody_has_is_answered_at_once() -> None:
    machine = Machine()
    reply = await machine.ask(Note(text="a"), "nobody/session")
    assert isinstance(reply, OwnerStopped)
    assert not reply.begun
    assert "nobody/session" in reply.remedy
    assert len(machine.bus.asks) == 0


@pytest.mark.witness("BUS-1", "BUS-2")
@asynchronous
async def test_full_lane_refuses_with_overloaded_and_takes_nothing() -> None:
    machine = Machine()
    waiting = [machine.asking(Note(text=str(number))) for number in range(COMMANDS_MAX + 5)]
    replies = await asyncio.gather(*waiting)
    refused = [reply for reply in replies if isinstance(reply, Overloaded)]
    assert refused == [Overloaded(waiting=COMMANDS_MAX)] * 5
    assert all(isinstance(reply, Noted) for reply in replies[:COMMANDS_MAX])
    assert len(await machine.noted()) == COMMANDS_MAX
    assert len(machine.bus.asks) == 0


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_second_answer_to_one_ask_is_a_dead_letter() -> None:
    machine = Machine()
    assert await machine.ask(AnswerTwice()) == Kept(text="first")
    assert machine.dead() == [("Kept", "late_reply")]
    assert machine.bus.dead_letters_count["late_reply"] == 1


# --- deadlines -----------------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_deadline_of_an_ask_that_was_not_begun_means_that_it_never_runs() -> None:
    machine = Machine()
    await machine.away()
    patient = machine.asking(Note(text="in time"))
    short = asyncio.ensure_future(
        machine.bus.ask("main/session", Note(text="too late"), deadline_s=0.01)
    )
    await machine.advance(0.02)
    assert await short == DeadlinePassed(begun=False)
    await machine.restarted()
    assert isinstance(await patient, Noted)
    assert await machine.noted() == ("in time",)


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_owner_that_forgets_its_asker_is_ended_by_the_deadline() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="kept"))
    await machine.advance(9.9)
    assert not asking.done()
    await machine.advance(0.2)
    assert await asking == DeadlinePassed(begun=True)
    assert "look before you repeat it" in (await asking).remedy  # type: ignore[attr-defined]


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_answer_after_the_deadline_is_a_dead_letter_and_harms_nobody() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="slow"))
    await machine.advance(11)
    assert await asking == DeadlinePassed(begun=True)
    assert await machine.ask(AnswerKept()) == Kept(text="")
    assert machine.dead() == [("Kept", "late_reply")]


@asynchronous
async def test_deadlines_pass_in_their_own_order_whatever_the_order_of_asking() -> None:
    machine = Machine()
    order: list[float] = []

    async def ask(deadline_s: float | None) -> None:
        reply = await machine.bus.ask("main/session", KeepAsker(text="x"), deadline_s=deadline_s)
        assert isinstance(reply, DeadlinePassed)
        order.append(deadline_s or 0)

    asks = [asyncio.ensure_future(ask(seconds)) for seconds in (5.0, 1.0, 3.0, 0.5, 4.0)]
    for _ in range(12):
        await machine.advance(0.5)
    assert order == [0.5, 1.0, 3.0, 4.0, 5.0]
    await asyncio.gather(*asks)


@asynchronous
async def test_ask_without_a_deadline_waits_for_ever() -> None:
    machine = Machine()
    asking = asyncio.ensure_future(
        machine.bus.ask("main/session", KeepAsker(text="x"), deadline_s=None)
    )
    await machine.advance(1_000_000)
    assert not asking.done()
    await machine.ask(AnswerKept())
    assert await asking == Kept(text="x")


@asynchronous
async def test_closed_asks_leave_no_deadlines_behind() -> None:
    def late(to: str, reply: Reply) -> None:
        raise AssertionError(reply)

    asks = Asks(ManualClock(), late)
    for _ in range(5 * CLOSED_KEPT_MAX):
        asks.drop(asks.open(lambda reply: None, "a", 30.0))
    assert len(asks) == 0
    assert len(asks._deadlines) <= CLOSED_KEPT_MAX + 1
    asks.close()


# --- the asker goes ------------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_what_a_cancelled_asker_wanted_never_runs_when_it_had_not_begun() -> None:
    machine = Machine()
    await machine.away()
    asking = machine.asking(Note(text="gone"))
    await settle()
    asking.cancel()
    await machine.restarted()
    assert await machine.noted() == ()
    assert asking.cancelled()
    assert len(machine.bus.asks) == 0


@asynchronous
async def test_cancel_of_an_asker_whose_message_was_begun_undoes_nothing() -> None:
    machine = Machine()
    asking = machine.asking(KeepAsker(text="gone"))
    await settle()
    asking.cancel()
    await settle()
    assert await machine.ask(AnswerKept()) == Kept(text="")
    assert machine.dead() == [("Kept", "late_reply")]


@pytest.mark.parametrize("way", ["answer", "owner ended", "host closed", "deadline"])
@asynchronous
async def test_asker_that_was_cancelled_a_moment_ago_disturbs_nobody_who_answers(way: str) -> None:
    late: list[Reply] = []
    clock = ManualClock()
    asks = Asks(clock, lambda to, reply: late.append(reply))
    gone: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    stays: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    ids = [asks.open(future.set_result, "owner", 1.0) for future in (gone, stays)]
    gone.cancel()  # its task has not been resumed, and has not dropped the ask
    match way:
        case "answer":
            for ask_id in ids:
                asks.answer(ask_id, Kept(text="x"))
            assert late == [Kept(text="x")]
        case "owner ended":
            asks.owner_ended("owner", "stopped", waiting=True)
        case "host closed":
            asks.close()
        case "deadline":
            await settle()
            clock.advance(2)
            await settle()
    assert await stays
    assert len(asks) == 0
    asks.close()


# --- the owner goes ------------------------------------------------------------------------


@pytest.mark.witness("BUS-1", "SUP-1")
@asynchronous
async def test_restart_answers_what_was_taken_and_keeps_what_waits() -> None:
    machine = Machine()
    taken = machine.asking(KeepAsker(text="taken"))
    await settle()
    broken = machine.asking(Break(reason="odd"))
    waiting = machine.asking(Note(text="waits"))
    await settle()
    assert await taken == OwnerStopped(begun=True, reason="RuntimeError: odd")
    assert await broken == OwnerStopped(begun=True, reason="RuntimeError: odd")
    assert not waiting.done()
    await machine.restarted()
    assert await waiting == Noted(before=(), incarnation=2)


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_stop_answers_what_was_taken_and_what_waits() -> None:
    machine = Machine()
    taken = machine.asking(KeepAsker(text="taken"))
    await settle()
    waiting = machine.asking(Note(text="waits"))
    await asyncio.sleep(0)
    await machine.supervisor.stop("main/session", "closed by hand")
    assert await taken == OwnerStopped(begun=True, reason="closed by hand")
    assert await waiting == OwnerStopped(begun=False, reason="closed by hand")
    assert len(machine.bus.asks) == 0


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_ask_while_a_stop_waits_for_effects_is_answered() -> None:
    machine = Machine()
    gate = machine.bench.hold("slow")
    await machine.ask(DoWork(texts=("slow",)))
    stopping = asyncio.ensure_future(machine.supervisor.stop("main/session", "closed"))
    await settle()
    assert await machine.ask(Note(text="late")) == OwnerStopped(begun=False, reason="closed")
    gate.set()
    await stopping
    reply = await machine.ask(Note(text="later"))
    assert isinstance(reply, OwnerStopped)


@pytest.mark.witness("BUS-1", "SUP-1")
@asynchronous
async def test_loss_of_the_seat_answers_everybody_who_waits_for_any_of_its_owners() -> None:
    machine = Machine()
    at_turn = machine.asking(KeepAsker(text="at the turn"), OTHER)
    await settle()
    for _ in range(3):
        await machine.ask(Break())
        await machine.restarted()
    at_session = machine.asking(KeepAsker(text="at the session"))
    await settle()
    last = machine.asking(Break(reason="enough"))
    behind = machine.asking(Note(text="behind it"))
    await settle()
    for ask, begun in ((at_turn, True), (at_session, True), (last, True), (behind, False)):
        reply = await ask
        assert isinstance(reply, OwnerStopped)
        assert reply.begun is begun
        assert "enough" in reply.reason
    assert len(machine.bus.asks) == 0


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_of_the_bus_answers_everybody() -> None:
    machine = Machine()
    taken = machine.asking(KeepAsker(text="taken"))
    keyed = machine.asking(KeepAsker(text="keyed", idempotency_key="k"))
    await settle()
    machine.bus.close()
    assert await taken == OwnerStopped(begun=True, reason="the host is closed")
    assert await keyed == OwnerStopped(begun=True, reason="the host is closed")
    assert machine.dead() == []


@asynchronous
async def test_end_of_one_owner_answers_nobody_who_waits_for_another() -> None:
    machine = Machine()
    machine.add_seat("side")
    here = machine.asking(KeepAsker(text="here"))
    there = machine.asking(KeepAsker(text="there"), "side/session")
    await settle()
    await machine.supervisor.stop_seat("main", "closed")
    assert isinstance(await here, OwnerStopped)
    assert not there.done()
    await machine.ask(AnswerKept(), "side/session")
    assert await there == Kept(text="there")


# --- by chance -------------------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@pytest.mark.parametrize("seed", range(6))
def test_every_ask_is_answered_whatever_happens_around_it(seed: int) -> None:
    import random

    chance = random.Random(seed)

    @asynchronous
    async def run() -> None:
        machine = Machine()
        machine.add_seat("side")
        places = ["main/session", "main/turn", "side/session", "side/turn", "nobody/turn"]
        asks: list[asyncio.Task[Reply]] = []
        answers: Counter[int] = Counter()
        for number in range(400):
            command = chance.choice(
                [
                    Note(text=str(number)),
                    NoteUrgently(text=str(number)),
                    KeepAsker(text=str(number)),
                    Note(text="same", idempotency_key=f"k{number % 7}"),
                    KeepAsker(text="same", idempotency_key=f"kept{number % 5}"),
                    RelayAsk(to="turn", message=Note(text="relayed")),
                    RelayForward(to="turn", message=KeepAsker(text="forwarded")),
                    AnswerKept(),
                    AnswerTwice(),
                ]
            )
            if chance.random() < 0.02:
                command = Break()
            ask = machine.asking(command, chance.choice(places))
            ask.add_done_callback(lambda ask: answers.update([id(ask)]))
            asks.append(ask)
            if chance.random() < 0.1:
                chance.choice(asks).cancel()
            if chance.random() < 0.2:
                await machine.advance(chance.choice([0, 0.04, 0.2, 2]))
        await machine.supervisor.stop_seat("side", "closed")
        await machine.advance(60)
        assert [ask for ask in asks if not ask.done()] == []
        assert answers == Counter({id(ask): 1 for ask in asks})
        await machine.supervisor.stop_seat("main", "closed")
        assert len(machine.bus.asks) == 0

    run()


def test_ask_ids_are_never_used_twice() -> None:
    @asynchronous
    async def run() -> None:
        asks = Asks(ManualClock(), lambda to, reply: None)
        seen: set[AskId] = set()
        for _ in range(100):
            ask_id = asks.open(lambda reply: None, "a", None)
            assert ask_id not in seen
            seen.add(ask_id)
            asks.drop(ask_id)

    run()
