"""The embedding API for scripts, on real files and a real loop in a thread of its own."""

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tenure.messages.models import ModelDone, ModelEvent, ModelRequest, ModelText
from tenure.messages.session import GetSession, SessionInUse, SessionView
from tenure.messages.turn import TextDelta, TurnEnded, TurnNotRunning, TurnStopping
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.errors import BadRoot, HostClosed, Refused
from tenure.runtime.host import Host

pytestmark = pytest.mark.real


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "notes").mkdir()
    return str(tmp_path / "notes")


@pytest.fixture
def threads() -> Callable[[], set[threading.Thread]]:
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) - before


class Endless:
    """A model that speaks until it is stopped."""

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        import asyncio

        while True:
            yield ModelText(text="and on ")
            await asyncio.sleep(0)


def test_script_holds_a_conversation_and_its_turns_are_durable(
    root: str, threads: Callable[[], set[threading.Thread]]
) -> None:
    with Host.open_sync(root, model=Scripted(["First.", "Second."])) as host:
        seat = host.seat()
        for expected in ("First.", "Second."):
            events = list(seat.prompt("hello"))
            assert isinstance(events[-1], TurnEnded)
            assert events[-1].stop_reason == "end_turn"
            said = [event.text for event in events if isinstance(event, TextDelta)]
            assert "".join(said) == expected
        (summary,) = host.sessions()
        view = seat.ask(GetSession())
        assert isinstance(view, SessionView)
    lines = Path(view.path).read_text().splitlines()
    assert "Second." in lines[-1]
    assert summary.path == view.path
    assert threads() == set()


def test_host_opened_again_goes_on_with_the_newest_session(root: str) -> None:
    with Host.open_sync(root, model=Scripted(["One."])) as host:
        seat = host.seat()
        list(seat.prompt("hello"))
        token = seat.token
    with Host.open_sync(root, model=Scripted(["Two."])) as host:
        assert host.seat().token.session_id == token.session_id
        opened = host.seat().new("fresh")
        assert opened.token.session_id != token.session_id
        assert host.seat().open(token.session_id).token.session_id == token.session_id


def test_loop_over_a_prompt_may_be_left_and_the_turn_stopped(root: str) -> None:
    with Host.open_sync(root, model=Endless()) as host:
        seat = host.seat()
        for event in seat.prompt("hello"):
            if isinstance(event, TextDelta):
                break
        assert isinstance(seat.stop(), TurnStopping)
        seat.wait_idle()
        assert isinstance(seat.stop(), TurnNotRunning)


def test_host_closes_over_a_turn_that_runs(
    root: str, threads: Callable[[], set[threading.Thread]]
) -> None:
    with Host.open_sync(root, model=Endless()) as host:
        seat = host.seat()
        events = seat.prompt("hello")
        next(event for event in events if isinstance(event, TextDelta))
    assert threads() == set()
    with Host.open_sync(root, model=Scripted(["Hi."])) as host:
        assert host.seat("main", session=seat.token.session_id).token.epoch > seat.token.epoch


def test_error_in_the_body_closes_the_host(
    root: str, threads: Callable[[], set[threading.Thread]]
) -> None:
    def body() -> None:
        with Host.open_sync(root, model=Endless()) as host:
            next(host.seat().prompt("hello"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    assert threads() == set()


def test_second_host_is_refused_the_session_of_the_first(root: str) -> None:
    with (
        Host.open_sync(root, model=Scripted(["Hi."])) as first,
        Host.open_sync(root, model=Scripted(["Hi."])) as second,
    ):
        seat = first.seat()
        list(seat.prompt("hello"))
        with pytest.raises(Refused) as refusal:
            second.seat("main", session=seat.token.session_id)
        assert isinstance(refusal.value.reply, SessionInUse)


def test_refused_prompt_raises_and_the_seat_lives(root: str) -> None:
    with Host.open_sync(root, model=Scripted(["Hi."])) as host:
        seat = host.seat()
        with pytest.raises(Refused, match="empty"):
            list(seat.prompt(""))
        assert isinstance(list(seat.prompt("hello"))[-1], TurnEnded)


def test_model_string_of_one_turn_is_passed_on(root: str) -> None:
    with Host.open_sync(root, model=Scripted(["Hi."])) as host:
        events = host.seat().prompt("hello", model="nobody:knows-it")
        with pytest.raises(Refused, match="ModelUnavailable"):
            list(events)


def test_closed_host_says_that_it_is_closed(root: str) -> None:
    host = Host.open_sync(root, model=Endless())
    with pytest.raises(HostClosed, match="with"):
        host.seat()
    with host:
        seat = host.seat()
        events = seat.prompt("hello")
        next(events)
    for use in (seat.stop, seat.wait_idle, seat.new, host.sessions, host.seat):
        with pytest.raises(HostClosed):
            use()
    with pytest.raises(HostClosed):
        seat.ask(GetSession())
    with pytest.raises(HostClosed):
        list(events)
    assert seat.name == "main"


def test_prompt_that_was_never_read_is_dropped_quietly(root: str) -> None:
    with Host.open_sync(root, model=Scripted(["Hi."])) as host:
        seat = host.seat()
        unread = seat.prompt("hello")
        del unread
        assert isinstance(seat.stop(), TurnNotRunning)


def test_root_that_is_none_is_refused_and_leaves_no_thread(
    tmp_path: Path, threads: Callable[[], set[threading.Thread]]
) -> None:
    with pytest.raises(BadRoot), Host.open_sync(str(tmp_path / "none")):
        raise AssertionError
    assert threads() == set()


def test_several_threads_may_use_one_host(root: str) -> None:
    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="Hi.")
        yield ModelDone()

    ends: list[str] = []
    with Host.open_sync(root, model=model) as host:

        def talk(name: str) -> None:
            *_, last = host.seat(name).prompt("hello")
            assert isinstance(last, TurnEnded)
            ends.append(last.stop_reason)

        talkers = [threading.Thread(target=talk, args=(f"seat {n}",)) for n in range(5)]
        for talker in talkers:
            talker.start()
        for talker in talkers:
            talker.join()
    assert ends == ["end_turn"] * 5
