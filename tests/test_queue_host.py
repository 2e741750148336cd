"""The queue on a whole host: on the disk, over stops, swaps, crashes and restarts."""

from typing import Any

import pytest
from seat_world import Counted, Gate, Seated, crash, seated, use

from tenure.messages.content import text_of
from tenure.messages.queue import (
    GetQueue,
    NothingToResume,
    PromptDelivered,
    PromptGone,
    PromptReturned,
    PromptSuspended,
    QueueItem,
    QueueView,
    RedirectTurn,
    ResumeTurn,
)
from tenure.messages.session import ParkSeat, SeatBusy, SeatParked, SessionOpened, Stale, StartTurn
from tenure.messages.session_ops import RewindSession, SessionRewound
from tenure.messages.turn import TurnAccepted, TurnEnded, TurnQueued, TurnStopping
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.errors import Refused


def items(s: Seated) -> tuple[QueueItem, ...]:
    view = s.ask(GetQueue())
    assert isinstance(view, QueueView)
    return view.items


def texts(s: Seated) -> list[str]:
    return [item.text for item in items(s)]


def waiting(s: Seated, *prompts: str) -> None:
    for text in prompts:
        assert isinstance(s.do(s.seat.queue.add(text)), TurnQueued)


def shown(model: Scripted, number: int) -> list[str]:
    """What the user had said when the model was called for the n-th time."""
    messages = model.requests[number].messages
    return [text_of(each) for each in messages if type(each).__name__ == "UserMessage"]  # type: ignore[arg-type]


def busy(gate: Gate, *answers: Any) -> tuple[Scripted, Counted]:
    """A model whose first answer calls a tool that waits at the gate."""
    return Scripted([[use("c1")], *answers]), Counted(gate=gate, mutating=False)


def test_steer_reaches_the_model_behind_the_running_tool_and_follow_up_behind_the_answer() -> None:
    gate = Gate()
    model, tool = busy(gate, "one", "two")
    with seated(model=model, tools=[tool.tool]) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        assert isinstance(s.do(s.seat.follow_up("and then")), TurnQueued)
        assert isinstance(s.do(s.seat.steer("look there")), TurnQueued)
        gate.open()
        s.world.run(turn)
        assert shown(model, 1) == ["go", "look there"]
        assert shown(model, 2) == ["go", "look there", "and then"]
        assert s.told() == [
            "user",
            "assistant c1",
            "result c1",
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        assert [each.text for each in s.said(PromptDelivered)] == ["look there", "and then"]
        assert s.ends() == [("end_turn", None)]


@pytest.mark.witness("TURN-5")
def test_redirects_stop_the_turn_and_are_said_in_their_order() -> None:
    gate = Gate()
    with seated(model=Scripted([["no", gate, "x"], ["one"], ["two"], ["three"]])) as s:
        first = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        replies = [
            s.world.tell(s.host, RedirectTurn(text=text)) for text in ("no, this", "no, that")
        ]
        s.world.run(first)
        s.settle()
        assert all(isinstance(each.result(), TurnQueued) for each in replies)
        said = [line["message"]["content"] for line in s.lines() if _by_user(line)]
        assert [content[0]["text"] for content in said] == ["go", "no, this", "no, that"]
        assert s.ends()[-1] == ("end_turn", None)
        assert {cause for reason, cause in s.ends() if reason == "stopped"} == {"redirect"}


def _by_user(line: Any) -> bool:
    return "message" in line and line["message"]["role"] == "user"


def test_redirect_gives_the_events_of_its_own_turn() -> None:
    gate = Gate()
    with seated(model=Scripted([[gate, "x"], ["done"]])) as s:
        first = s.prompt("go")
        s.until(lambda: gate.reached == 1)

        async def redirect() -> list[Any]:
            return [event async for event in s.seat.redirect("other")]

        events = s.do(redirect())
        assert (type(events[-1]), events[-1].stop_reason) == (TurnEnded, "end_turn")
        s.world.run(first)


@pytest.mark.witness("TURN-3")
def test_stop_gives_back_what_waited_and_the_file_says_so() -> None:
    gate = Gate()
    model, tool = busy(gate, "next")
    with seated(model=model, tools=[tool.tool]) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "a", "b")
        stopping = s.do(s.seat.stop())
        assert isinstance(stopping, TurnStopping)
        assert stopping.dropped == ("a", "b")
        s.world.run(turn)
        s.settle()
        fates = [line["data"] for line in s.lines() if line.get("customType") == "tenure/queue"]
        assert [each.get("fate") for each in fates if each["op"] == "gone"] == ["returned"] * 2
        s.run("next")
        assert shown(model, 1) == ["go", "next"]


