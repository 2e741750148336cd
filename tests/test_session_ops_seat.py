"""Names, forks, rewinds, rewrites and deletions on a whole host, with a disk that may fail."""

import errno
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from host_world import Machine, events_of, held, last, streaming
from toys import asynchronous

from tenure.messages.base import Refusal
from tenure.messages.content import UserMessage, text_of
from tenure.messages.session import (
    ChangedOutside,
    SessionInUse,
    SessionNotFound,
    Stale,
)
from tenure.messages.session_ops import (
    EntryNotFound,
    Redact,
    RewindSession,
    SessionEmpty,
    Vacuum,
)
from tenure.runtime.errors import Refused
from tenure.runtime.host import Host
from tenure.runtime.seat import Seat
from tenure.runtime.testing.faults import Fail

ANSWERS = ("one", "two", "three", "four", "five", "six")


async def talk(seat: Seat, *texts: str) -> None:
    for text in texts:
        assert last(await events_of(seat, text)).stop_reason == "end_turn"


async def entry_ids(host: Host, seat: Seat, text: str) -> list[str]:
    """The ids of the entries in which a user said this."""
    snapshot = await host.sessions.read((await seat.session()).path)
    return [entry.id for entry in snapshot.entries if f'"text":"{text}"' in entry.text]


async def said(host: Host, seat: Seat) -> list[str]:
    """What users said on the leaf's path."""
    snapshot = await host.sessions.read((await seat.session()).path)
    return [text_of(each) for each in snapshot.messages if isinstance(each, UserMessage)]


async def refusal(work: Awaitable[Any]) -> Refusal:
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.reply


async def assert_sound(host: Host) -> None:
    for summary in await host.sessions.list():
        report = await host.sessions.verify(summary.path)
        assert report.problems == (), (summary.path, report.problems)


@asynchronous
async def test_rewind_before_a_prompt_lets_it_be_sent_again_otherwise() -> None:
    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first", "secnd")
        before = seat.token
        (wrong,) = await entry_ids(host, seat, "secnd")
        done = await seat.rewind(wrong, position="before")
        assert done.token == seat.token
        assert seat.token.epoch > before.epoch
        await talk(seat, "second")
        assert await said(host, seat) == ["first", "second"]
        await assert_sound(host)


@asynchronous
async def test_rewind_to_the_beginning_leaves_an_empty_conversation() -> None:
    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first", "second")
        await seat.rewind(None)
        assert await said(host, seat) == []
        await talk(seat, "anew")
        assert await said(host, seat) == ["anew"]
        await assert_sound(host)


@asynchronous
async def test_rewound_leaf_is_the_leaf_after_a_restart_and_nothing_was_lost() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first", "second")
        (second,) = await entry_ids(host, seat, "second")
        await seat.rewind(second, position="before")
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        assert await said(host, seat) == ["first"]
        await seat.rewind(second)
        assert await said(host, seat) == ["first", "second"]
        await assert_sound(host)


@asynchronous
async def test_rewind_stops_the_running_turn_and_its_late_words_land_nowhere() -> None:
    gate, answer = held()
    async with Machine().host("one", answer, "three") as host:
        seat = await host.seat()
        await talk(seat, "first")
        (first,) = await entry_ids(host, seat, "first")
        turn = await streaming(seat, text="second")
        done = await seat.rewind(first)
        gate.set()
        assert last(await turn).stop_reason == "stopped"
        assert done.leaf == first
        assert await said(host, seat) == ["first"]
        await talk(seat, "third")
        assert await said(host, seat) == ["first", "third"]
        await assert_sound(host)


@asynchronous
async def test_rewind_into_a_batch_of_calls_gives_every_call_its_one_result() -> None:
    from tenure.messages.models import ModelToolCall

    call = ModelToolCall(id="c1", name="list", arguments={})
    async with Machine().host([call], "done", "again") as host:
        seat = await host.seat()
        await talk(seat, "look around")
        snapshot = await host.sessions.read((await seat.session()).path)
        (asking,) = [e.id for e in snapshot.entries if '"toolCall"' in e.text]
        await seat.rewind(asking)
        await assert_sound(host)
        await talk(seat, "and now?")
        await assert_sound(host)


