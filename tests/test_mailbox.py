"""The three lanes of a mailbox: what overtakes, what is bounded, what is joined."""

import asyncio

import pytest
from toys import (
    Kept,
    Machine,
    Note,
    Noted,
    NoteUrgently,
    RelayAsk,
    RelayedFor,
    RelayForward,
    RelayTell,
    WorkDone,
    WorkMoved,
    asynchronous,
)

from tenure.messages.base import Command, Message
from tenure.messages.bus import Answered, Overloaded, OwnerStopped
from tenure.messages.content import AssistantMessage
from tenure.messages.tokens import TurnId
from tenure.messages.turn import StopTurn
from tenure.messages.turn_effects import ModelCallDone, ModelDelta
from tenure.runtime.mailbox import COMMANDS_MAX, OTHERS_RUN_MAX, Delivery, Mailbox
from tenure.runtime.system import TAKEN_BY


def note(text: str) -> Delivery:
    return Delivery(Note(text=text))


def taken(mailbox: Mailbox) -> list[Message]:
    return [delivery.message for delivery in mailbox.take_all()]


@pytest.mark.witness("BUS-2")
def test_lanes_are_served_control_first_then_owners_then_commands() -> None:
    mailbox = Mailbox()
    mailbox.put_command(note("command"))
    mailbox.put_owner_mail(note("owner"))
    mailbox.put_control(note("control"))
    assert taken(mailbox) == [Note(text="control"), Note(text="owner"), Note(text="command")]


def test_each_lane_is_first_in_first_out() -> None:
    mailbox = Mailbox()
    for lane in (mailbox.put_command, mailbox.put_owner_mail, mailbox.put_control):
        for text in ("1", "2", "3"):
            lane(note(text))
    assert taken(mailbox) == [Note(text=text) for _ in range(3) for text in ("1", "2", "3")]


@pytest.mark.witness("BUS-2")
def test_command_lane_is_bounded_and_says_how_many_wait() -> None:
    mailbox = Mailbox()
    answers = {mailbox.put_command(note(str(number))) for number in range(COMMANDS_MAX)}
    assert answers == {0}
    assert mailbox.put_command(note("one more")) == COMMANDS_MAX
    assert mailbox.commands_waiting == len(mailbox) == COMMANDS_MAX
    mailbox.take()
    assert mailbox.put_command(note("room again")) == 0


@pytest.mark.witness("BUS-2")
def test_owner_mail_is_never_refused() -> None:
    mailbox = Mailbox()
    for number in range(3 * COMMANDS_MAX):
        mailbox.put_owner_mail(note(str(number)))
    assert len(mailbox) == 3 * COMMANDS_MAX
    assert mailbox.put_command(note("a command has its own lane")) == 0


@pytest.mark.witness("BUS-2")
@pytest.mark.parametrize("lane", ["owner", "control"])
def test_command_is_served_at_least_every_64_messages(lane: str) -> None:
    mailbox = Mailbox()
    put = mailbox.put_owner_mail if lane == "owner" else mailbox.put_control
    for number in range(1_000):
        put(note(str(number)))
    for number in range(10):
        mailbox.put_command(Delivery(Kept(text=str(number))))
    places = [place for place, message in enumerate(taken(mailbox)) if isinstance(message, Kept)]
    assert places == [OTHERS_RUN_MAX + 64 * number for number in range(10)]


@pytest.mark.witness("BUS-2")
def test_stop_overtakes_a_command_however_much_came_before_it() -> None:
    mailbox = Mailbox()
    for number in range(1_000):  # a long stream, while no command waits
        mailbox.put_owner_mail(note(str(number)))
        mailbox.take()
    mailbox.put_command(note("command"))
    mailbox.put_control(note("control"))
    assert taken(mailbox) == [Note(text="control"), Note(text="command")]


@pytest.mark.witness("BUS-2")
def test_progress_that_waits_is_joined_and_nothing_of_it_is_lost() -> None:
    mailbox = Mailbox()
    for text in "abc":
        mailbox.put_owner_mail(Delivery(WorkMoved(text=text)))
    mailbox.put_owner_mail(Delivery(WorkDone(text="x")))
    mailbox.put_owner_mail(Delivery(WorkMoved(text="d")))
    assert taken(mailbox) == [WorkMoved(text="abc"), WorkDone(text="x"), WorkMoved(text="d")]


@pytest.mark.witness("BUS-2")
def test_commands_are_never_joined() -> None:
    mailbox = Mailbox()
    for put in (mailbox.put_command, mailbox.put_owner_mail, mailbox.put_control):
        put(note("same"))
        put(note("same"))
    assert taken(mailbox) == [Note(text="same")] * 6


