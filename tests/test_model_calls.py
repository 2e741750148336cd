"""One model call through the door: deltas, blocks, and exactly one outcome."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from model_world import SESSION, TURN, World, until

from tenure.messages.content import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
    UserMessage,
)
from tenure.messages.models import (
    ModelCallError,
    ModelDone,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ModelText,
    ModelThinking,
    ModelToolCall,
)
from tenure.messages.turn_effects import ModelCallDone, ModelCallFailed, ModelDelta
from tenure.runtime.doors.models.scripted import Scripted


def called(*answer: object, **world: object) -> tuple[ModelCallDone | ModelCallFailed, World]:
    """The outcome of one call of a scripted model."""
    w = World(Scripted([list(answer)]), **world)  # type: ignore[arg-type]
    return asyncio.run(w.call()), w


def done(*answer: object, **world: object) -> AssistantMessage:
    outcome, _ = called(*answer, **world)
    assert isinstance(outcome, ModelCallDone), outcome
    return outcome.message


def refused(*answer: object, **world: object) -> ModelCallFailed:
    outcome, _ = called(*answer, **world)
    assert isinstance(outcome, ModelCallFailed), outcome
    return outcome


def test_an_answer_becomes_one_message_with_its_blocks_in_order() -> None:
    call = ModelToolCall(id="c1", name="read", arguments={"path": "a.md"})
    outcome, world = called(
        ModelThinking(text="Hm, "),
        ModelThinking(text="notes.", signature="sealed"),
        "Let me ",
        "look.",
        call,
        ModelDone(usage=Usage(input=3, output=4, total_tokens=7), model="acme-1", provider="acme"),
    )
    assert isinstance(outcome, ModelCallDone)
    assert (outcome.turn_id, outcome.call) == (TURN, 1)
    message = outcome.message
    assert message.content == (
        ThinkingBlock(thinking="Hm, notes.", thinking_signature="sealed"),
        TextBlock(text="Let me look."),
        ToolCallBlock(id="c1", name="read", arguments={"path": "a.md"}),
    )
    assert message.usage.total_tokens == 7
    assert (message.provider, message.model) == ("acme", "acme-1")
    assert message.stop_reason == "toolUse"
    assert message.timestamp == world.clock.now_ms()


def test_a_signature_seals_its_thought_and_the_next_thought_is_another_block() -> None:
    message = done(
        ModelThinking(text="one", signature="s1"),
        ModelThinking(text="two"),
        ModelThinking(text="", signature="s2"),
        ModelThinking(text="", signature="redacted"),
    )
    assert message.content == (
        ThinkingBlock(thinking="one", thinking_signature="s1"),
        ThinkingBlock(thinking="two", thinking_signature="s2"),
        ThinkingBlock(thinking="", thinking_signature="redacted"),
    )


def test_a_length_stop_stays_a_length_stop_when_there_are_calls() -> None:
    call = ModelToolCall(id="c1", name="read", arguments={})
    assert done(call, ModelDone(stop_reason="length")).stop_reason == "length"
    assert done("x", ModelDone(stop_reason="toolUse")).stop_reason == "stop"


def test_the_request_holds_the_conversation_and_the_effects_prompt_and_tools() -> None:
    model = Scripted(["Hi."])
    world = World(model, messages=(UserMessage(content="What now?"),))
    asyncio.run(world.call())
    (request,) = model.requests
    assert request.messages == (UserMessage(content="What now?"),)
    assert (request.system, request.session_id, request.model) == ("Be brief.", SESSION, "host")


def test_the_first_piece_goes_at_once_and_then_sixteen_make_a_delta() -> None:
    pieces = [f"{n} " for n in range(40)]
    outcome, world = called(*pieces)
    assert isinstance(outcome, ModelCallDone)
    assert [text.count(" ") for text in world.deltas] == [1, 16, 16, 7]
    assert "".join(world.deltas) == "".join(pieces)
    assert outcome.message.content == (TextBlock(text="".join(pieces)),)


def test_pieces_do_not_wait_for_a_model_that_falls_silent() -> None:
    async def scene() -> None:
        gate = asyncio.Event()
        world = World(Scripted([["a", "b", "c", gate, "d"]]))
        task = world.start()
        await until(lambda: world.deltas == ["a"])
        await until(lambda: world.clock.next_wake_s() is not None)
        world.clock.advance(0.02)
        await until(lambda: world.deltas == ["a", "bc"])
        gate.set()
        await task
        assert world.deltas == ["a", "bc", "d"]

    asyncio.run(scene())


def test_text_and_thoughts_never_share_a_delta() -> None:
    outcome, world = called("a", "b", ModelThinking(text="c"), ModelThinking(text="d"), "e")
    assert isinstance(outcome, ModelCallDone)
    kinds = [(d.kind, d.text) for d in world.progress if isinstance(d, ModelDelta)]
    assert kinds == [("text", "a"), ("text", "b"), ("thinking", "cd"), ("text", "e")]


def test_a_model_that_never_awaits_does_not_keep_a_stop_from_arriving() -> None:
    async def endless(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        while True:
            yield ModelText(text="x")

    async def scene() -> None:
        world = World(endless)
        task = world.start()
        await until(lambda: len(world.deltas) > 3)
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        assert outcome.partial == (TextBlock(text="".join(world.deltas)),)

    asyncio.run(scene())


def test_a_cancel_closes_the_stream_and_gives_what_had_come() -> None:
    closed: list[str] = []

    async def waiting(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            yield ModelText(text="Half ")
            yield ModelText(text="an")
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    async def scene() -> None:
        world = World(waiting)
        task = world.start()
        await until(lambda: world.deltas == ["Half "])
        await until(lambda: world.clock.next_wake_s() is not None)
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        assert outcome.partial == (TextBlock(text="Half an"),)
        assert closed == ["closed"]
        # What was shown is what is told.
        assert "".join(world.deltas) == "Half an"

    asyncio.run(scene())


def test_nothing_is_heard_of_a_model_after_its_cancel() -> None:
    async def stubborn(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="Half")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield ModelText(text=" and more")
        yield ModelDone()

    async def scene() -> None:
        world = World(stubborn)
        task = world.start()
        await until(lambda: world.deltas == ["Half"])
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        assert outcome.partial == (TextBlock(text="Half"),)
        assert world.deltas == ["Half"]

    asyncio.run(scene())


def test_a_model_that_will_not_close_is_left_behind_after_its_time() -> None:
    async def scene() -> None:
        release = asyncio.Event()

        async def deaf(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield ModelText(text="x")
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            yield ModelDone()

        world = World(deaf)
        task = world.start()
        await until(lambda: world.deltas == ["x"])
        task.cancel()
        await until(lambda: world.clock.next_wake_s() is not None)
        assert not task.done()
        world.clock.advance(2.0)
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        release.set()
        await asyncio.sleep(0)

    asyncio.run(scene())


def test_a_named_failure_is_passed_on_with_what_had_come() -> None:
    failure = ModelFailure(kind="rate_limit", reason="slow down", retry_after_ms=1500)
    outcome = refused("Some ", failure)
    assert outcome.failure == failure
    assert outcome.partial == (TextBlock(text="Some "),)


def test_a_named_failure_is_found_inside_a_task_group() -> None:
    inner = ModelCallError(ModelFailure(kind="overloaded", reason="busy"))
    assert refused(ExceptionGroup("tasks", [inner])).failure.kind == "overloaded"


def test_an_unnamed_failure_is_a_bug_with_type_and_message() -> None:
    failure = refused("x", ValueError("no such thing")).failure
    assert (failure.kind, failure.reason) == ("bug", "ValueError: no such thing")


def test_a_model_that_stops_without_ending_its_answer_is_invalid() -> None:
    async def cut(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="Half")

    outcome = asyncio.run(World(cut).call())
    assert isinstance(outcome, ModelCallFailed)
    assert outcome.failure.kind == "invalid"
    assert outcome.partial == (TextBlock(text="Half"),)


def test_a_model_that_goes_on_after_its_end_is_invalid() -> None:
    async def twice(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelText(text="a")
        yield ModelDone()
        yield ModelDone()

    outcome = asyncio.run(World(twice).call())
    assert isinstance(outcome, ModelCallFailed)
    assert outcome.failure.kind == "invalid"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ModelText", "text": "x"},
        None,
        ModelText(text=7),  # type: ignore[arg-type]
        ModelToolCall(id="a", name=None, arguments={}),  # type: ignore[arg-type]
        ModelDone(stop_reason="because"),  # type: ignore[arg-type]
        ModelDone(stop_reason="error"),
        ModelDone(usage=None),  # type: ignore[arg-type]
        ModelDone(provider_part={"a": object()}),
    ],
)
def test_garbage_from_a_model_is_invalid(event: object) -> None:
    async def garbage(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield event  # type: ignore[misc]
        yield ModelDone()

    outcome = asyncio.run(World(garbage).call())
    assert isinstance(outcome, ModelCallFailed)
    assert outcome.failure.kind == "invalid"


def test_an_answer_without_end_is_cut_off_at_the_bound() -> None:
    outcome = refused("12345", "678é", "9", bytes_max=10)
    assert outcome.failure.kind == "invalid"
    assert "10 bytes" in outcome.failure.reason
    assert outcome.partial == (TextBlock(text="12345678é"),)


def test_arguments_count_towards_the_bound() -> None:
    call = ModelToolCall(id="a", name="write", arguments={"text": "x" * 100})
    assert refused(call, bytes_max=50).failure.kind == "invalid"


def test_half_surrogates_become_replacement_characters_and_halves_that_meet_are_joined() -> None:
    assert done("a\ud83d", "\ude00b").content == (TextBlock(text="a😀b"),)
    assert done("a\ud83d").content == (TextBlock(text="a\ufffd"),)
    assert done("\ude00a").content == (TextBlock(text="\ufffda"),)
    assert done("\ud83d", ModelThinking(text="t")).content == (
        TextBlock(text="\ufffd"),
        ThinkingBlock(thinking="t"),
    )
    call = ModelToolCall(id="\ud800", name="re\udfffad", arguments={"k\ud800": ["\udc00"]})
    assert done(call).content == (
        ToolCallBlock(id="\ufffd", name="re\ufffdad", arguments={"k\ufffd": ["\ufffd"]}),
    )


def test_call_ids_are_unique_in_the_message_and_in_the_conversation() -> None:
    earlier = AssistantMessage(content=(ToolCallBlock(id="old", name="ls", arguments={}),))
    message = done(
        ModelToolCall(id="a", name="ls", arguments={}),
        ModelToolCall(id="a", name="ls", arguments={}),
        ModelToolCall(id="", name="ls", arguments={}),
        ModelToolCall(id="old", name="ls", arguments={}),
        messages=(UserMessage(content="q"), earlier),
    )
    ids = [block.id for block in message.content if isinstance(block, ToolCallBlock)]
    assert ids[0] == "a"
    assert len({*ids, "old"}) == 5
    assert all(ids)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"path": "a"}, {"path": "a"}),
        ('{"path": "a"}', {"path": "a"}),
        ("", {}),
        ('{"path": ', {"__invalid_json__": '{"path": '}),
        ("[1]", {"__invalid_json__": "[1]"}),
        ('{"n": NaN}', {"n": None}),
        ('{"t": "\\ud800"}', {"t": "\ufffd"}),
        ('{"a":' * 5_000, {"__invalid_json__": '{"a":' * 5_000}),
        ({"a": {1, 2}.__iter__()}, {"__invalid_json__": "a dict"}),
    ],
)
def test_arguments_become_an_object_or_are_kept_as_they_came(given: object, kept: object) -> None:
    (block,) = done(ModelToolCall(id="a", name="x", arguments=given)).content  # type: ignore[arg-type]
    assert isinstance(block, ToolCallBlock)
    assert block.arguments == kept


def test_a_host_may_give_a_plain_function() -> None:
    async def whole(request: ModelRequest) -> str:
        return "The whole answer."

    async def late(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        return Scripted(["Later."])(request)

    def listed(request: ModelRequest) -> list[ModelEvent]:
        return [ModelText(text="Listed."), ModelDone()]

    for model, text in ((whole, "The whole answer."), (late, "Later."), (listed, "Listed.")):
        outcome = asyncio.run(World(model).call())  # type: ignore[arg-type]
        assert isinstance(outcome, ModelCallDone)
        assert outcome.message.content == (TextBlock(text=text),)

    outcome = asyncio.run(World(lambda request: 7).call())  # type: ignore[arg-type,return-value]
    assert isinstance(outcome, ModelCallFailed)
    assert outcome.failure.kind == "invalid"
