"""The one stream of events: numbers, late readers, slow readers, joined deltas."""

import asyncio

import pytest
from toys import (
    BeginStream,
    EndStream,
    Machine,
    Note,
    Said,
    Say,
    StreamBegan,
    StreamEnded,
    asynchronous,
    of_kind,
    read,
    settle,
    waiting_in,
)

from tenure.messages.bus import EventsMissed, OwnerLost, Published
from tenure.messages.tokens import TurnId
from tenure.messages.turn import TextDelta, ThinkingDelta, TurnEnded, TurnStarted
from tenure.runtime.events import (
    EVENTS_KEPT_MAX,
    EVENTS_WAITING_MAX,
    JOINED_MAX,
    EventStream,
    Subscription,
)
from tenure.runtime.stream_rules import STREAMS


def lost(number: int) -> OwnerLost:
    """An event that is never joined."""
    return OwnerLost(owner=str(number), reason="")


def numbers(published: list[Published]) -> list[tuple[int, int]]:
    return [(each.seq_first, each.seq_last) for each in published]


async def rest(subscription: Subscription) -> list[Published]:
    subscription.close()
    return [published async for published in subscription]


# --- numbers and places ------------------------------------------------------------------------


@asynchronous
async def test_events_are_numbered_from_one_and_carry_the_host_run() -> None:
    stream = EventStream("run-7")
    reader = stream.subscribe()
    stream.publish("main", lost(1))
    stream.publish("", lost(2))
    first, second = await read(reader, 2)
    assert (first.host_run, first.seq_first, first.seq_last, first.seat) == ("run-7", 1, 1, "main")
    assert (second.seq_first, second.seat) == (2, "")


@asynchronous
async def test_every_reader_gets_every_event() -> None:
    stream = EventStream("run")
    readers = [stream.subscribe() for _ in range(3)]
    for number in range(10):
        stream.publish("main", lost(number))
    for reader in readers:
        assert numbers(await rest(reader)) == [(number, number) for number in range(1, 11)]


@asynchronous
async def test_reader_of_a_seat_gets_the_events_of_that_seat_alone() -> None:
    stream = EventStream("run")
    reader = stream.subscribe(seat="a")
    for number in range(6):
        stream.publish("ab"[number % 2], lost(number))
    stream.publish("", lost(9))
    assert numbers(await rest(reader)) == [(1, 1), (3, 3), (5, 5)]


@asynchronous
async def test_reader_waits_for_what_comes() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    waiting = asyncio.ensure_future(anext(reader))
    await settle()
    assert not waiting.done()
    stream.publish("main", lost(1))
    assert (await waiting).event == lost(1)


@asynchronous
async def test_reading_ends_when_the_subscription_is_closed_and_twice_is_harmless() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    waiting = asyncio.ensure_future(anext(reader, None))
    await settle()
    reader.close()
    reader.close()
    assert await waiting is None
    stream.publish("main", lost(1))
    assert [published async for published in reader] == []


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_reading_ends_when_the_host_closes_after_what_waits() -> None:
    stream = EventStream("run")
    readers = [stream.subscribe(), stream.subscribe(seat="main")]
    stream.publish("main", lost(1))
    stream.close()
    for reader in readers:
        assert numbers([published async for published in reader]) == [(1, 1)]


@asynchronous
async def test_two_tasks_cannot_read_one_subscription() -> None:
    reader = EventStream("run").subscribe()
    first = asyncio.ensure_future(anext(reader, None))
    await settle()
    with pytest.raises(RuntimeError, match="one reader"):
        await anext(reader)
    reader.close()
    assert await first is None


@asynchronous
async def test_cancelled_reader_loses_nothing() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    waiting = asyncio.ensure_future(anext(reader))
    await settle()
    stream.publish("main", lost(1))
    waiting.cancel()
    await settle()
    assert (await anext(reader)).event == lost(1)


# --- late readers --------------------------------------------------------------------------------


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_late_reader_begins_after_a_sequence_number_and_goes_on() -> None:
    stream = EventStream("run")
    for number in range(1, 6):
        stream.publish("main", lost(number))
    reader = stream.subscribe(after=3)
    stream.publish("main", lost(6))
    assert [published.event for published in await rest(reader)] == [lost(4), lost(5), lost(6)]


@asynchronous
async def test_reader_after_the_newest_event_or_a_later_one_misses_nothing() -> None:
    stream = EventStream("run")
    stream.publish("main", lost(1))
    readers = [stream.subscribe(after=1), stream.subscribe(after=50)]
    stream.publish("main", lost(2))
    for reader in readers:
        assert [published.event for published in await rest(reader)] == [lost(2)]