def test_deltas_of_one_model_call_are_joined_and_others_are_not() -> None:
    mailbox = Mailbox()
    turn, other = TurnId("s/1"), TurnId("s/2")
    deltas = [
        ModelDelta(turn_id=turn, call=1, kind="text", text="a"),
        ModelDelta(turn_id=turn, call=1, kind="text", text="b"),
        ModelDelta(turn_id=turn, call=1, kind="thinking", text="c"),
        ModelDelta(turn_id=turn, call=2, kind="thinking", text="d"),
        ModelDelta(turn_id=other, call=2, kind="thinking", text="e"),
    ]
    for delta in deltas:
        mailbox.put_owner_mail(Delivery(delta))
    assert taken(mailbox) == [ModelDelta(turn_id=turn, call=1, kind="text", text="ab"), *deltas[2:]]


def test_outcome_that_ends_a_call_is_not_joined_to_its_progress() -> None:
    delta = ModelDelta(turn_id=TurnId("s/1"), call=1, kind="text", text="a")
    done = ModelCallDone(
        turn_id=TurnId("s/1"),
        call=1,
        message=AssistantMessage(content=(), provider="p", model="m", api="a", timestamp=0),
    )
    assert delta.joined(done) is None
    assert done.joined(delta) is None


def test_answers_that_wait_are_not_joined() -> None:
    mailbox = Mailbox()
    for _ in range(2):
        mailbox.put_owner_mail(
            Delivery(Answered(re=RelayedFor(None), reply=OwnerStopped(begun=False)))
        )
    assert len(mailbox) == 2


def test_mailbox_that_is_folded_takes_mail_again() -> None:
    mailbox = Mailbox()
    mailbox.put_command(note("a"))
    mailbox.take()
    mailbox.fold()
    assert (len(mailbox), mailbox.commands_waiting, mailbox.take()) == (0, 0, None)
    mailbox.put_owner_mail(note("b"))
    assert taken(mailbox) == [Note(text="b")]


def test_only_a_stop_that_names_its_turn_is_a_control_message() -> None:
    commands = [command for command in TAKEN_BY if command.control]
    assert commands == [StopTurn]
    assert "turn_id" in StopTurn.__struct_fields__
    assert StopTurn.__struct_defaults__ == ("user",)  # the id has no default


# --- through the bus ---------------------------------------------------------------------------


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_control_message_overtakes_what_waits_and_is_not_refused_by_a_full_lane() -> None:
    machine = Machine()
    await machine.away()
    waiting = [machine.asking(Note(text=str(number))) for number in range(COMMANDS_MAX)]
    full = machine.asking(Note(text="one more"))
    urgent = machine.asking(NoteUrgently(text="urgent"))
    assert isinstance(await full, Overloaded)
    await machine.restarted()
    assert await urgent == Noted(before=(), incarnation=2)
    await asyncio.gather(*waiting)
    assert (await machine.noted())[:2] == ("urgent", "0")


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_mail_between_owners_reaches_an_owner_whose_command_lane_is_full() -> None:
    machine = Machine()
    await machine.away("main/turn")
    fill = [machine.asking(Note(text="fill"), "main/turn") for _ in range(COMMANDS_MAX)]
    told = await machine.ask(RelayTell(to="turn", message=Note(text="told")))
    asked = machine.asking(RelayAsk(to="turn", message=Note(text="asked")))
    forwarded = machine.asking(RelayForward(to="turn", message=Note(text="forwarded")))
    await machine.restarted()
    assert told == Kept(text="told")
    assert isinstance(await forwarded, Noted)
    await asked
    await asyncio.gather(*fill)
    assert (await machine.noted("main/turn"))[:3] == ("told", "asked", "forwarded")


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_flood_of_owner_mail_does_not_starve_those_who_wait() -> None:
    machine = Machine()
    await machine.away()
    box = machine.bus.boxes["main/session"]
    for number in range(1_000):
        machine.bus.post("main/session", Delivery(WorkDone(text=str(number))))
    asking = machine.asking(Note(text="command"))
    await machine.restarted()
    reply = await asking
    assert isinstance(reply, Noted)
    assert len(reply.before) == OTHERS_RUN_MAX
    assert len(box.mailbox) == 0


@asynchronous
async def test_idle_mailbox_keeps_no_lanes() -> None:
    machine = Machine()
    await machine.noted()
    mailbox = machine.bus.boxes["main/session"].mailbox
    assert (mailbox._control, mailbox._owner, mailbox._commands) == (None, None, None)


@asynchronous
async def test_owner_gives_others_their_turn_after_its_share_of_messages() -> None:
    machine = Machine(drain_max=4)
    order: list[str] = []

    async def ask(command: Command, to: str) -> None:
        await machine.bus.ask(to, command)
        order.append(to)

    asks = [ask(Note(text="x"), "main/session") for _ in range(12)]
    asks += [ask(Note(text="x"), "main/turn") for _ in range(4)]
    await asyncio.gather(*asks)
    assert order[:8] == ["main/session"] * 4 + ["main/turn"] * 4