@pytest.mark.witness("TURN-10")
def test_queue_of_a_killed_host_is_held_and_starts_only_when_it_is_released() -> None:
    gate = Gate()
    model = Scripted([[gate, "never"], ["again"], ["one"], ["two"]])
    with seated(model=model) as s:
        s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "first", "second")
        session_id = s.seat.token.session_id
        s.host.kill()
        host = s.world.host(model=model)
        s.host = host
        s.seat = s.world.run(host.seat(session=session_id))
        s.settle()
        assert [(item.text, item.standing) for item in items(s)] == [
            ("first", "held"),
            ("second", "held"),
        ]
        assert len(model.requests) == 1
        assert len(s.said(PromptSuspended)) == 2
        view = s.do(s.seat.session())
        assert view.interrupted is not None

        async def resume() -> list[Any]:
            return [event async for event in s.seat.resume()]

        assert s.do(resume())[-1].stop_reason == "end_turn"
        assert shown(model, 1) == ["go"]
        assert s.do(s.seat.session()).interrupted is None
        assert texts(s) == ["first", "second"]
        s.do(s.seat.queue.release())
        s.do(s.seat.wait_idle())
        assert shown(model, 3) == ["go", "first", "second"]
        assert items(s) == ()


@pytest.mark.witness("TURN-10")
def test_prompt_that_was_said_waits_no_more_in_the_next_process() -> None:
    gate = Gate()
    model = Scripted([[gate, "went"], ["one"]])
    with seated(model=model) as s:
        s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "first")
        gate.open()
        s.do(s.seat.wait_idle())
        session_id = s.seat.token.session_id
        s.host.kill()
        s.host = s.world.host(model=model)
        s.seat = s.world.run(s.host.seat(session=session_id))
        s.settle()
        assert items(s) == ()
        assert s.said(PromptSuspended) == []


def test_nothing_is_resumed_where_the_user_stopped_the_turn() -> None:
    gate = Gate()
    model, tool = busy(gate)
    with seated(model=model, tools=[tool.tool]) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        s.do(s.seat.stop())
        s.world.run(turn)
        session_id = s.seat.token.session_id
        s.world.run(s.host.close())
        s.host = s.world.host(model=model)
        s.seat = s.world.run(s.host.seat(session=session_id))
        assert s.do(s.seat.session()).interrupted is None
        assert s.ask(ResumeTurn()) == NothingToResume()


@pytest.mark.witness("TURN-10")
def test_queue_survives_a_turn_owner_that_fails_and_is_held() -> None:
    gate = Gate()
    with seated(model=Scripted([[gate, "x"], ["done"]])) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "later")
        crash(s, "turn")
        s.ask(GetQueue())
        s.world.run(turn)
        s.settle()
        assert [(item.text, item.standing) for item in items(s)] == [("later", "held")]


def test_queue_survives_a_session_owner_that_fails_and_is_held() -> None:
    gate = Gate()
    with seated(model=Scripted([[gate, "x"], ["done"]])) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "later")
        crash(s, "session")
        s.ask(ResumeTurn())
        gate.open()
        s.world.run(turn)
        s.settle()
        assert [(item.text, item.standing) for item in items(s)] == [("later", "held")]


