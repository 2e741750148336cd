"""Turns through a seat: streams, repeats, waiting, the events of the host."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from host_world import Machine, events_of, held, last, owners_of, reading, streaming
from toys import asynchronous, settle

from tenure.messages.base import Event
from tenure.messages.bus import EventsMissed, OwnerLost, OwnerStopped, Published, Unhandled
from tenure.messages.session import GetSession
from tenure.messages.tokens import SessionToken, turn_id
from tenure.messages.turn import (
    DrainTurn,
    RunTurn,
    TextDelta,
    TurnBusy,
    TurnEnded,
    TurnNotRunning,
    TurnStarted,
    TurnStopping,
)
from tenure.runtime.errors import Refused
from tenure.runtime.events import EVENTS_WAITING_MAX
from tenure.runtime.host import Host

# --- a turn and those who look at it -------------------------------------------------------------


@asynchronous
async def test_leaving_the_loop_does_not_stop_the_turn() -> None:
    gate, answer = held()
    async with Machine().host(answer) as host:
        seat = await host.seat()
        events = host.events()
        async for event in seat.prompt("hello"):
            if isinstance(event, TextDelta):
                break
        gate.set()
        await seat.wait_idle()
        assert await _next(events, TurnEnded) == TurnEnded(
            turn_id=event.turn_id,  # type: ignore[attr-defined]
            stop_reason="end_turn",
            usage=(await _usage(host)),
        )


async def _usage(host: Host) -> Any:
    events = host.events(after=0)
    ended = await _next(events, TurnEnded)
    assert isinstance(ended, TurnEnded)
    return ended.usage


async def _next(events: AsyncIterator[Published], kind: type[Event]) -> Event:
    async for published in events:
        if isinstance(published.event, kind):
            return published.event
    raise AssertionError(f"no {kind.__name__} came")


@asynchronous
async def test_wait_idle_returns_at_once_when_nothing_runs() -> None:
    async with Machine().host() as host:
        await (await host.seat()).wait_idle()


@asynchronous
async def test_wait_idle_returns_when_the_last_queued_turn_has_ended() -> None:
    gate, answer = held()
    async with Machine().host(answer, "Second.", "Third.") as host:
        seat = await host.seat()
        first = await streaming(seat)
        others = [reading(seat, text, when_busy="queue") for text in ("two", "three")]
        await settle()
        idle = asyncio.ensure_future(seat.wait_idle())
        await settle()
        assert not idle.done()
        gate.set()
        await idle
        assert [last(await task).stop_reason for task in (first, *others)] == ["end_turn"] * 3


@asynchronous
async def test_second_prompt_is_refused_or_queued_as_asked() -> None:
    gate, answer = held()
    async with Machine().host(answer, "Second.") as host:
        seat = await host.seat()
        first = await streaming(seat)
        with pytest.raises(Refused) as refusal:
            await events_of(seat)
        assert isinstance(refusal.value.reply, TurnBusy)
        second = reading(seat, when_busy="queue")
        await settle()
        gate.set()
        assert [last(await task).stop_reason for task in (first, second)] == ["end_turn"] * 2


@asynchronous
async def test_stop_names_its_turn_and_the_stream_ends() -> None:
    _, answer = held()
    async with Machine().host(answer) as host:
        seat = await host.seat()
        task = await streaming(seat)
        assert isinstance(await seat.stop(), TurnStopping)
        ended = last(await task)
        assert (ended.stop_reason, ended.cause) == ("stopped", "user")
        assert isinstance(await seat.stop(ended.turn_id), TurnNotRunning)


@asynchronous
async def test_prompt_of_another_seat_is_not_seen_in_this_one() -> None:
    async with Machine().host("One.", "Two.") as host:
        a, b = await host.seat("a"), await host.seat("b")
        first, second = await asyncio.gather(events_of(a), events_of(b))
        assert last(first).turn_id != last(second).turn_id
        for events in (first, second):
            assert {event.turn_id for event in events} == {last(events).turn_id}  # type: ignore[attr-defined]


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_slow_reader_of_a_prompt_gets_its_end_whatever_came_after_it() -> None:
    answers = [f"Answer {number}." for number in range(400)]
    async with Machine().host(*answers) as host:
        seat = await host.seat()
        slow = seat.prompt("slowly")
        seen = [await anext(slow)]
        await seat.wait_idle()
        for _ in range(300):
            await events_of(seat)
        assert host._alive().bus.stream.seq > EVENTS_WAITING_MAX
        seen += [event async for event in slow]
        assert last(seen).stop_reason == "end_turn"
        assert not [event for event in seen if isinstance(event, EventsMissed)]


# --- repeats -------------------------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_repeat_of_a_prompt_gives_the_events_of_the_first_and_ends() -> None:
    async with Machine().host("Hi.", "Never asked for.") as host:
        seat = await host.seat()
        first = await events_of(seat, idempotency_key="k")
        again = await events_of(seat, idempotency_key="k")
        assert again == first
        assert last(again).turn_id.endswith("/1")


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_repeat_of_a_prompt_that_runs_or_waits_follows_it() -> None:
    gate, answer = held()
    async with Machine().host(answer, "Second.") as host:
        seat = await host.seat()
        first = await streaming(seat, idempotency_key="a")
        queued = reading(seat, "two", when_busy="queue", idempotency_key="b")
        await settle()
        repeats = [
            reading(seat, idempotency_key="a"),
            reading(seat, "two", when_busy="queue", idempotency_key="b"),
        ]
        await settle()
        gate.set()
        assert await repeats[0] == await first
        assert last(await repeats[1]) == last(await queued)


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_repeat_of_a_prompt_whose_events_are_no_longer_kept_ends_and_says_why() -> None:
    async with Machine().host("Hi.") as host:
        seat = await host.seat()
        first = await events_of(seat, idempotency_key="k")
        for number in range(5_000):
            host._alive().bus.publish("other", OwnerLost(owner=str(number), reason=""))
        again = await events_of(seat, idempotency_key="k")
        ended = last(again)
        assert len(again) == 1
        assert (ended.turn_id, ended.stop_reason) == (last(first).turn_id, "error")
        assert "read the session" in ended.error


# --- events of the host --------------------------------------------------------------------------


@asynchronous
async def test_events_are_read_from_the_call_on_and_not_from_the_first_look() -> None:
    async with Machine().host("Hi.") as host:
        seat = await host.seat()
        events = host.events()
        await events_of(seat)
        assert isinstance(await _next(events, TurnStarted), TurnStarted)


@asynchronous
async def test_events_after_a_number_are_given_and_then_what_comes() -> None:
    async with Machine().host("One.", "Two.") as host:
        seat = await host.seat()
        await events_of(seat)
        all_of_them = host.events(after=0)
        seen = [await anext(all_of_them) for _ in range(host._alive().bus.stream.seq)]
        assert [published.seq_first for published in seen] == sorted(
            {published.seq_first for published in seen}
        )
        assert {published.host_run for published in seen} == {host.host_id}
        later = host.events(after=seen[-1].seq_last)
        await events_of(seat)
        assert (await anext(later)).seq_first == seen[-1].seq_last + 1


@asynchronous
async def test_events_end_with_the_host() -> None:
    async with Machine().host("Hi.") as host:
        seat = await host.seat()
        collecting = asyncio.ensure_future(_all(host.events()))
        await events_of(seat)
    seen = await collecting
    assert isinstance(seen[-1].event, OwnerLost)
    lost = [published.event for published in seen if isinstance(published.event, OwnerLost)]
    assert {event.owner for event in lost} == owners_of("main")


async def _all(events: AsyncIterator[Published]) -> list[Published]:
    return [published async for published in events]


@asynchronous
async def test_events_that_nobody_reads_any_more_are_not_collected() -> None:
    async with Machine().host("Hi.") as host:
        stream = host._alive().bus.stream
        unread = host.events()
        read = host.events()
        seat = await host.seat()
        await events_of(seat)
        await anext(read)
        assert len(stream._readers) == 2
        del unread, read
        await settle()
        assert stream._readers == []


# --- raw messages --------------------------------------------------------------------------------


@asynchronous
async def test_commands_between_owners_are_not_taken_from_outside() -> None:
    async with Machine().host() as host:
        seat = await host.seat()
        assert await seat.ask(DrainTurn()) == Unhandled(message="DrainTurn")
        run = RunTurn(
            turn_id=turn_id(seat.token.session_id, 1),
            token=seat.token,
            text="x",
            images=(),
            model="",
            when_busy="queue",
        )
        assert await seat.ask(run) == Unhandled(message="RunTurn")


@asynchronous
async def test_ask_of_a_seat_that_is_not_open_is_answered() -> None:
    async with Machine().host() as host:
        assert isinstance(await host.ask(GetSession(), seat="nobody"), OwnerStopped)
        assert isinstance(await host.ask(GetSession()), OwnerStopped)


@asynchronous
async def test_stale_prompt_is_refused() -> None:
    async with Machine().host("Hi.") as host:
        seat = await host.seat()
        old = SessionToken(session_id=seat.token.session_id, epoch=seat.token.epoch + 7)
        with pytest.raises(Refused, match="Stale"):
            await events_of(seat, token=old)