@asynchronous
async def test_reader_from_the_beginning_of_an_empty_stream_misses_nothing() -> None:
    assert await rest(EventStream("run").subscribe(after=0)) == []
    assert await rest(EventStream("run").subscribe(after=-5)) == []


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_late_reader_is_told_what_is_no_longer_kept_and_gets_all_that_is() -> None:
    stream = EventStream("run")
    count = EVENTS_KEPT_MAX + 100
    for number in range(1, count + 1):
        stream.publish("main", lost(number))
    first, *others = await rest(stream.subscribe(after=10))
    assert first.event == EventsMissed(seq_first=11, seq_last=100)
    assert numbers(others) == [(number, number) for number in range(101, count + 1)]


@asynchronous
async def test_late_reader_of_a_seat_gets_what_was_kept_of_it() -> None:
    stream = EventStream("run")
    for number in range(1, 7):
        stream.publish("ab"[number % 2], lost(number))
    assert numbers(await rest(stream.subscribe(after=2, seat="a"))) == [(4, 4), (6, 6)]


# --- slow readers --------------------------------------------------------------------------------


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_slow_reader_is_told_the_numbers_of_what_it_missed() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    count = EVENTS_WAITING_MAX + 7
    for number in range(1, count + 1):
        stream.publish("main", lost(number))
    first, *others = await rest(reader)
    assert first.event == EventsMissed(seq_first=1, seq_last=7)
    assert (first.seq_first, first.seq_last, first.host_run) == (1, 7, "run")
    assert numbers(others) == [(number, number) for number in range(8, count + 1)]


@asynchronous
async def test_reader_that_is_slow_twice_is_told_twice() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()

    def publish(count: int) -> None:
        for _ in range(count):
            stream.publish("main", lost(0))

    publish(EVENTS_WAITING_MAX + 1)
    assert (await anext(reader)).event == EventsMissed(seq_first=1, seq_last=1)
    assert (await anext(reader)).seq_first == 2
    publish(3)
    assert (await anext(reader)).event == EventsMissed(seq_first=3, seq_last=4)
    assert (await anext(reader)).seq_first == 5


@asynchronous
async def test_slow_reader_does_not_slow_or_rob_another() -> None:
    stream = EventStream("run")
    stream.subscribe()
    quick = stream.subscribe()
    seen = []
    for number in range(2 * EVENTS_WAITING_MAX):
        stream.publish("main", lost(number))
        seen.append((await anext(quick)).seq_first)
    assert seen == list(range(1, 2 * EVENTS_WAITING_MAX + 1))


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_joined_deltas_carry_their_first_and_last_number() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    for text in ("a", "b", "c"):
        stream.publish("main", Said(name="x", text=text))
    stream.publish("main", lost(4))
    stream.publish("main", Said(name="x", text="d"))
    published = await rest(reader)
    assert numbers(published) == [(1, 3), (4, 4), (5, 5)]
    assert published[0].event == Said(name="x", text="abc")


@pytest.mark.witness("BUS-2")
@asynchronous
async def test_long_answer_never_pushes_anything_out_of_a_slow_reader() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    stream.publish("main", lost(1))
    for _ in range(5 * EVENTS_WAITING_MAX):
        stream.publish("main", TextDelta(turn_id=TurnId("s/1"), text="x"))
    published = await rest(reader)
    count = 5 * EVENTS_WAITING_MAX
    assert numbers(published) == [
        (1, 1),
        *((first, first + JOINED_MAX - 1) for first in range(2, count + 2, JOINED_MAX)),
    ]
    assert {each.event for each in published[1:]} == {
        TextDelta(turn_id=TurnId("s/1"), text="x" * JOINED_MAX)
    }


def test_deltas_of_another_turn_or_kind_are_not_joined() -> None:
    delta = TextDelta(turn_id=TurnId("s/1"), text="a")
    assert delta.joined(TextDelta(turn_id=TurnId("s/2"), text="b")) is None
    assert delta.joined(ThinkingDelta(turn_id=TurnId("s/1"), text="b")) is None
    assert delta.joined(TurnEnded(turn_id=TurnId("s/1"), stop_reason="end_turn")) is None
    assert lost(1).joined(lost(1)) is None


@asynchronous
async def test_quick_reader_gets_deltas_one_by_one() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    seen = []
    for text in "abc":
        stream.publish("main", Said(name="x", text=text))
        seen.append((await anext(reader)).event)
    assert seen == [Said(name="x", text=text) for text in "abc"]


@asynchronous
async def test_join_for_one_reader_changes_nothing_for_another() -> None:
    stream = EventStream("run")
    slow, quick = stream.subscribe(), stream.subscribe()
    stream.publish("main", Said(name="x", text="a"))
    first = await anext(quick)
    stream.publish("main", Said(name="x", text="b"))
    assert (first.event, (await anext(quick)).event) == (
        Said(name="x", text="a"),
        Said(name="x", text="b"),
    )
    assert numbers(await rest(slow)) == [(1, 2)]
    assert numbers(await rest(stream.subscribe(after=1))) == [(2, 2)]


