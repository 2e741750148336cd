"""The end of a host: nobody is left waiting, every claim is given back."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from host_world import Machine, broken, events_of, held, last, lose, owners_of, reading, streaming
from toys import asynchronous, settle

from tenure.messages.base import Event, Reply
from tenure.messages.bus import OwnerLost, OwnerStopped
from tenure.messages.models import ModelEvent, ModelRequest, ModelText
from tenure.messages.session import SessionInUse, StartTurn
from tenure.messages.turn import (
    GetTurn,
    TurnEnded,
    TurnQueued,
)
from tenure.runtime.errors import HostClosed, Refused
from tenure.runtime.host import Host
from tenure.runtime.running import SHUTDOWN_S
from tenure.runtime.supervisor import EFFECTS_END_S

# --- park ----------------------------------------------------------------------------------------


@asynchronous
async def test_parked_seat_gives_its_session_up_and_takes_it_again_at_its_next_command() -> None:
    machine = Machine()
    async with machine.host("One.", "Two.") as host:
        seat = await host.seat()
        await events_of(seat)
        session_id = seat.token.session_id
        async with machine.host() as other:
            with pytest.raises(Refused) as refusal:
                await other.seat("main", session=session_id)
            assert isinstance(refusal.value.reply, SessionInUse)
            await seat.park()
            taken = await other.seat("main", session=session_id)
            assert taken.token.session_id == session_id
        assert last(await events_of(seat)).stop_reason == "end_turn"
        assert seat.token.session_id == session_id


@asynchronous
async def test_busy_seat_is_not_parked() -> None:
    gate, answer = held()
    async with Machine().host(answer) as host:
        seat = await host.seat()
        task = await streaming(seat)
        with pytest.raises(Refused):
            await seat.park()
        gate.set()
        assert last(await task).stop_reason == "end_turn"


# --- the end of the host -------------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_stops_the_running_turn_and_its_reader_is_told() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    task = await streaming(await host.seat())
    await host.close()
    ended = last(await task)
    assert (ended.stop_reason, ended.cause) == ("stopped", "shutdown")


@asynchronous
async def test_close_keeps_what_the_model_had_said() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    seat = await host.seat()
    task = await streaming(seat)
    path = (await seat.session()).path
    await host.close()
    await task
    assert b"One " in machine.disk.content(path)


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_ends_the_streams_of_turns_that_wait_too() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer, "Second.").__aenter__()
    seat = await host.seat()
    running = await streaming(seat)
    queued = reading(seat, "two", when_busy="queue")
    await settle()
    await host.close()
    for task in (running, queued):
        ended = last(await task)
        assert (ended.stop_reason, ended.cause) == ("stopped", "shutdown")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_of_a_seat_ends_the_streams_of_its_turns_and_no_others() -> None:
    machine = Machine()
    gate, answer = held()
    async with machine.host(answer, "Second.") as host:
        seat, side = await host.seat(), await host.seat("side")
        running = await streaming(seat)
        queued = reading(seat, "two", when_busy="queue")
        beside = await streaming(side)
        await host.close_seat("main")
        for task in (running, queued):
            assert last(await task).cause == "shutdown"
        assert not beside.done()
        gate.set()
        assert last(await beside).stop_reason == "end_turn"


@asynchronous
async def test_second_host_can_open_the_session_as_soon_as_the_first_is_closed() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    seat = await host.seat()
    task = await streaming(seat)
    await host.close()
    async with machine.host("Hi.") as second:
        again = await second.seat("main", session=seat.token.session_id)
        assert again.token.session_id == seat.token.session_id
        assert again.token.epoch > seat.token.epoch
        assert last(await events_of(again)).stop_reason == "end_turn"
    await task


@asynchronous
async def test_commands_while_the_host_closes_are_refused_and_said_to_be() -> None:
    machine = Machine()

    async def stubborn(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await gate.wait()
            raise
        yield None  # type: ignore[misc]

    gate = asyncio.Event()
    host = await Host.open("/root", leaves=machine.leaves(), model=stubborn).__aenter__()
    seat = await host.seat()
    task = reading(seat)
    await settle()
    closing = asyncio.ensure_future(host.close())
    await settle()
    assert not closing.done()
    assert isinstance(await seat.ask(StartTurn(text="late")), OwnerStopped)
    with pytest.raises(HostClosed):
        await host.seat("late")
    gate.set()
    await settle()
    await closing
    assert last(await task).stop_reason == "stopped"


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_does_not_wait_for_ever_for_a_model_that_does_not_stop() -> None:
    machine = Machine()
    never = asyncio.Event()

    async def deaf(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        while not never.is_set():
            try:
                await never.wait()
            except asyncio.CancelledError:
                continue
        yield None  # type: ignore[misc]

    host = await Host.open("/root", leaves=machine.leaves(), model=deaf).__aenter__()
    task = reading(await host.seat())
    await settle()
    closing = asyncio.ensure_future(host.close())
    for _ in range(4):
        await settle()
        machine.clock.advance(max(SHUTDOWN_S, EFFECTS_END_S) + 0.1)
    await settle()
    assert closing.done()
    await closing
    ended = last(await task)
    assert ended.stop_reason in ("owner_lost", "stopped")
    never.set()
    await settle()


@asynchronous
async def test_seat_that_opens_while_the_host_closes_does_not_stay_open() -> None:
    machine = Machine()
    for turns in range(8):
        host = await machine.host().__aenter__()
        opening = asyncio.ensure_future(host.seat())
        for _ in range(turns):
            await asyncio.sleep(0)
        await host.close()
        await asyncio.wait([opening])
        error = opening.exception()
        assert error is None or isinstance(error, HostClosed | Refused)
        async with machine.host() as second:
            assert await second.seat()


@asynchronous
async def test_wait_idle_and_asks_end_when_the_host_closes() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    seat = await host.seat()
    task = await streaming(seat)
    idle = asyncio.ensure_future(seat.wait_idle())
    asks: list[asyncio.Task[Reply]] = [
        asyncio.get_running_loop().create_task(seat.ask(GetTurn())) for _ in range(5)
    ]
    await host.close()
    await idle
    await asyncio.gather(*asks)
    await task


@asynchronous
async def test_error_in_the_body_closes_the_host_in_order() -> None:
    machine = Machine()
    _, answer = held()
    tasks: list[asyncio.Task[list[Event]]] = []

    async def body() -> None:
        async with machine.host(answer) as host:
            tasks.append(await streaming(await host.seat()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await body()
    assert last(await tasks[0]).cause == "shutdown"
    async with machine.host() as second:
        assert await second.seat()


@asynchronous
async def test_cancelled_body_closes_the_host_in_order() -> None:
    machine = Machine()
    _, answer = held()
    tasks: list[asyncio.Task[list[Event]]] = []
    streams = asyncio.Event()

    async def body() -> None:
        async with machine.host(answer) as host:
            tasks.append(await streaming(await host.seat()))
            streams.set()
            await asyncio.Event().wait()

    running = asyncio.ensure_future(body())
    await streams.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert last(await tasks[0]).cause == "shutdown"


@asynchronous
async def test_host_shows_its_owners_dead_letters_and_quarantine() -> None:
    machine = Machine()
    async with machine.host() as host:
        await host.seat()
        assert {view.owner for view in host.owners()} == owners_of("main")
        assert host.dead_letters == ()
        assert list(host.quarantine) == []
        await lose(host, machine, "main/turn")
        assert {each.owner for each in host.quarantine} == {"main/turn"}


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_settings_owner_that_fails_is_started_again() -> None:
    machine = Machine()
    async with machine.host() as host:
        mode = (await host.settings.set_mode("yolo")).policy.mode
        slot = host._alive().supervisor._slots["settings"]
        owner = slot.owner
        assert owner is not None
        owner.__class__ = type("Broken", (type(owner),), {"step": staticmethod(broken)})
        with pytest.raises(Refused, match="OwnerStopped"):
            await host.settings.get()
        await settle()
        machine.clock.advance(1)
        await settle()
        assert slot.incarnation == 2
        assert (await host.settings.get()).policy.mode == mode == "yolo"


@asynchronous
async def test_queued_prompt_says_so_in_its_reply() -> None:
    gate, answer = held()
    async with Machine().host(answer, "Two.") as host:
        seat = await host.seat()
        task = await streaming(seat)
        reply = await seat.ask(StartTurn(text="two", when_busy="queue"))
        assert isinstance(reply, TurnQueued)
        gate.set()
        await seat.wait_idle()
        assert last(await task).stop_reason == "end_turn"


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_close_of_the_host_waits_for_a_seat_that_is_being_closed() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    everything = host.events()
    task = await streaming(await host.seat())
    closing_seat = asyncio.ensure_future(host.close_seat("main"))
    await asyncio.sleep(0)
    await host.close()
    await closing_seat
    assert (last(await task).stop_reason, last(await task).cause) == ("stopped", "shutdown")
    ends = [each.event async for each in everything if isinstance(each.event, TurnEnded)]
    assert [(end.stop_reason, end.cause) for end in ends] == [("stopped", "shutdown")]


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_readers_of_a_seat_end_when_it_is_closed() -> None:
    async with Machine().host() as host:
        await host.seat()
        reader = host._alive().bus.subscribe(seat="main")
        await host.close_seat("main")
        assert {type(each.event) async for each in reader} == {OwnerLost}


@asynchronous
async def test_name_of_a_lost_seat_is_free_when_what_it_did_has_ended() -> None:
    machine = Machine()
    stopped = asyncio.Event()

    async def slow_to_stop(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="One ")
        try:
            await asyncio.Event().wait()
        finally:
            await stopped.wait()

    host = await Host.open("/root", leaves=machine.leaves(), model=slow_to_stop).__aenter__()
    task = await streaming(await host.seat())
    await lose(host, machine, "main/session")
    opening = asyncio.ensure_future(host.seat())
    await settle()
    stopped.set()
    for _ in range(3):
        machine.clock.advance(EFFECTS_END_S)
        await settle()
    assert (await opening).token.session_id
    assert last(await task).stop_reason in ("owner_lost", "session_lost")
    await host.close()


@asynchronous
async def test_closed_host_takes_its_own_seat_records_with_it_and_no_others() -> None:
    machine = Machine()
    async with machine.host("One.") as other:
        await events_of(await other.seat())
        async with machine.host("Two.") as host:
            await events_of(await host.seat())
            mine = f"/root/.tenure/hosts/{host.host_id}"
            assert f"{mine}/seats/main.json" in machine.disk.paths()
        paths = machine.disk.paths()
        assert not [path for path in paths if path.startswith(mine)]
        assert f"/root/.tenure/hosts/{other.host_id}/seats/main.json" in paths


@asynchronous
async def test_host_that_noted_no_seat_leaves_nothing_in_its_workspace() -> None:
    machine = Machine()
    async with machine.host("One.") as host:
        await host.seat()
    assert not [path for path in machine.disk.paths() if "/hosts" in path]