@asynchronous
async def test_bad_targets_of_a_rewind_change_nothing() -> None:
    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        assert isinstance(await refusal(seat.rewind(None)), SessionEmpty)
        await talk(seat, "first")
        other = await host.new_seat("other")
        await talk(other, "elsewhere")
        (stranger,) = await entry_ids(host, other, "elsewhere")
        token = seat.token
        refused = await refusal(seat.rewind(stranger))
        assert refused == EntryNotFound(session_id=token.session_id, entry_id=stranger)
        stale = await seat.ask(RewindSession(entry_id=None, token=other.token))
        assert stale == Stale(current=token)
        assert (seat.token, await said(host, seat)) == (token, ["first"])


@asynchronous
async def test_fork_leaves_the_seat_where_it_is_and_can_be_opened_beside_it() -> None:
    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first", "second")
        (second,) = await entry_ids(host, seat, "second")
        forked = await seat.fork(second, position="before", name="Aside")
        beside = await host.seat("beside", session=forked.session_id)
        await talk(beside, "otherwise")
        assert await said(host, beside) == ["first", "otherwise"]
        assert await said(host, seat) == ["first", "second"]
        names = {row.id: row.name for row in await host.sessions.list()}
        assert names[forked.session_id] == "Aside"
        await assert_sound(host)


@asynchronous
async def test_two_forks_at_once_are_two_sessions() -> None:
    import asyncio

    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first")
        one, two = await asyncio.gather(seat.fork(), seat.fork())
        assert one.session_id != two.session_id
        assert len(await host.sessions.list()) == 3


@pytest.mark.witness("SESSION-5")
@asynchronous
async def test_sessions_of_other_seats_and_processes_are_in_use() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host, machine.host(*ANSWERS) as elsewhere:
        seat, beside = await host.new_seat("main"), await host.new_seat("beside")
        far = await elsewhere.new_seat("far")
        for each in (seat, beside, far):
            await talk(each, "hello")
        for other, name in ((beside, "beside"), (far, "")):
            target = other.token.session_id
            works: list[Callable[[], Awaitable[Any]]] = [
                lambda target=target: seat.rename("n", target),  # type: ignore[misc]
                lambda target=target: seat.delete(target),  # type: ignore[misc]
                lambda target=target: seat.rewrite(Vacuum(), target),  # type: ignore[misc]
            ]
            for work in works:
                refused = await refusal(work())
                assert isinstance(refused, SessionInUse)
                assert refused.seat == name
        cleared = await seat.clear()
        assert set(cleared.in_use) == {beside.token.session_id, far.token.session_id}
        await talk(beside, "still here")
        await talk(far, "still here")


@asynchronous
async def test_deleting_the_active_session_gives_the_seat_a_new_one() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first")
        old = seat.token
        done = await seat.delete()
        assert done.session_id == old.session_id
        assert done.current == seat.token
        assert await host.sessions.list() == ()
        assert machine.disk.content(done.kept_at).count(b"first") == 1
        await talk(seat, "anew")
        (row,) = await host.sessions.list()
        assert row.id == seat.token.session_id


@asynchronous
async def test_deleting_a_session_that_never_got_a_file_is_done_too() -> None:
    async with Machine().host(*ANSWERS) as host:
        seat = await host.seat()
        old = seat.token
        done = await seat.delete()
        assert (done.session_id, done.kept_at) == (old.session_id, "")
        assert seat.token.session_id != old.session_id
        assert isinstance(await refusal(seat.delete("nowhere")), SessionNotFound)


@asynchronous
async def test_redaction_of_the_active_session_reaches_the_model_and_the_file() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "the key is sk-123", "go on")
        done = await seat.rewrite(Redact(patterns=("sk-[0-9]+",)))
        assert done.token == seat.token
        assert await said(host, seat) == ["the key is [redacted]", "go on"]
        await talk(seat, "more")
        path = (await seat.session()).path
        assert b"sk-123" not in machine.disk.content(path)
        await assert_sound(host)


