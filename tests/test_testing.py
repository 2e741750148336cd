"""`tenure.testing`: what an embedder imports, and the expectations that it gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenure.testing
from tenure.messages.session import (
    Appended,
    GetSession,
    NoSession,
    OpenNewSession,
    SessionChanged,
    SessionView,
)
from tenure.messages.tokens import SessionId, SessionToken
from tenure.messages.turn import TurnBusy, TurnEnded
from tenure.runtime.testing.owners import stepping
from tenure.testing import (
    Scripted,
    events_of,
    expect_event,
    expect_reply,
    simulate,
    transcript_of,
)

TOKEN = SessionToken(session_id=SessionId("s"), epoch=1)


def test_every_name_can_be_had_and_is_of_the_harness() -> None:
    for name in tenure.testing.__all__:
        assert getattr(tenure.testing, name) is not None
    with pytest.raises(AttributeError, match=r"'tenure.testing' has no attribute 'ghost'"):
        tenure.testing.__getattr__("ghost")


@pytest.mark.real
def test_importing_it_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("pytest", "greenlet", "asyncio", "msgspec", "pykka", "tenure.runtime.host")
    program = f"import sys, tenure.testing; print(sorted(set(sys.modules) & set({heavy!r})))"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert ran.stdout.strip() == "[]"


# --- expectations -------------------------------------------------------------------------------


def test_an_expected_reply_is_given_back_typed() -> None:
    reply = Appended(token=TOKEN, entry_ids=(), seq=3)
    assert expect_reply(reply, Appended, seq=3) is reply


def test_another_reply_is_shown_with_what_it_says() -> None:
    with pytest.raises(AssertionError) as failed:
        expect_reply(NoSession(reason="it was lost"), SessionView)
    assert str(failed.value) == (
        "expected SessionView, got NoSession(reason='it was lost')\n"
        "it says: this seat has no session: it was lost; open one first"
    )


def test_a_reply_with_another_field_is_shown_with_both_values() -> None:
    with pytest.raises(AssertionError) as failed:
        expect_reply(Appended(token=TOKEN, entry_ids=(), seq=3), Appended, seq=4)
    assert str(failed.value) == "expected Appended with seq=4, got seq=3"


def test_a_missing_event_shows_those_that_there_were() -> None:
    ended = TurnEnded(
        turn_id=tenure.messages.tokens.turn_id(SessionId("s"), 1), stop_reason="error"
    )
    assert expect_event([ended], TurnEnded, stop_reason="error") is ended
    with pytest.raises(AssertionError) as failed:
        expect_event([ended], TurnEnded, stop_reason="stopped")
    assert str(failed.value) == (
        "no event TurnEnded, stop_reason='stopped'; the events were:\n"
        "  TurnEnded(turn_id='s/1', stop_reason='error')"
    )
    with pytest.raises(AssertionError, match="the events were:\n  none"):
        expect_event([], TurnEnded)


def test_events_of_a_world_are_those_of_every_seat_and_of_one() -> None:
    with simulate(3) as world:
        log = events_of(world)
        host = world.host(model=Scripted(["fine"]))
        for seat in ("one", "other"):
            world.run(host.seat(seat))
            world.run(host.prompt("go", seat))
        assert len(log.of(TurnEnded)) == 2
        assert len(log.of(TurnEnded, seat="one")) == 1
        assert len(log.events) == len(log.published_by)
        assert {host for host, _ in log.published_by} == {"a1"}


def test_a_transcript_is_read_from_the_disk_and_without_a_trace() -> None:
    with simulate(5) as world:
        log = events_of(world)
        host = world.host(model=Scripted(["fine"]))
        world.run(host.seat())
        world.run(host.prompt("go"))
        session = expect_reply(world.ask(host, GetSession()), SessionView).token.session_id
        calls, made = len(world.disk.calls), len(world.chooser.made)
        expected = ["user: go", "assistant: fine"]
        assert transcript_of(world, session) == expected
        assert len(world.chooser.made) == made
        assert len(world.disk.calls) > calls
        world.ask(host, OpenNewSession())
        assert transcript_of(world, session) == expected
        assert len(log.of(SessionChanged)) == 2
        world.power_loss()
        assert transcript_of(world, session) == expected
        with pytest.raises(AssertionError, match="there is no session 'ghost' in /work"):
            transcript_of(world, "ghost")


def test_an_owner_has_its_own_step_again_after_the_block() -> None:
    from tenure.actors.turn import TurnActor, turn_step

    def refuse(state: object, message: object, taken: object) -> object:
        raise AssertionError(TurnBusy)

    with stepping(TurnActor, refuse):  # type: ignore[arg-type]
        assert TurnActor.step is refuse
    assert TurnActor.step is turn_step
