"""The models that tests use: faulty ones and recorded ones."""

import asyncio

import msgspec
import pytest
from model_world import World, until

from tenure.messages.content import (
    AssistantMessage,
    ChatMessage,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tenure.messages.models import ModelFailure, ModelRequest, ModelToolCall
from tenure.messages.turn_effects import ModelCallDone, ModelCallFailed
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing.faulty_model import (
    Drop,
    Duplicate,
    Faulty,
    Forget,
    IgnoreCancel,
    ModelFault,
    Raise,
    SpeakAfterCancel,
    Stall,
)
from tenure.runtime.testing.recorded_model import Cassette, digest_of, recorded, recording

CALL = ModelToolCall(id="c1", name="read", arguments={"path": "a.md"})


def outcome_of(fault: ModelFault) -> ModelCallDone | ModelCallFailed:
    model = Faulty(Scripted([["a", "b", CALL]]), [fault])
    return asyncio.run(World(model).call())


def kind_of(fault: ModelFault) -> str:
    outcome = outcome_of(fault)
    assert isinstance(outcome, ModelCallFailed), outcome
    return outcome.failure.kind


def test_a_dropped_call_fails_in_the_middle_and_the_next_one_does_not() -> None:
    async def scene() -> None:
        world = World(Faulty(Scripted([["a", "b"], ["c"]]), [Drop(after=1), None]))
        first, second = await world.call(), await world.call()
        assert isinstance(first, ModelCallFailed)
        assert first.failure.kind == "transport"
        assert first.partial == (TextBlock(text="a"),)
        assert isinstance(second, ModelCallDone)

    asyncio.run(scene())


def test_what_goes_wrong_is_told_by_its_kind() -> None:
    assert kind_of(Drop(after=3)) == "transport"
    assert kind_of(Raise(error=OSError("disk"), after=0)) == "bug"
    assert kind_of(Duplicate(index=-1)) == "invalid"
    assert kind_of(Forget()) == "invalid"


def test_a_duplicated_call_gets_an_id_of_its_own() -> None:
    outcome = outcome_of(Duplicate(index=2))
    assert isinstance(outcome, ModelCallDone)
    ids = [block.id for block in outcome.message.content if isinstance(block, ToolCallBlock)]
    assert len(ids) == len(set(ids)) == 2


def test_a_stalled_call_goes_on_when_it_is_let() -> None:
    async def scene() -> None:
        stall = Stall(after=1)
        world = World(Faulty(Scripted([["a", "b"]]), [stall]))
        task = world.start()
        await until(lambda: world.deltas == ["a"])
        assert not task.done()
        stall.until.set()
        assert isinstance(await task, ModelCallDone)

    asyncio.run(scene())


@pytest.mark.parametrize("fault", [Stall(after=1), SpeakAfterCancel(after=1)])
def test_a_cancelled_call_says_nothing_more(fault: ModelFault) -> None:
    async def scene() -> None:
        world = World(Faulty(Scripted([["a", "b"]]), [fault]))
        task = world.start()
        await until(lambda: world.deltas == ["a"])
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        assert outcome.partial == (TextBlock(text="a"),)
        assert world.deltas == ["a"]

    asyncio.run(scene())


def test_a_second_cancel_does_not_wait_for_a_model_that_ignores_the_first() -> None:
    async def scene() -> None:
        fault = IgnoreCancel(after=1)
        world = World(Faulty(Scripted([["a", "b"]]), [fault]))
        task = world.start()
        await until(lambda: world.deltas == ["a"])
        task.cancel()
        await until(lambda: world.clock.next_wake_s() is not None)
        assert not task.done()
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        fault.until.set()
        await asyncio.sleep(0)

    asyncio.run(scene())


def conversation(session: str, call_id: str, at: int) -> ModelRequest:
    messages: tuple[ChatMessage, ...] = (
        UserMessage(content="read it", timestamp=at),
        AssistantMessage(
            content=(ToolCallBlock(id=call_id, name="read", arguments={"a": 1, "b": 2}),),
            timestamp=at,
        ),
        ToolResultMessage(
            tool_call_id=call_id, tool_name="read", content=(TextBlock(text="x"),), timestamp=at
        ),
    )
    return ModelRequest(model="m", system="s", messages=messages, session_id=session)


def test_a_digest_is_of_what_the_model_sees() -> None:
    request = conversation("s1", "c1", 1)
    assert digest_of(request) == digest_of(conversation("s2", "c2", 2))
    assert digest_of(request) != digest_of(msgspec.structs.replace(request, system="t"))
    other = (*request.messages[:-1], UserMessage(content="stop"))
    assert digest_of(request) != digest_of(msgspec.structs.replace(request, messages=other))


def test_a_recorded_call_is_played_again_from_its_text() -> None:
    async def scene() -> None:
        cassette = Cassette()
        failure = ModelFailure(kind="overloaded", reason="busy", retry_after_ms=5)
        real = World(recording(Scripted([["a", CALL], ["b", failure]]), cassette))
        said = [await real.call(), await real.call()]

        again = World(recorded(Cassette.from_text(cassette.to_text())))
        assert [await again.call(), await again.call()] == said
        third = await again.call()
        assert isinstance(third, ModelCallFailed)
        assert third.failure.kind == "invalid"
        assert "2 answers" in third.failure.reason
        assert "'Hello'" in third.failure.reason

    asyncio.run(scene())


def test_a_cancelled_call_is_not_recorded() -> None:
    async def scene() -> None:
        cassette = Cassette()
        world = World(recording(Faulty(Scripted([["a", "b"]]), [Stall(after=1)]), cassette))
        task = world.start()
        await until(lambda: world.deltas == ["a"])
        task.cancel()
        await task
        assert cassette.to_text() == ""

    asyncio.run(scene())
