"""Sessions on a whole host: swaps under work, disks that fail, files that others change."""

import asyncio
import errno

import pytest
from seat_world import Counted, Gate, Seated, crash, seated, use
from steps import said

from tenure.messages.base import Reply
from tenure.messages.bus import OwnerStopped
from tenure.messages.session import (
    Appended,
    AppendEntries,
    AppendFailed,
    AppendUnknown,
    ChangedOutside,
    ContinueSession,
    NoSession,
    OpenNewSession,
    OpenSession,
    SessionChanged,
    SessionInUse,
    SessionNotFound,
    SessionOpened,
    Stale,
    StartTurn,
)
from tenure.messages.tokens import SessionId, SessionToken
from tenure.messages.turn import TextDelta, TurnAccepted, TurnEnded, TurnNotStarted, TurnStarted
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.errors import Refused
from tenure.runtime.testing.faults import (
    DISK_FULL,
    WRITING_CALLS,
    DiskCall,
    Fail,
    Fault,
    FaultRule,
    FaultRules,
)

SEEDS = range(8)
NO_SPACE = Fail(errno=errno.ENOSPC)
IO_ERROR = Fail(errno=errno.EIO)


def append(s: Seated, text: str, token: SessionToken | None = None) -> Reply:
    return s.ask(AppendEntries(token=token or s.seat.token, entries=(said(text),)))


def texts(s: Seated, session_id: str) -> list[str]:
    """What users said in a session, as its file has it."""
    messages = [line["message"] for line in s.lines(session_id) if "message" in line]
    return [str(each["content"]) for each in messages if each["role"] == "user"]


def chained(s: Seated, session_id: str) -> bool:
    """Whether every entry of the file is the child of the one before it."""
    lines = s.lines(session_id)
    return [line["parentId"] for line in lines[1:]] == [line["id"] for line in lines[:-1]]


def refuse_seat_record(call: DiskCall) -> Fault | None:
    """Nothing can be written below the folder of the seat records."""
    return NO_SPACE if "/hosts/" in call.path and call.name in WRITING_CALLS else None


# --- swaps -----------------------------------------------------------------------------------


@pytest.mark.witness("SESSION-5")
@pytest.mark.parametrize("seed", SEEDS)
def test_appends_and_a_swap_at_once_land_in_their_own_session_or_are_told(seed: int) -> None:
    with seated(seed=seed) as s:
        append(s, "first")
        old = s.seat.token
        asks = [
            s.world.tell(s.host, AppendEntries(token=old, entries=(said(f"{n}"),)))
            for n in range(6)
        ]
        swap = s.world.tell(s.host, OpenNewSession())
        s.world.run(asyncio.wait([*asks, swap]))
        replies = [ask.result() for ask in asks]
        new = swap.result().token
        assert all(isinstance(reply, Appended | Stale) for reply in replies)
        landed = {f"{n}" for n, reply in enumerate(replies) if isinstance(reply, Appended)}
        assert {reply.token for reply in replies if isinstance(reply, Appended)} <= {old}
        assert set(texts(s, old.session_id)) == {"first", *landed}
        assert texts(s, new.session_id) == []
        assert chained(s, old.session_id)


@pytest.mark.witness("SESSION-4")
def test_session_that_cannot_be_loaded_leaves_the_turn_running_and_the_token_valid() -> None:
    gate = Gate()
    with seated([gate, "one"]) as s:
        token = s.seat.token
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        missing = s.ask(OpenSession(session_id=SessionId("no such session")))
        assert isinstance(missing, SessionNotFound)
        assert s.seat.token == token
        gate.open()
        s.world.run(turn)
        assert s.ends() == [("end_turn", None)]
        assert isinstance(append(s, "still here", token), Appended)


