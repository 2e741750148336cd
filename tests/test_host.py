"""The host: opening it, its seats, and what it shows."""

import asyncio

import pytest
from host_world import Machine, events_of, held, last, lose, owners_of, streaming
from toys import asynchronous, settle

from tenure.messages.bus import OwnerStopped
from tenure.messages.session import GetSession, SessionNotFound
from tenure.messages.turn import (
    GetTurn,
)
from tenure.runtime.errors import BadRoot, HostClosed, Refused
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat

# --- opening and closing -------------------------------------------------------------------------


@asynchronous
async def test_prompt_gives_the_events_of_its_turn_and_ends_with_its_end() -> None:
    async with Machine().host("Hi.") as host:
        events = await events_of(await host.seat())
    assert {"TurnStarted", "TextDelta", "ModelAnswered"} <= {type(e).__name__ for e in events}
    assert last(events).stop_reason == "end_turn"


@asynchronous
async def test_host_is_entered_once() -> None:
    host = Machine().host()
    async with host:
        with pytest.raises(HostClosed, match="opened once"):
            await host.__aenter__()
    with pytest.raises(HostClosed, match="opened once"):
        await host.__aenter__()


@asynchronous
async def test_host_that_is_entered_twice_at_once_starts_once() -> None:
    host = Machine().host()
    results = await asyncio.gather(host.__aenter__(), host.__aenter__(), return_exceptions=True)
    assert [type(result) for result in results] == [Host, HostClosed]
    await host.close()


@asynchronous
async def test_host_that_was_never_entered_says_so() -> None:
    host = Machine().host()
    with pytest.raises(HostClosed, match="async with"):
        await host.seat()
    assert isinstance(await host.ask(GetSession(), seat="main"), OwnerStopped)
    await host.close()  # harmless


@asynchronous
async def test_closed_host_refuses_everything_in_its_own_words() -> None:
    host = Machine().host()
    async with host:
        seat = await host.seat()
    assert await host.ask(GetSession(), seat="main") == OwnerStopped(
        begun=False, reason="the host is closed"
    )
    assert isinstance(await seat.stop(), OwnerStopped)
    with pytest.raises(Refused, match="the host is closed"):
        await events_of(seat)
    for use in (lambda: host.seats, lambda: host.root, lambda: host.events(), host.owners):
        with pytest.raises(HostClosed):
            use()
    with pytest.raises(HostClosed):
        await host.close_seat("main")
    await seat.wait_idle()  # nothing runs any more
    await host.close()


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ("/none", "there is no such folder"),
        ("/root/file", "this is a file, not a folder"),
        ("/root/file/below", "Not a directory"),
        ("/root/round", "symbolic links"),
    ],
)
@asynchronous
async def test_root_that_is_no_folder_is_refused_and_says_which(root: str, words: str) -> None:
    machine = Machine()
    machine.disk.put("/root/file", b"")
    machine.disk.put_link("/root/round", "/root/round")
    host = Host.open(root, leaves=machine.leaves())
    with pytest.raises(BadRoot, match=words) as refusal:
        await host.__aenter__()
    assert str(refusal.value).startswith(f"{root}: ")
    with pytest.raises(HostClosed):
        host.owners()


@asynchronous
async def test_host_whose_root_was_refused_can_be_entered_when_it_is_there() -> None:
    machine = Machine()
    host = Host.open("/later", leaves=machine.leaves())
    with pytest.raises(BadRoot):
        await host.__aenter__()
    machine.disk.put_folder("/later")
    async with host:
        assert host.root == "/later"


@asynchronous
async def test_root_that_is_a_link_is_followed() -> None:
    machine = Machine()
    machine.disk.put_link("/link", "/root")
    async with Host.open("/link", leaves=machine.leaves()) as host:
        assert host.root == "/root"


@asynchronous
async def test_opening_a_host_writes_nothing() -> None:
    machine = Machine()
    before = machine.disk.paths()
    async with machine.host() as host:
        await host.seat()
    assert machine.disk.paths() == before


@asynchronous
async def test_close_may_be_called_by_many_and_all_wait_for_its_end() -> None:
    machine = Machine()
    _, answer = held()
    host = await machine.host(answer).__aenter__()
    task = await streaming(await host.seat())
    closes = [asyncio.ensure_future(host.close()) for _ in range(3)]
    await asyncio.sleep(0)
    closes[0].cancel()
    await asyncio.gather(*closes[1:])
    assert task.done() or last(await task).stop_reason == "stopped"
    async with machine.host() as second:
        assert await second.seat()


# --- seats ---------------------------------------------------------------------------------------


