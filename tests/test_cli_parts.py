"""The parts of the command line that decide something: what is shown, typed and meant."""

import asyncio
import os
from collections.abc import Callable, Coroutine

import msgspec
import pytest

from tenure.messages.approval import Allow, ApprovalRequest, Choice, Deny, Stop
from tenure.messages.content import Usage
from tenure.messages.session import Damage
from tenure.messages.tokens import CallId, RequestId, SessionId, SessionToken, TurnId
from tenure.messages.turn import ModelAnswered, ModelRetrying, TextDelta, TurnEnded
from tenure.runtime.cli.approving import Person, choice_of
from tenure.runtime.cli.chatting import ChatLines
from tenure.runtime.cli.listing import id_width, moment
from tenure.runtime.cli.screen import TextScreen, damage_note, json_of, one_line
from tenure.runtime.cli.terminal import lines_of, visible
from tenure.runtime.cli.turns import exit_code_of
from tenure.runtime.doors.transcripts import SessionSummary

TURN = TurnId("a/1")


# --- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("safe\rEVIL", "safe␍EVIL"),
        ("a\u202eb", "a\\u202eb"),
        ("\x7f\x9b", "␡\\u009b"),
        ("Grüße 🦩", "Grüße 🦩"),
    ],
)
def test_what_a_terminal_would_act_on_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_half_surrogates_in_an_event_become_replacement_characters_in_json() -> None:
    line = json_of(TextDelta(turn_id=TURN, text="a\ud800b"))
    assert msgspec.json.decode(line) == {"type": "TextDelta", "turn_id": "a/1", "text": "a\ufffdb"}


def test_json_of_an_untagged_struct_says_its_class_too() -> None:
    assert msgspec.json.decode(json_of(Damage(torn_bytes=3)))["type"] == "Damage"


def answered(text: str) -> ModelAnswered:
    return ModelAnswered(turn_id=TURN, text=text, model="m", usage=Usage())


def delta(text: str) -> TextDelta:
    return TextDelta(turn_id=TURN, text=text)


def test_text_that_came_in_pieces_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    screen = TextScreen()
    for event in (delta("one "), delta("two"), answered("one two")):
        screen.event(event)
    assert capsys.readouterr().out == "one two\n"


def test_pieces_that_were_missed_are_made_up_for_by_the_whole_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = TextScreen()
    for event in (delta("one "), answered("one two three")):
        screen.event(event)
    for event in (delta("two"), answered("one two")):
        screen.event(event)
    assert capsys.readouterr().out == "one two three\ntwo\none two\n"


def test_the_text_of_a_failed_attempt_is_not_joined_with_the_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = TextScreen()
    retrying = ModelRetrying(turn_id=TURN, attempt=2, delay_ms=1500, kind="overloaded", reason="x")
    for event in (delta("bad"), retrying, delta("good"), answered("good")):
        screen.event(event)
    printed = capsys.readouterr()
    assert printed.out == "bad\ngood\n"
    assert "attempt 2 in 1.5 s" in printed.err


def test_a_long_text_is_shortened_to_a_line_that_says_so() -> None:
    assert one_line("first\nsecond\nthird\n") == "first (+2 lines)"
    assert one_line("x" * 500).endswith("…")


def test_one_damaged_place_and_many_are_counted() -> None:
    assert damage_note(Damage(torn_bytes=9), "f").startswith("1 damaged place in f")
    assert damage_note(Damage(altered_records=2), "f").startswith("2 damaged places in f")


# --- how a turn ended ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (TurnEnded(turn_id=TURN, stop_reason="end_turn"), 0),
        (TurnEnded(turn_id=TURN, stop_reason="stopped", cause="user"), 130),
        (TurnEnded(turn_id=TURN, stop_reason="stopped", cause="approval"), 130),
        (TurnEnded(turn_id=TURN, stop_reason="stopped", cause="budget"), 1),
        (TurnEnded(turn_id=TURN, stop_reason="owner_lost"), 1),
        (TurnEnded(turn_id=TURN, stop_reason="max_tokens"), 1),
    ],
)
def test_only_the_users_own_stop_exits_with_130(ended: TurnEnded, code: int) -> None:
    assert exit_code_of(ended) == code


# --- what a person types ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "choice"),
    [
        ("y", Allow()),
        (" YES ", Allow()),
        ("s", Allow(scope="session")),
        ("always", Allow(scope="always")),
        ("n", Deny()),
        ("n it is the wrong file", Deny(reason="it is the wrong file")),
        ("stop", Stop()),
        ("/stop", Stop()),
        ("", None),
        ("yes please", None),
        ("always not", None),
        ("stop it", None),
    ],
)
def test_a_choice_is_a_whole_word_and_nothing_is_guessed(line: str, choice: Choice | None) -> None:
    assert choice_of(line) == choice