@pytest.mark.witness("SESSION-4")
def test_swap_whose_commit_fails_gives_the_seat_back_what_it_had() -> None:
    with seated("one", "two") as s:
        s.run("first")
        token = s.seat.token
        other = s.world.run(s.host.seat("other"))
        s.run("elsewhere", seat="other")
        there = other.token.session_id
        s.do(s.host.host.close_seat("other"))
        s.world.disk.before = FaultRules(
            FaultRule(
                fault=NO_SPACE, calls=("create", "append"), path_ends="", nth=1, hits="lasting"
            )
        )
        refused = s.ask(OpenSession(session_id=there))
        s.world.disk.before = None
        assert not isinstance(refused, SessionOpened)
        assert s.seat.token == token
        assert isinstance(append(s, "still here", token), Appended)
        # Nothing of the target is held: it can be opened now.
        assert isinstance(s.ask(OpenSession(session_id=there)), SessionOpened)


@pytest.mark.witness("SESSION-5")
@pytest.mark.parametrize("seed", SEEDS)
def test_swap_under_a_streaming_turn_settles_it_in_its_own_file_and_leaves_the_new_one_alone(
    seed: int,
) -> None:
    gate = Gate()
    with seated(["half of ", gate, "late"], "in the new one", seed=seed) as s:
        old = s.seat.token.session_id
        turn = s.prompt("go")
        s.until(lambda: bool(s.said(TextDelta)))
        opened = s.ask(OpenNewSession())
        assert isinstance(opened, SessionOpened)
        gate.open()
        s.world.run(turn)
        assert s.ends() == [("stopped", "swap")]
        assert s.told(old) == ["user", "assistant"]
        assert s.lines() == []
        # The end of the old turn is said before the seat has its new session.
        kinds = [type(event) for event in s.log.events]
        last_change = len(kinds) - 1 - kinds[::-1].index(SessionChanged)
        assert kinds.index(TurnEnded) < last_change
        s.run("next")
        assert s.told() == ["user", "assistant"]
        assert s.told(old) == ["user", "assistant"]
        # And the old one can be opened again as it was left.
        back = s.ask(OpenSession(session_id=old))
        assert isinstance(back, SessionOpened)
        assert back.damage.count == 0


@pytest.mark.witness("SESSION-5", "TURN-7")
@pytest.mark.parametrize("seed", SEEDS)
def test_swap_under_running_tools_settles_their_calls_in_the_old_file(seed: int) -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    with seated([use("c1"), use("c2")], tools=[count.tool], seed=seed) as s:
        old = s.seat.token.session_id
        turn = s.prompt("go")
        s.until(lambda: gate.reached == 2)
        waiting = s.prompt("waits", when_busy="queue")
        s.until_queued("waits")
        opened = s.ask(OpenNewSession())
        assert isinstance(opened, SessionOpened)
        assert opened.dropped == ("waits",)
        s.world.run(asyncio.wait([turn, waiting]))
        assert s.told(old) == ["user", "assistant c1 c2", "result c1", "result c2"]
        assert s.lines() == []
        assert sorted(s.ends()) == [("stopped", "swap")] * 2


@pytest.mark.witness("SESSION-1")
@pytest.mark.parametrize("seed", SEEDS)
def test_swaps_that_race_run_one_after_the_other_and_each_is_answered(seed: int) -> None:
    with seated("one", "two", "three", seed=seed) as s:
        swaps = [s.world.tell(s.host, OpenNewSession(name=f"{number}")) for number in range(4)]
        start = s.world.tell(s.host, StartTurn(text="go"))
        s.world.run(asyncio.wait([*swaps, start]))
        s.settle()
        opened = [swap.result() for swap in swaps]
        assert all(isinstance(reply, SessionOpened) for reply in opened)
        order = [event.token for event in s.said(SessionChanged)][1:]
        assert sorted(reply.token.session_id for reply in opened) == sorted(
            token.session_id for token in order
        )
        assert s.seat.token == order[-1]
        assert isinstance(start.result(), TurnAccepted | TurnNotStarted)
        # Every session but the last was let go: another seat may have it.
        for token in order[:-1]:
            if s.lines(token.session_id):
                s.world.run(s.host.seat(f"seat of {token.session_id[:4]}", token.session_id))