# --- readers of one subject -----------------------------------------------------------------------


@asynchronous
async def test_reader_of_one_subject_is_not_flooded_by_others() -> None:
    stream = EventStream("run")
    reader = stream.subscribe()
    stream.publish("main", lost(1))
    stream.publish("main", Said(name="mine", text="a"))
    reader.only(lambda published: isinstance(published.event, Said))
    for number in range(2 * EVENTS_WAITING_MAX):
        stream.publish("main", lost(number))
    for text in "bc":
        stream.publish("main", Said(name="mine", text=text))
    published = await rest(reader)
    assert [each.event for each in published] == [
        Said(name="mine", text="a"),
        Said(name="mine", text="bc"),
    ]


@asynchronous
async def test_closing_a_seat_ends_its_readers_and_no_others() -> None:
    stream = EventStream("run")
    gone, other, every = (
        stream.subscribe(seat="a"),
        stream.subscribe(seat="b"),
        stream.subscribe(),
    )
    stream.publish("a", lost(1))
    stream.close_seat("a")
    stream.close_seat("nobody")
    assert numbers([published async for published in gone]) == [(1, 1)]
    stream.publish("b", lost(2))
    assert (await anext(other)).seq_first == 2
    assert len(every.waiting) == 2


@asynchronous
async def test_follower_sees_each_event_at_once_until_it_leaves() -> None:
    stream = EventStream("run")
    seen: list[int] = []
    leave = stream.follow("a", lambda published: seen.append(published.seq_first))
    stream.publish("a", lost(1))
    stream.publish("b", lost(2))
    stream.publish("a", lost(3))
    leave()
    stream.publish("a", lost(4))
    assert seen == [1, 3]
    assert stream._seats == {}


# --- streams that must end -----------------------------------------------------------------------


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_stream_ends_when_its_owner_fails() -> None:
    machine = Machine()
    await machine.ask(BeginStream(name="a"))
    await machine.ask(BeginStream(name="b"))
    await machine.ask(EndStream(name="b"))
    await machine.away()
    ends = of_kind(machine.events, StreamEnded)
    assert ends == [StreamEnded(name="b", how="in order"), StreamEnded(name="a", how="lost")]


@pytest.mark.witness("BUS-1")
@asynchronous
async def test_stream_ends_when_its_owner_is_stopped_or_lost() -> None:
    machine = Machine()
    machine.add_seat("side")
    for seat in ("main", "side"):
        await machine.ask(BeginStream(name=seat), f"{seat}/turn")
    await machine.supervisor.stop_seat("side", "closed")
    for _ in range(4):
        await machine.away("main/session")
        await machine.restarted()
    ends = of_kind(machine.events, StreamEnded)
    assert ends == [StreamEnded(name="side", how="lost"), StreamEnded(name="main", how="lost")]


@asynchronous
async def test_stream_that_ended_is_not_ended_again_by_a_failure() -> None:
    machine = Machine()
    await machine.ask(BeginStream(name="a"))
    await machine.ask(EndStream(name="a"))
    await machine.away()
    await machine.restarted()
    await machine.away()
    assert of_kind(machine.events, StreamEnded) == [StreamEnded(name="a", how="in order")]


@asynchronous
async def test_end_of_a_stream_comes_before_the_news_that_its_owner_is_gone() -> None:
    machine = Machine()
    await machine.ask(BeginStream(name="a"))
    await machine.supervisor.stop("main/session", "closed")
    assert waiting_in(machine.events) == [
        StreamBegan(name="a"),
        StreamEnded(name="a", how="lost"),
        OwnerLost(owner="main/session", reason="closed"),
    ]


def test_turn_whose_owner_is_lost_ends_as_a_turn_ends() -> None:
    rule = next(rule for rule in STREAMS if rule.opens is TurnStarted)
    ended = rule.lost("s/3")
    assert isinstance(ended, TurnEnded)
    assert (ended.turn_id, ended.stop_reason) == ("s/3", "owner_lost")
    assert rule.key(ended) == "s/3"


@asynchronous
async def test_events_of_one_step_keep_their_order_and_other_seats_their_readers() -> None:
    machine = Machine()
    machine.add_seat("side")
    side = machine.bus.subscribe(seat="side")
    await machine.ask(Say(name="a", texts=("1",)))
    await machine.ask(Say(name="b", texts=("2", "3")), "side/session")
    await machine.ask(Note(text="no event"))
    assert waiting_in(machine.events) == [Said(name="a", text="1"), Said(name="b", text="23")]
    assert waiting_in(side) == [Said(name="b", text="23")]