def request(tool: str) -> ApprovalRequest:
    return ApprovalRequest(
        request_id=RequestId(tool),
        token=SessionToken(session_id=SessionId("a"), epoch=1),
        turn_id=TURN,
        call_id=CallId("c"),
        tool=tool,
        label=tool,
        arguments={},
        digest="",
        policy_version="",
        preview=None,
        asked_ms=0,
    )


def test_a_person_is_asked_again_until_the_answer_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = iter(["what?", "", "n no"])

    async def answers() -> str | None:
        return next(typed)

    choice = asyncio.run(Person(answers, TextScreen())(request("write")))
    assert choice == Deny(reason="no")
    assert capsys.readouterr().err.count("Allow?") == 3


def test_a_person_whose_input_ends_has_not_allowed_anything() -> None:
    async def answers() -> str | None:
        return None

    choice = asyncio.run(Person(answers, TextScreen())(request("write")))
    assert isinstance(choice, Deny)


def test_two_requests_are_asked_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    asked = asyncio.Event()
    typed: asyncio.Queue[str] = asyncio.Queue()

    async def answers() -> str:
        asked.set()
        return await typed.get()

    async def both() -> tuple[Choice, Choice]:
        person = Person(answers, TextScreen())
        first = asyncio.create_task(person(request("first")))
        second = asyncio.create_task(person(request("second")))
        await asked.wait()
        assert "second" not in capsys.readouterr().err
        typed.put_nowait("y")
        typed.put_nowait("n")
        return await first, await second

    assert asyncio.run(both()) == (Allow(), Deny())


# --- the lines of the input ---------------------------------------------------------------------


def read_all(data: bytes) -> list[str]:
    async def read(descriptor: int) -> list[str]:
        return [line async for line in lines_of(descriptor)]

    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    try:
        return asyncio.run(read(reading))
    finally:
        os.close(reading)


@pytest.mark.real
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\n\ntwo\n", ["one", "", "two"]),
        (b"\xff\n", ["\ufffd"]),
    ],
)
def test_lines_come_without_their_ends_and_the_last_needs_none(
    data: bytes, lines: list[str]
) -> None:
    assert read_all(data) == lines


def with_lines(check: Callable[[ChatLines, int], Coroutine[None, None, None]]) -> None:
    """Run a check with the lines of a pipe that are being read."""

    async def whole() -> None:
        reading, writing = os.pipe()
        lines = ChatLines(reading)
        task = asyncio.create_task(lines.read())
        try:
            await check(lines, writing)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            os.close(reading)
            os.close(writing)

    asyncio.run(whole())


@pytest.mark.real
def test_a_line_typed_ahead_of_a_question_is_no_answer_to_it() -> None:
    async def check(lines: ChatLines, writing: int) -> None:
        os.write(writing, b"ahead\nmark\n")
        assert await lines.next() == "ahead"  # so it was read before the question
        asking = asyncio.create_task(lines.answer())
        os.write(writing, b"y\nlater\n")
        assert await asking == "y"
        assert [await lines.next(), await lines.next()] == ["mark", "later"]

    with_lines(check)


async def quiet(line: str) -> None:
    """Nothing is said to the turn."""


@pytest.mark.real
def test_what_is_said_to_the_turn_reaches_it_past_the_lines_that_wait() -> None:
    async def check(lines: ChatLines, writing: int) -> None:
        said: list[str] = []
        heard = asyncio.Event()

        async def say(line: str) -> None:
            said.append(line)
            heard.set()

        with lines.running(lambda: None, say):
            os.write(writing, b"later\n/steer look there\n")
            await heard.wait()
        assert (said, await lines.next()) == (["/steer look there"], "later")

    with_lines(check)


@pytest.mark.real
def test_stop_reaches_the_running_turn_past_the_lines_that_wait() -> None:
    async def check(lines: ChatLines, writing: int) -> None:
        stopped = asyncio.Event()
        with lines.running(stopped.set, quiet):
            os.write(writing, b"next prompt\n/stop\n")
            await stopped.wait()
        os.write(writing, b"/stop\n")
        assert [await lines.next(), await lines.next()] == ["next prompt", "/stop"]

    with_lines(check)


# --- rows ---------------------------------------------------------------------------------------


def summary(session_id: str) -> SessionSummary:
    return SessionSummary(
        id=SessionId(session_id),
        path="",
        created_ms=0,
        updated_ms=0,
        name="",
        first_text="",
        messages=0,
        bytes=0,
        damage=0,
        problem="",
    )


@pytest.mark.parametrize(
    ("ids", "width"),
    [
        ([], 8),
        (["0123456789"], 8),
        (["0123456789", "0123456798"], 9),
        (["", ""], 8),
    ],
)
def test_ids_are_shown_as_long_as_it_takes_to_tell_them_apart(ids: list[str], width: int) -> None:
    assert id_width([summary(each) for each in ids]) == width


def test_a_time_that_is_none_is_shown_as_none() -> None:
    assert moment(10**30) == "----------------"