@pytest.mark.parametrize("patience", range(0, 60, 5))
def test_swap_whose_asker_gave_up_is_made_whole_or_not_at_all(patience: int) -> None:
    gate = Gate()
    with seated([gate, "one"], "two") as s:
        old = s.seat.token
        turn = s.prompt()
        s.until(lambda: gate.reached > 0)
        swap = s.world.tell(s.host, OpenNewSession())

        async def wait() -> None:
            for _ in range(patience):
                await asyncio.sleep(0)

        s.world.run(wait())
        swap.cancel()
        s.world.settle(1)
        gate.open()
        s.world.run(turn)
        swapped = s.seat.token != old
        assert s.ends() == [("stopped", "swap") if swapped else ("end_turn", None)]
        assert s.told(old.session_id) == ["user", "assistant"]
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)


@pytest.mark.parametrize("seed", SEEDS)
def test_stale_writers_change_nothing_and_learn_what_is_current(seed: int) -> None:
    """Two clients write with what they know; only the one that knows the present is heard."""
    with seated(seed=seed) as s:
        append(s, "first")
        old = s.seat.token
        s.ask(OpenNewSession())
        append(s, "elsewhere")
        s.ask(OpenSession(session_id=old.session_id))
        now = s.seat.token
        assert now.epoch > old.epoch
        pairs = [
            (s.world.tell(s.host, AppendEntries(token=token, entries=(said(f"{n}"),))), token)
            for n in range(20)
            for token in (old, now)
        ]
        s.world.run(asyncio.wait([ask for ask, _ in pairs]))
        for ask, token in pairs:
            reply = ask.result()
            assert isinstance(reply, Appended) if token == now else reply == Stale(current=now)
        assert len(texts(s, now.session_id)) == 21
        assert chained(s, now.session_id)


# --- disks -----------------------------------------------------------------------------------


def full_at(nth: int) -> FaultRules:
    return FaultRules(FaultRule(fault=NO_SPACE, calls=("append",), path_ends=".jsonl", nth=nth))


def failing_sync(nth: int) -> FaultRules:
    return FaultRules(FaultRule(fault=IO_ERROR, calls=("datasync",), path_ends=".jsonl", nth=nth))


@pytest.mark.witness("SESSION-3", "TURN-8")
@pytest.mark.parametrize("nth", range(1, 8))
def test_full_disk_at_any_append_of_a_turn_ends_it_and_leaves_a_whole_conversation(
    nth: int,
) -> None:
    """Of the prompt, the answer, two notes in the audit, the results, the last answer.

    What was said is kept or refused.  A note that cannot be written is an event, no end.
    """
    count = Counted(mutating=False)
    model = Scripted([[use("c1"), use("c2")], "done", "again"])
    with seated(model=model, tools=[count.tool]) as s:
        assert isinstance(append(s, "so that the file is there"), Appended)
        s.world.disk.before = full_at(nth)
        if nth == 1:
            with pytest.raises(Refused) as refused:
                s.run("go")
            assert isinstance(refused.value.reply, AppendFailed)
        else:
            s.run("go")
        s.settle()
        reasons = [reason for reason, _ in s.ends()]
        expected = {1: "error", 3: "end_turn", 4: "end_turn"}
        assert reasons == [expected.get(nth, "session_lost")]
        calls = [word.split()[1:] for word in s.told() if word.startswith("assistant c")]
        results = [word for word in s.told() if word.startswith("result")]
        assert results == [f"result {call}" for batch in calls for call in batch]
        assert count.runs == ([] if nth <= 2 else ["c1", "c2"])
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)
        assert s.told()[-1] == "assistant"
        assert chained(s, s.seat.token.session_id)


@pytest.mark.witness("SESSION-3")
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_failed_sync_closes_the_session_and_opening_it_again_heals(nth: int) -> None:
    count = Counted(mutating=False)
    with seated([use("c1")], "done", "again", tools=[count.tool]) as s:
        append(s, "so that the file is there")
        old = s.seat.token
        s.world.disk.before = failing_sync(nth)
        if nth == 1:
            with pytest.raises(Refused) as refused:
                s.run("go")
            assert isinstance(refused.value.reply, AppendUnknown)
        else:
            s.run("go")
        s.settle()
        s.world.disk.before = None
        assert s.do(s.seat.session()).state == "closed_for_writing"
        assert isinstance(append(s, "refused"), AppendUnknown)
        with pytest.raises(Refused):
            s.run("refused")
        opened = s.ask(ContinueSession())
        assert isinstance(opened, SessionOpened)
        assert opened.token.session_id == old.session_id
        assert opened.token.epoch > old.epoch
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)
        pairs = [word for word in s.told() if "c1" in word]
        assert pairs in ([], ["assistant c1", "result c1"])