@asynchronous
async def test_seat_of_a_name_is_the_same_however_often_it_is_asked_for() -> None:
    async with Machine().host() as host:
        seats = await asyncio.gather(*(host.seat() for _ in range(4)))
        assert {id(seat) for seat in seats} == {id(await host.seat())}
        assert set(host.seats) == {"main"}
        assert [view.owner for view in host.owners()].count("main/session") == 1


@asynchronous
async def test_two_seats_have_sessions_of_their_own() -> None:
    async with Machine().host("A.", "B.") as host:
        first, second = await host.seat("a"), await host.seat("b")
        assert first.token.session_id != second.token.session_id
        await events_of(first)
        assert last(await events_of(second)).stop_reason == "end_turn"


@pytest.mark.parametrize("name", ["", "  ", "a/b"])
@asynchronous
async def test_name_that_is_none_is_refused(name: str) -> None:
    async with Machine().host() as host:
        with pytest.raises(ValueError, match="name"):
            await host.seat(name)
        assert host.seats == {}


@asynchronous
async def test_seat_whose_session_is_refused_does_not_stay() -> None:
    async with Machine().host() as host:
        with pytest.raises(Refused) as refusal:
            await host.seat("main", session="00000000-0000-4000-8000-000000000000")
        assert isinstance(refusal.value.reply, SessionNotFound)
        assert host.seats == {}
        assert {view.owner for view in host.owners()} == owners_of()
        assert await host.seat("main")


@asynchronous
async def test_seat_that_had_a_session_keeps_it_when_another_is_refused() -> None:
    async with Machine().host("Hi.") as host:
        seat = await host.seat()
        token = seat.token
        with pytest.raises(Refused):
            await host.seat("main", session="00000000-0000-4000-8000-000000000000")
        assert (await host.seat()).token == token


@asynchronous
async def test_refused_opening_takes_nothing_from_another_of_the_same_name() -> None:
    async with Machine().host() as host:
        bad, good = await asyncio.gather(
            host.seat("main", session="00000000-0000-4000-8000-000000000000"),
            host.seat("main"),
            return_exceptions=True,
        )
        assert isinstance(bad, Refused)
        assert isinstance(good, Seat)
        assert host.seats == {"main": good}
        assert good.token.session_id


@asynchronous
async def test_cancelled_opening_leaves_a_whole_seat_or_none() -> None:
    async with Machine().host("Hi.") as host:
        for turns in range(6):
            opening = asyncio.ensure_future(host.seat(f"seat {turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            await settle()
            seat = await host.seat(f"seat {turns}")
            assert seat.token.session_id


@asynchronous
async def test_seat_is_closed_and_its_name_and_session_are_free() -> None:
    async with Machine().host("Hi.", "Again.") as host:
        seat = await host.seat()
        await events_of(seat)
        session_id = seat.token.session_id
        await host.close_seat("main")
        assert host.seats == {}
        assert isinstance(await seat.ask(GetTurn()), OwnerStopped)
        await host.close_seat("main")  # harmless
        again = await host.seat("other", session=session_id)
        assert again.token.session_id == session_id


@asynchronous
async def test_opening_while_the_same_name_is_closed_gives_a_new_seat() -> None:
    machine = Machine()
    gate, answer = held()
    async with machine.host(answer, "Hi.") as host:
        old = await host.seat()
        task = await streaming(old)
        closing = asyncio.ensure_future(host.close_seat("main"))
        await asyncio.sleep(0)
        new = await host.seat()
        await closing
        assert new is not old
        assert last(await task).cause == "shutdown"
        assert host.seats == {"main": new}
        assert last(await events_of(new)).stop_reason == "end_turn"
    gate.set()


@asynchronous
async def test_cancelled_close_of_a_seat_is_done_all_the_same() -> None:
    async with Machine().host() as host:
        await host.seat()
        closing = asyncio.ensure_future(host.close_seat("main"))
        await asyncio.sleep(0)
        closing.cancel()
        await settle()
        assert host.seats == {}
        assert {view.owner for view in host.owners()} == owners_of()


@asynchronous
async def test_new_seat_has_a_new_session() -> None:
    async with Machine().host("Hi.") as host:
        first = await host.seat()
        await events_of(first)
        await host.close_seat("main")
        fresh = await host.new_seat("fresh")
        assert fresh.token.session_id != first.token.session_id


@pytest.mark.witness("SUP-1")
@asynchronous
async def test_lost_seat_can_be_opened_again_and_the_host_lives() -> None:
    machine = Machine()
    async with machine.host("Hi.") as host:
        lost = await host.seat()
        await lose(host, machine, "main/session")
        assert isinstance(await lost.ask(GetTurn()), OwnerStopped)
        seat = await host.seat()
        assert seat is not lost
        assert last(await events_of(seat)).stop_reason == "end_turn"