@pytest.mark.witness("SESSION-3")
@asynchronous
async def test_file_that_another_program_changed_is_not_rewritten() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first")
        path = (await seat.session()).path
        (first,) = await entry_ids(host, seat, "first")
        line = b'{"type":"custom","id":"x","parentId":null,"customType":"other","data":1}\n'
        for work in (lambda: seat.rewind(first), lambda: seat.rewrite(Redact(patterns=("first",)))):
            machine.disk.put(path, machine.disk.content(path) + line)
            before = machine.disk.content(path)
            assert isinstance(await refusal(work()), ChangedOutside)
            assert machine.disk.content(path).startswith(before)
            await seat.rename("opened again")  # waits until it is
        await talk(seat, "second")


@asynchronous
async def test_vacant_seat_renames_and_deletes_what_nobody_has_open() -> None:
    machine = Machine()
    async with machine.host(*ANSWERS) as host:
        seat = await host.seat()
        await talk(seat, "first")
        session_id = seat.token.session_id
    async with machine.host() as host:
        desk = await host.vacant_seat("desk")
        await desk.rename("Named", session_id)
        (row,) = await host.sessions.list()
        assert (row.name, row.first_text) == ("Named", "first")
        await desk.delete(session_id)
        assert await host.sessions.list() == ()


# --- a failure at every call of the disk --------------------------------------------------------

Work = Callable[[Host, Seat, list[str]], Awaitable[Any]]

WORKS: dict[str, Work] = {
    "open": lambda host, seat, ids: seat.open(ids[0]),
    "new": lambda host, seat, ids: seat.new("named"),
    "rewind": lambda host, seat, ids: seat.rewind(ids[1]),
    "redact": lambda host, seat, ids: seat.rewrite(Redact(patterns=("second",))),
    "vacuum": lambda host, seat, ids: seat.rewrite(Vacuum()),
    "delete": lambda host, seat, ids: seat.delete(),
    "fork": lambda host, seat, ids: seat.fork(ids[1]),
    "rename": lambda host, seat, ids: seat.rename("other", ids[0]),
}


class _Scene:
    """A seat with a rewound session, another session, and a count of the calls of the disk."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.calls = 0
        self.fails_at = 0

    def before(self, call: Any) -> Any:
        self.calls += 1
        fails = self.calls == self.fails_at and call.name != "close"
        return Fail(errno=errno.EIO) if fails else None

    async def play(self, work: Work, fails_at: int) -> None:
        machine = self.machine
        async with machine.host(*ANSWERS) as host:
            seat = await host.seat()
            await talk(seat, "other")
            other = seat.token.session_id
            await seat.new()
            await talk(seat, "first", "second")
            (first,) = await entry_ids(host, seat, "first")
            await seat.rewind(first)
            await talk(seat, "third")
            session_id, token = seat.token.session_id, seat.token
            self.calls, self.fails_at = 0, fails_at
            machine.disk.before = self.before
            try:
                await work(host, seat, [other, first])
                done = True
            except Refused:
                done = False
            machine.disk.before = None
            if not done and seat.token == token:
                # The old session is live: what is sent with its token is taken, or the
                # session says that nobody knows; the next opening tells.
                view = await seat.session()
                assert view.state in ("live", "closed_for_writing")
                if view.state == "closed_for_writing":
                    await seat.open(session_id)
            events = await events_of(seat, "goes on")
            assert last(events).stop_reason == "end_turn"
            assert host.quarantine == ()
        async with machine.host(*ANSWERS) as host:
            for summary in await host.sessions.list():
                assert summary.problem == ""
                report = await host.sessions.verify(summary.path)
                assert [p for p in report.problems if p.kind not in ("epoch",)] == []


@pytest.mark.witness("SESSION-4")
@pytest.mark.parametrize("name", WORKS)
def test_seat_goes_on_whatever_call_of_the_disk_fails(name: str) -> None:
    @asynchronous
    async def play(scene: _Scene, fails_at: int) -> None:
        await scene.play(WORKS[name], fails_at)

    whole = _Scene()
    play(whole, 0)
    calls = min(whole.calls, 120)
    assert calls > 0 or name == "new"
    for fails_at in range(1, calls + 1):
        play(_Scene(), fails_at)