def test_disk_that_is_full_for_long_refuses_everything_and_loses_nothing() -> None:
    with seated("one", "two") as s:
        s.run("first")
        s.world.disk.before = FaultRules(DISK_FULL)
        for _ in range(3):
            with pytest.raises(Refused):
                s.run("refused")
        s.world.disk.before = None
        s.run("second")
        assert texts(s, s.seat.token.session_id) == [
            "[{'type': 'text', 'text': 'first'}]",
            "[{'type': 'text', 'text': 'second'}]",
        ]


# --- files that others change --------------------------------------------------------------------


def path_of(s: Seated) -> str:
    return s.do(s.seat.session()).path


def write_outside(s: Seated) -> bytes:
    """Another program appends an entry to the seat's file."""
    path = path_of(s)
    leaf = s.lines()[-1]["id"]
    line = b'{"type":"custom","id":"x1","parentId":"%s"}\n' % leaf.encode()
    s.world.disk.put(path, s.world.disk.content(path) + line)
    return line


@pytest.mark.witness("SESSION-2")
def test_file_that_another_program_wrote_is_opened_again_at_the_next_epoch() -> None:
    with seated("one", "two", watchers=()) as s:
        s.run("first")
        old = s.seat.token
        path = path_of(s)
        line = (
            b'{"type":"custom","id":"x1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}\n'
        )
        s.world.disk.put(path, s.world.disk.content(path) + line)
        assert append(s, "lost") == ChangedOutside(path=path)
        s.settle()
        assert s.seat.token == SessionToken(session_id=old.session_id, epoch=old.epoch + 1)
        assert append(s, "late", old) == Stale(current=s.seat.token)
        assert isinstance(append(s, "kept"), Appended)
        assert line in s.world.disk.content(path)


@pytest.mark.parametrize("where", ["model", "tools"])
def test_turn_under_a_file_that_another_program_wrote_is_lost_and_cancelled(where: str) -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    first = [gate, "late"] if where == "model" else [use("c1")]
    with seated(first, "two", tools=[count.tool], watchers=()) as s:
        turn = s.prompt("go")
        s.until(lambda: gate.reached > 0)
        write_outside(s)
        assert isinstance(append(s, "somebody else"), ChangedOutside)
        s.world.run(turn)
        assert s.ends() == [("session_lost", None)]
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)
        told = s.told()
        assert [word for word in told if "c1" in word] in ([], ["assistant c1", "result c1"])
        assert told[-2:] == ["user", "assistant"]


# --- owners and processes that fail --------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_session_owner_that_fails_during_a_turn_comes_back_with_the_session(seed: int) -> None:
    gate = Gate()
    count = Counted("count", gate, mutating=False)
    model = Scripted([[use("c1")], "two"])
    with seated(model=model, tools=[count.tool], seed=seed) as s:
        old = s.seat.token
        turn = s.prompt("go")
        s.until(lambda: gate.reached > 0)
        crash(s, "session")
        poke = s.world.tell(s.host, ContinueSession())
        s.world.run(turn)
        assert isinstance(s.world.run(poke), OwnerStopped)
        assert s.ends() == [("session_lost", None)]
        s.run("next")
        assert s.ends()[-1] == ("end_turn", None)
        assert s.seat.token.session_id == old.session_id
        assert s.seat.token.epoch > old.epoch
        assert s.told() == ["user", "assistant c1", "result c1", "user", "assistant"]