@pytest.mark.witness("TURN-5")
def test_swap_gives_the_queue_back_and_the_old_file_says_so() -> None:
    gate = Gate()
    with seated(model=Scripted([[gate, "x"], ["done"]])) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "later")
        old = s.seat.token.session_id
        opened = s.do(s.seat.new())
        assert isinstance(opened, SessionOpened)
        assert opened.dropped == ("later",)
        s.world.run(turn)
        s.settle()
        assert [each.text for each in s.said(PromptReturned)] == ["later"]
        gone = [line for line in s.lines(old) if line.get("data", {}).get("op") == "gone"]
        assert [line["data"]["fate"] for line in gone] == ["returned"]
        s.do(s.seat.open(old))
        assert items(s) == ()


def test_rewind_gives_the_queue_back_and_nothing_of_it_is_held() -> None:
    gate = Gate()
    with seated(model=Scripted([["first"], [gate, "x"]])) as s:
        s.run("go")
        entry = s.lines()[0]["id"]
        turn = s.prompt("more")
        s.until(lambda: gate.reached == 1)
        waiting(s, "later")
        reply = s.ask(RewindSession(entry_id=entry))
        assert isinstance(reply, SessionRewound)
        assert reply.dropped == ("later",)
        s.world.run(turn)
        s.settle()
        assert items(s) == ()
        s.do(s.seat.open(s.seat.token.session_id))
        assert items(s) == ()


def test_queue_is_edited_moved_and_taken_out_in_the_file_as_well() -> None:
    gate = Gate()
    model = Scripted([[gate, "x"], ["done"]])
    with seated(model=model) as s:
        s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "a", "b", "c")
        a, b, c = (item.item_id for item in items(s))
        s.do(s.seat.queue.edit(b, "better"))
        s.do(s.seat.queue.move(c, 1))
        s.do(s.seat.queue.cancel(a))
        assert texts(s) == ["c", "better"]
        with pytest.raises(Refused) as refused:
            s.do(s.seat.queue.cancel(a))
        assert refused.value.reply == PromptGone(item_id=a)
        session_id = s.seat.token.session_id
        s.host.kill()
        s.host = s.world.host(model=model)
        s.seat = s.world.run(s.host.seat(session=session_id))
        assert [item.item_id for item in items(s)] == [c, b]
        assert texts(s) == ["c", "better"]


def test_stale_token_changes_nothing_of_the_queue() -> None:
    with seated("one") as s:
        s.run("go")
        old = s.seat.token
        s.do(s.seat.new())
        reply = s.ask(StartTurn(text="x", token=old, when_busy="queue"))
        assert isinstance(reply, Stale)
        with pytest.raises(Refused):
            s.do(s.seat.steer("x", token=old))


def test_seat_with_a_held_queue_is_idle_and_does_not_park() -> None:
    gate = Gate()
    model = Scripted([[gate, "x"], ["again"]])
    with seated(model=model) as s:
        s.prompt("go")
        s.until(lambda: gate.reached == 1)
        waiting(s, "later")
        session_id = s.seat.token.session_id
        s.host.kill()
        s.host = s.world.host(model=model)
        s.seat = s.world.run(s.host.seat(session=session_id))
        s.do(s.seat.wait_idle())
        assert isinstance(s.ask(ParkSeat()), SeatBusy)
        s.do(s.seat.queue.cancel(items(s)[0].item_id))
        assert isinstance(s.ask(ParkSeat()), SeatParked)


def test_same_key_steers_once() -> None:
    gate = Gate()
    model, tool = busy(gate, "one")
    with seated(model=model, tools=[tool.tool]) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 1)
        first = s.do(s.seat.steer("x", idempotency_key="k"))
        assert s.do(s.seat.steer("x", idempotency_key="k")) == first
        gate.open()
        s.world.run(turn)
        assert shown(model, 1) == ["go", "x"]


def test_steer_of_an_idle_seat_starts_a_turn() -> None:
    with seated("hello") as s:
        assert isinstance(s.do(s.seat.steer("hi")), TurnAccepted)
        s.do(s.seat.wait_idle())
        assert s.told() == ["user", "assistant"]
