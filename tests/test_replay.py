"""Traces that are stepped again: the owners decide what they decided when these were recorded."""

import importlib.util
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tenure.actors.turn import TurnActor, turn_step
from tenure.messages.base import Message
from tenure.messages.turn import StopTurn, TurnStopping
from tenure.runtime.step import Step, Taken
from tenure.runtime.testing.owners import stepping
from tenure.runtime.testing.replay import NoTrace, replay

TRACES = Path(__file__).parent / "traces"
STORED = sorted(TRACES.glob("*.jsonl"))


def recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", TRACES / "record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def lines_of(name: str) -> tuple[bytes, ...]:
    """A trace of this run, as the owners decide now."""
    module = recorder()
    recorded: bytes = module.record(getattr(module, name))
    return tuple(recorded.splitlines())


def edited(line: bytes, edit: Callable[[Any], None]) -> bytes:
    record = json.loads(line)
    edit(record)
    return json.dumps(record).encode()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_owners_decide_as_they_did_when_this_trace_was_stored(path: Path) -> None:
    result = replay(path.read_bytes().splitlines())
    assert result.ok, f"{result}\nIf this is meant: python tests/traces/record.py {path.stem}"
    assert result.left_out == ()
    assert {owner.rpartition("/")[2] for owner in result.owners} >= {"session", "turn"}
    assert result.steps == len(path.read_bytes().splitlines()) > 20


NAMES = ("tools", "stop", "swap", "failure")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_gives_the_same_trace_twice(name: str) -> None:
    module = recorder()
    run = getattr(module, name)
    assert module.record(run) == module.record(run)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_a_run_decides_the_same_again(name: str, seed: int) -> None:
    module = recorder()
    result = replay(module.record(getattr(module, name), seed).splitlines())
    assert result.ok, str(result)
    assert result.left_out == ()


def test_stored_traces_show_the_typical_ways_of_a_turn() -> None:
    lines = [line for path in STORED for line in path.read_bytes().splitlines()]
    seen = {json.loads(line)["message"]["type"] for line in lines}
    assert seen >= {
        "Answered", "AppendEntries", "DecideCall", "ModelCallDone", "ModelCallFailed",
        "OpenNewSession", "OpenSession", "RecordsRefused", "StartTurn", "StopTurn",
        "ToolCallDone", "UserAnswered", "WaitOver",
    }  # fmt: skip


# --- what a difference looks like -----------------------------------------------------------------


def forgetful(state: Any, message: Message, taken: Taken) -> Step[Any]:
    """A turn owner that drops the queue at a stop without giving it back."""
    step = turn_step(state, message, taken)
    replies = tuple(
        (asker, msgspec.structs.replace(reply, dropped=()))
        if isinstance(reply, TurnStopping)
        else (asker, reply)
        for asker, reply in step.replies
    )
    return msgspec.structs.replace(step, replies=replies)


def test_an_owner_that_decides_otherwise_is_shown_with_its_first_difference() -> None:
    lines = lines_of("stop")
    with stepping(TurnActor, forgetful):
        result = replay(lines)
    assert not result.ok
    (difference,) = result.differences
    assert difference.owner == "main/turn"
    assert difference.message == StopTurn.__name__
    assert difference.where == "replies[0][1].dropped"
    assert (difference.recorded, difference.now) == ('["And then?"]', "[]")
    assert f"line {difference.line}: main/turn takes StopTurn" in str(result)


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (lambda record: record.update(state="Calling"), "state"),
        (lambda record: record["events"].append({"type": "TurnEnded"}), "events"),
        (lambda record: record["mail"].append({"cancel": "nothing"}), "mail"),
        (lambda record: record.update(effects=[]), "effects"),
        (lambda record: record["replies"].append([7, {"type": "Told"}]), "replies"),
    ],
)
def test_every_part_of_a_decision_is_compared(edit: Callable[[Any], None], where: str) -> None:
    lines = list(lines_of("stop"))
    place = next(
        number for number, line in enumerate(lines) if json.loads(line)["owner"] == "main/session"
    )
    lines[place] = edited(lines[place], edit)
    (difference,) = replay(lines).differences
    assert (difference.line, difference.where) == (place + 1, where)


def test_a_step_that_raises_now_is_a_difference() -> None:
    def broken(state: Any, message: Message, taken: Taken) -> Step[Any]:
        raise ZeroDivisionError("broken")

    lines = lines_of("tools")
    with stepping(TurnActor, broken):
        (difference,) = replay(lines).differences
    assert "ZeroDivisionError: broken" in difference.now


def test_a_step_that_raised_then_ends_that_incarnation_and_is_named() -> None:
    lines = list(lines_of("stop"))
    place = next(
        number for number, line in enumerate(lines) if json.loads(line)["owner"] == "main/turn"
    )

    def raised(record: Any) -> None:
        for name in ("taken", "state", "replies", "events", "mail", "effects"):
            del record[name]
        record["raised"] = "ZeroDivisionError: broken"

    lines[place + 1 :] = [
        edited(line, raised) if json.loads(line)["owner"] == "main/turn" else line
        for line in lines[place + 1 :]
    ]
    result = replay(lines)
    assert result.ok
    assert len(result.left_out) == 1
    assert "main/turn: its step raised" in result.left_out[0]


def test_a_step_whose_message_is_no_unicode_ends_that_incarnation_and_is_named() -> None:
    lines = list(lines_of("stop"))
    (place, *_) = [
        number for number, line in enumerate(lines) if json.loads(line)["owner"] == "main/session"
    ]
    lines.insert(place + 1, b'{"owner": "main/session", "unencodable": "..."}')
    result = replay(lines)
    assert result.ok
    assert result.left_out == (
        f"line {place + 2}: main/session: it holds text that is no Unicode; "
        "not stepped again from here",
    )


def test_an_owner_whose_beginning_is_missing_is_not_stepped() -> None:
    lines = [line for line in lines_of("stop") if b'"OwnerStarted"' not in line]
    result = replay(lines)
    assert (result.steps, result.differences) == (0, ())
    assert len(result.left_out) == len(result.owners) >= 2
    assert all("its beginning is not in the trace" in reason for reason in result.left_out)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "line 1 is no line of a trace"),
        (b'{"type": "TurnEnded"}', "line 1 is no line of a trace"),
        (b'{"owner": "main/ghost", "message": {"type": "GetTurn"}}', "no owner 'main/ghost'"),
        (b'{"owner": "main/turn", "message": {"type": "Ghost"}}', "no message 'Ghost'"),
        (b'{"owner": "main/turn", "message": {"type": "StopTurn"}}', "does not fit this version"),
    ],
)
def test_a_file_that_is_no_trace_is_told(line: bytes, why: str) -> None:
    with pytest.raises(NoTrace, match="line 1") as raised:
        replay([line])
    assert why in str(raised.value)


def test_an_empty_file_is_no_trace() -> None:
    with pytest.raises(NoTrace, match="it is empty"):
        replay([b"", b"\n"])