@pytest.mark.witness("SUP-1")
@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("seed", range(3))
def test_session_owner_that_fails_at_any_step_of_a_swap_holds_one_session_at_most(
    nth: int, seed: int
) -> None:
    with seated("one", "two", "three", seed=seed) as s:
        s.run("first")
        first = s.seat.token.session_id
        s.ask(OpenNewSession())
        s.run("second")
        second = s.seat.token.session_id
        s.world.crashes.plan(s.host.process.name, "session", nth)
        swap = s.world.tell(s.host, OpenSession(session_id=first))
        s.world.run(asyncio.wait([swap]))
        s.settle()
        here = s.do(s.seat.session()).token.session_id
        assert here in (first, second)
        # What the seat does not have is free for another.
        other = second if here == first else first
        seat = s.world.run(s.host.seat("other", other))
        assert seat.token.session_id == other
        s.run("third")
        assert s.ends()[-1] == ("end_turn", None)


@pytest.mark.witness("SESSION-5")
def test_session_is_live_in_one_seat_of_one_process() -> None:
    with seated("one", "two") as s:
        s.run("first")
        here = s.seat.token.session_id
        refused = s.ask(OpenSession(session_id=here))
        assert isinstance(refused, SessionOpened)
        with pytest.raises(Refused) as elsewhere:
            s.world.run(s.host.seat("other", here))
        assert isinstance(elsewhere.value.reply, SessionInUse)
        assert elsewhere.value.reply.seat == "main"
        second = s.world.host("b", model=Scripted(["b"]))
        with pytest.raises(Refused) as abroad:
            s.world.run(second.seat("main", here))
        assert isinstance(abroad.value.reply, SessionInUse)
        # Without a name the second host passes it over and begins a new one.
        begun = s.world.run(second.seat("main"))
        assert begun.token.session_id != here


def test_vacant_seat_continues_with_the_newest_session_that_nobody_holds() -> None:
    with seated("one", "two", "three") as s:
        s.run("older")
        older = s.seat.token.session_id
        s.ask(OpenNewSession())
        s.world.run(s.world.clock.sleep(1))
        s.run("newer")
        newer = s.seat.token.session_id
        s.ask(OpenNewSession())
        other = s.world.run(s.host.seat("other"))
        assert other.token.session_id == newer
        third = s.world.run(s.host.seat("third"))
        assert third.token.session_id == older


def test_session_whose_holder_was_killed_is_taken_over_at_the_next_epoch() -> None:
    with seated("one") as s:
        s.run("first")
        old = s.seat.token
        s.host.kill()
        second = s.world.host("b", model=Scripted(["two"]))
        seat = s.world.run(second.seat())
        assert seat.token.session_id == old.session_id
        assert seat.token.epoch > old.epoch
        assert s.told(old.session_id) == ["user", "assistant"]


def test_parked_seat_is_opened_again_at_its_epoch_by_the_next_prompt() -> None:
    with seated("one", "two") as s:
        s.run("first")
        token = s.seat.token
        s.do(s.seat.park())
        assert s.do(s.seat.session()).state == "parked"
        s.run("second")
        assert s.seat.token == token
        assert s.told() == ["user", "assistant"] * 2


def test_parked_session_that_another_host_took_leaves_the_seat_vacant_and_usable() -> None:
    with seated("one", "two") as s:
        s.run("first")
        here = s.seat.token.session_id
        s.do(s.seat.park())
        second = s.world.host("b", model=Scripted(["b"]))
        s.world.run(second.seat("main", here))
        reply = s.ask(StartTurn(text="go"))
        assert isinstance(reply, NoSession)
        assert "in use" in reply.remedy
        opened = s.ask(ContinueSession())
        assert isinstance(opened, SessionOpened)
        assert opened.token.session_id != here
        s.run("go")
        assert len(s.said(TurnStarted)) == 2


@pytest.mark.witness("SESSION-2")
def test_parked_session_that_another_host_had_and_parked_is_at_an_epoch_of_its_own() -> None:
    """Else a late writer of the other host would be taken for one of this seat."""
    with seated("one", "two") as s:
        s.run("first")
        mine = s.seat.token
        s.do(s.seat.park())
        second = s.world.host("b", model=Scripted(["b"]))
        theirs = s.world.run(second.seat("main", mine.session_id)).token
        s.world.run(second.close())
        s.run("second")
        assert mine.epoch < theirs.epoch < s.seat.token.epoch
        assert append(s, "late", theirs) == Stale(current=s.seat.token)
