"""Owners that fail, are started again, are lost, and are stopped in order."""

from typing import Any

import pytest
from toys import (
    Break,
    DoBeside,
    DoWork,
    KeepAsker,
    Machine,
    Note,
    Noted,
    RelayTell,
    Toy,
    ToyActor,
    WorkDone,
    asynchronous,
    of_kind,
    settle,
    spec,
    toy_step,
    waiting_in,
)

from tenure.messages.base import Message
from tenure.messages.bus import (
    Answered,
    MessageQuarantined,
    OwnerLost,
    OwnerRestarted,
    OwnerStarted,
    OwnerStopped,
)
from tenure.runtime.mailbox import Delivery
from tenure.runtime.owner import Owner
from tenure.runtime.step import Step, Taken
from tenure.runtime.supervisor import (
    BACKOFF_S,
    EFFECTS_END_S,
    QUARANTINE_KEPT_MAX,
    RESTARTS_MAX,
    RESTARTS_WITHIN_S,
)

FIRST, SECOND = "main/session", "main/turn"


class Journal:
    """What owners were given, in order, over all incarnations."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def owner(self, bad_starts: tuple[int, ...] = ()) -> type[Owner]:
        journal = self.messages

        class Writing(Owner):
            first = Toy

            @staticmethod
            def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
                journal.append(message)
                if isinstance(message, OwnerStarted) and message.incarnation in bad_starts:
                    raise RuntimeError("the load cannot even be asked for")
                return toy_step(state, message, taken)

        return Writing


# --- one failure -------------------------------------------------------------------------------


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_first_message_of_every_incarnation_says_that_it_started() -> None:
    journal = Journal()
    machine = Machine(owners={"session": journal.owner()})
    await machine.ask(Note(text="a"))
    await machine.away()
    waiting = machine.asking(Note(text="b"))
    await machine.restarted()
    await waiting
    assert journal.messages == [
        OwnerStarted(incarnation=1),
        Note(text="a"),
        Break(),
        OwnerStarted(incarnation=2),
        Note(text="b"),
    ]


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_answers_and_outcomes_for_the_dead_incarnation_never_reach_its_successor() -> None:
    journal = Journal()
    machine = Machine(owners={"session": journal.owner()})
    answer = Answered(re=Toy(), reply=Noted(before=(), incarnation=1))
    for message in (Break(), answer, WorkDone(text="done"), Note(text="kept")):
        machine.bus.post(FIRST, Delivery(message))
    await machine.restarted()
    assert journal.messages == [
        OwnerStarted(incarnation=1),
        Break(),
        OwnerStarted(incarnation=2),
        Note(text="kept"),
    ]
    assert machine.dead() == [("Answered", "dead_effect"), ("WorkDone", "dead_effect")]


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_restarted_owner_has_nothing_of_the_memory_of_the_dead_one() -> None:
    machine = Machine()
    await machine.ask(Note(text="remembered"))
    await machine.away()
    await machine.restarted()
    assert await machine.ask(Note(text="x")) == Noted(before=(), incarnation=2)


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_step_that_raises_sends_nothing() -> None:
    class Half(Owner):
        first = Toy

        @staticmethod
        def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
            if isinstance(message, Break):
                Step(state).tell("turn", Note(text="half")).do()
                raise RuntimeError("in the middle")
            return toy_step(state, message, taken)

    machine = Machine(owners={"session": Half, "turn": ToyActor})
    await machine.away()
    assert await machine.noted(SECOND) == ()
    assert machine.bench.begun == []


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_message_that_made_a_step_raise_is_quarantined_and_shown() -> None:
    machine = Machine()
    await machine.ask(Break(reason="odd"))
    (found,) = machine.supervisor.quarantine
    assert (found.owner, found.incarnation, found.message, found.reason) == (
        FIRST,
        1,
        Break(reason="odd"),
        "RuntimeError: odd",
    )
    await machine.restarted()
    assert waiting_in(machine.events) == [
        MessageQuarantined(owner=FIRST, message="Break", reason="RuntimeError: odd"),
        OwnerRestarted(owner=FIRST, incarnation=2, reason="RuntimeError: odd"),
    ]


@asynchronous
async def test_quarantine_is_bounded() -> None:
    machine = Machine()
    for number in range(QUARANTINE_KEPT_MAX + 3):
        await machine.ask(Break(reason=str(number)))
        await machine.restarted(RESTARTS_WITHIN_S + 1)
    assert len(machine.supervisor.quarantine) == QUARANTINE_KEPT_MAX
    assert machine.supervisor.quarantine[0].reason == "RuntimeError: 3"


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_quarantined_message_is_not_tried_again() -> None:
    journal = Journal()
    machine = Machine(owners={"session": journal.owner()})
    machine.bus.tell(FIRST, Break())
    machine.bus.tell(FIRST, Note(text="behind"))
    await machine.restarted()
    assert journal.messages.count(Break()) == 1
    assert await machine.noted() == ("behind",)


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_waiting_mail_survives_a_restart_in_its_order() -> None:
    machine = Machine()
    machine.bus.tell(FIRST, Break())
    for number in range(5):
        machine.bus.tell(FIRST, Note(text=str(number)))
    await settle()
    await machine.ask(RelayTell(to="session", message=Note(text="mail")), SECOND)
    assert len(machine.bus.boxes[FIRST].mailbox) == 6
    await machine.restarted()
    assert await machine.noted() == ("mail", "0", "1", "2", "3", "4")
    assert machine.dead() == []


@asynchronous
async def test_owner_in_the_middle_of_a_restart_is_shown_so() -> None:
    machine = Machine()
    await machine.away()
    machine.bus.tell(FIRST, Note(text="waits"))
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert (view.state, view.incarnation, view.restarts, view.waiting) == ("Restarting", 1, 0, 1)
    await machine.restarted()
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert (view.state, view.incarnation, view.restarts, view.waiting) == ("Toy", 2, 1, 0)


@asynchronous
async def test_other_owners_and_seats_are_not_touched_by_a_failure() -> None:
    machine = Machine()
    machine.add_seat("side")
    for place in (SECOND, "side/session"):
        await machine.ask(Note(text="before"), place)
    waiting = machine.asking(KeepAsker(text="x"), "side/session")
    await machine.away()
    for place in (SECOND, "side/session"):
        assert await machine.noted(place) == ("before",)
    await machine.restarted()
    assert not waiting.done()
    view = machine.supervisor.view("side/session")
    assert view is not None
    assert view.incarnation == 1


# --- what must have ended before ---------------------------------------------------------------


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_restart_waits_until_the_effects_of_the_dead_one_have_ended() -> None:
    machine = Machine()
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    await machine.away()
    await machine.advance(EFFECTS_END_S - 0.5)
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert view.state == "Restarting"
    gate.set()
    await machine.restarted()
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert (view.state, view.incarnation) == ("Toy", 2)


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_seat_is_lost_when_the_effects_of_the_dead_one_do_not_end() -> None:
    machine = Machine()
    machine.bench.hold("stuck")
    await machine.ask(DoWork(texts=("stuck",)))
    await machine.away()
    waiting = machine.asking(Note(text="waits"))
    await machine.advance(EFFECTS_END_S + 0.1)
    assert await waiting == OwnerStopped(begun=False, reason="lost: its effects did not end")
    assert {event.owner for event in of_kind(machine.events, OwnerLost)} == {  # type: ignore[attr-defined]
        FIRST,
        SECOND,
    }
    await machine.advance(EFFECTS_END_S + 0.1)
    assert machine.supervisor.addresses == ()
    machine.bench.gates["stuck"].set()
    await settle()


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_restart_lets_go_of_what_the_dead_one_held_before_the_next_one_starts() -> None:
    order: list[str] = []

    async def give_back(seat: str) -> None:
        order.append("let go")

    class Starting(Owner):
        first = Toy

        @staticmethod
        def step(state: Any, message: Message, taken: Taken) -> Step[Any]:
            if isinstance(message, OwnerStarted):
                order.append(f"start {message.incarnation}")
            return toy_step(state, message, taken)

    machine = Machine(owners={"session": Starting}, let_go=give_back)
    gate = machine.bench.hold("door")
    await machine.ask(DoWork(texts=("door",)))
    await machine.away()
    await settle()
    assert order == ["start 1"]
    gate.set()
    await machine.restarted()
    assert order == ["start 1", "let go", "start 2"]


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_restart_cancels_the_concurrent_effects_of_the_dead_one() -> None:
    machine = Machine()
    machine.bench.hold("beside")
    await machine.ask(DoBeside(texts=("beside",)))
    await settle()
    await machine.away()
    await machine.restarted()
    assert machine.bench.ended == ["beside"]
    assert await machine.noted() == ()


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_restarts_back_off() -> None:
    machine = Machine()
    for number in range(RESTARTS_MAX):
        await machine.away()
        backoff_s = BACKOFF_S * 2**number
        await machine.advance(backoff_s * 0.9)
        view = machine.supervisor.view(FIRST)
        assert view is not None
        assert view.state == "Restarting"
        await machine.advance(backoff_s * 0.2)
        view = machine.supervisor.view(FIRST)
        assert view is not None
        assert view.incarnation == number + 2


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_seat_is_lost_over_the_budget_and_the_host_lives() -> None:
    let_go: list[str] = []

    async def give_back(seat: str) -> None:
        let_go.append(seat)

    machine = Machine(let_go=give_back)
    machine.add_seat("side")
    for _ in range(RESTARTS_MAX):
        await machine.away()
        await machine.restarted(0.5)
    assert machine.supervisor.has_seat("main")
    let_go.clear()
    await machine.away()
    await settle()
    assert not machine.supervisor.has_seat("main")
    assert let_go == ["main", "main"]
    losses = of_kind(machine.events, OwnerLost)
    assert [event.owner for event in losses] == [SECOND, FIRST]  # type: ignore[attr-defined]
    assert isinstance(await machine.ask(Note(text="x")), OwnerStopped)
    assert isinstance(await machine.ask(Note(text="x"), "side/session"), Noted)


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_failures_far_apart_do_not_use_up_the_budget() -> None:
    machine = Machine()
    for _ in range(4 * RESTARTS_MAX):
        await machine.away()
        await machine.restarted(RESTARTS_WITHIN_S / RESTARTS_MAX + 0.1)
    assert machine.supervisor.has_seat("main")
    view = machine.supervisor.view(FIRST)
    assert view is not None
    assert view.restarts == 4 * RESTARTS_MAX


@asynchronous
async def test_budget_belongs_to_an_owner_and_not_to_its_seat() -> None:
    machine = Machine()
    for _ in range(RESTARTS_MAX):
        await machine.away(FIRST)
        await machine.away(SECOND)
        await machine.restarted(0.5)
    assert machine.supervisor.has_seat("main")


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_owner_of_the_host_that_is_lost_takes_no_seat_with_it() -> None:
    machine = Machine()
    machine.supervisor.add("", spec("settings"))
    for _ in range(RESTARTS_MAX):
        await machine.away("settings")
        await machine.restarted(0.5)
        assert isinstance(await machine.ask(Note(text="x"), "settings"), Noted)
    await machine.away("settings")
    await settle()
    assert machine.supervisor.addresses == (FIRST, SECOND)
    assert isinstance(await machine.ask(Note(text="x")), Noted)


@asynchronous
async def test_lost_seat_can_be_added_again() -> None:
    machine = Machine()
    for _ in range(RESTARTS_MAX + 1):
        await machine.away()
        await machine.restarted(0.5)
    machine.add_seat("main")
    assert await machine.ask(Note(text="x")) == Noted(before=(), incarnation=1)


# --- starts that fail ----------------------------------------------------------------------------


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_start_that_raises_is_tried_again() -> None:
    journal = Journal()
    machine = Machine(owners={"session": journal.owner(bad_starts=(1, 2))})
    waiting = machine.asking(Note(text="patient"))
    await machine.restarted()
    await machine.restarted()
    assert await waiting == Noted(before=(), incarnation=3)
    starts = [message for message in journal.messages if isinstance(message, OwnerStarted)]
    assert [start.incarnation for start in starts] == [1, 2, 3]


@pytest.mark.witness("SUP-1", "BUS-1")
@asynchronous
async def test_start_that_always_raises_loses_the_seat_and_nobody_waits_for_ever() -> None:
    journal = Journal()
    machine = Machine(owners={"session": journal.owner(bad_starts=tuple(range(100)))})
    waiting = machine.asking(Note(text="patient"))
    for _ in range(RESTARTS_MAX + 1):
        await machine.restarted()
    reply = await waiting
    assert isinstance(reply, OwnerStopped)
    assert not reply.begun
    assert machine.supervisor.addresses == ()
    assert len(machine.supervisor.quarantine) == RESTARTS_MAX + 1
