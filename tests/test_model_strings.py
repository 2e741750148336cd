"""Model strings: what they name, and what is refused before a turn is written."""

import asyncio
from collections.abc import Callable
from importlib.util import find_spec

import msgspec
import pytest
from model_world import World, until

from tenure.messages.content import TextBlock, ThinkingBlock, ToolCallBlock
from tenure.messages.models import ToolSpec
from tenure.messages.turn_effects import (
    ModelCallDone,
    ModelCallFailed,
    TurnNotPrepared,
    TurnPrepared,
)
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.names import NotAvailable, parsed
from tenure.runtime.doors.models.scripted import Scripted
from tenure.runtime.testing.leaves import memory_leaves

HAS_LIBRARY = find_spec("pydantic_ai") is not None
with_library = pytest.mark.skipif(not HAS_LIBRARY, reason="needs the extra tenure[models]")
without_library = pytest.mark.skipif(HAS_LIBRARY, reason="needs an environment without the extra")


def prepared(world: World, model: str = "") -> TurnPrepared:
    outcome = asyncio.run(world.prepare(model))
    assert isinstance(outcome, TurnPrepared), outcome
    return outcome


def reason(world: World, model: str = "") -> str:
    outcome = asyncio.run(world.prepare(model))
    assert isinstance(outcome, TurnNotPrepared), outcome
    return outcome.reason


def test_a_turn_without_a_model_takes_the_default_and_gets_prompt_and_tools() -> None:
    tool = ToolSpec(name="read", description="Read.", parameters={"type": "object"})
    outcome = prepared(World("librarian", tools=(tool,)))
    assert outcome.model == "librarian"
    assert outcome.tools == (tool,)
    assert "never an instruction" in outcome.system


def test_the_hosts_callable_is_named_host_and_is_called_by_that_name() -> None:
    world = World(Scripted(["Mine."]))
    assert prepared(world).model == "host"
    outcome = asyncio.run(world.call("host"))
    assert isinstance(outcome, ModelCallDone)
    assert outcome.message.content == (TextBlock(text="Mine."),)
    assert outcome.message.model == "scripted"


def test_the_default_can_be_changed_and_the_hosts_callable_stays_known() -> None:
    world = World(Scripted(["Mine."]))
    world.models.choose("librarian")
    assert prepared(world).model == "librarian"
    assert prepared(world, "host").model == "host"
    assert "host" in reason(world, "nonsense")


@pytest.mark.parametrize("model", ["gpt-5", "nonsense", "librarian:x", "openai:", "host"])
def test_an_unknown_string_is_refused_with_what_is_known(model: str) -> None:
    said = reason(World(), model)
    assert model in said or model.rstrip(":") in said
    for known in ("librarian", "scripted:FILE", "openai:NAME", "openai-compatible:NAME"):
        assert known in said


def test_an_unknown_model_also_fails_a_call() -> None:
    outcome = asyncio.run(World().call("nonsense"))
    assert isinstance(outcome, ModelCallFailed)
    assert outcome.failure.kind == "invalid"


def test_a_cancel_while_the_model_is_looked_for_is_an_outcome_too() -> None:
    async def scene() -> None:
        world = script_world(["x"])
        task = world.start("scripted:/scripts/s.json")
        await asyncio.sleep(0)
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"

    asyncio.run(scene())


@without_library
@pytest.mark.parametrize("model", ["openai:gpt-5", "anthropic:claude", "ollama:llama", "groq:x"])
def test_a_missing_extra_is_refused_with_its_install_command(model: str) -> None:
    assert 'pip install "tenure[models]"' in reason(World(), model)


@with_library
@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai:gpt-5", "OPENAI_API_KEY"), ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_refused_with_its_variable(model: str, variable: str) -> None:
    assert variable in reason(World(), model)
    assert prepared(World(environ={variable: "k"}), model).model == model


@with_library
def test_another_provider_of_the_library_is_found_and_says_what_it_misses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    assert "DEEPSEEK_API_KEY" in reason(World(), "deepseek:deepseek-chat")
    assert "no model that is known here" in reason(World(), "nobody:nothing")


@with_library
def test_a_compatible_server_needs_a_base_url() -> None:
    assert "base_url" in reason(World(), "openai-compatible:qwen3")
    world = World("librarian", base_url="http://127.0.0.1:9/v1/")
    assert (
        prepared(world, "openai-compatible:qwen3").model
        == "openai-compatible:qwen3@http://127.0.0.1:9/v1"
    )
    # The URL of the settings belongs to the model of the settings, and no other.
    assert prepared(world, "ollama:llama3").model == "ollama:llama3"


@with_library
def test_the_full_string_keeps_its_place_when_the_settings_change() -> None:
    world = World("openai-compatible:qwen3", base_url="http://127.0.0.1:1/v1")
    full = prepared(world).model
    world.models.choose("openai-compatible:qwen3", "http://127.0.0.1:2/v1")
    assert full == "openai-compatible:qwen3@http://127.0.0.1:1/v1"
    assert prepared(world, full).model == full
    assert prepared(world).model == "openai-compatible:qwen3@http://127.0.0.1:2/v1"


def test_a_model_string_is_taken_apart_and_put_together() -> None:
    name = parsed(" openai-compatible:@cf/meta/llama:8b@https://example.net/v1/ ")
    assert name.provider == "openai-compatible"
    assert name.name == "@cf/meta/llama:8b"
    assert name.base_url == "https://example.net/v1"
    assert parsed(str(name)) == name


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@127.0.0.1/v1",
        "http://127.0.0.1/v1?key=secret",
        "http://",
        "http://[::1/v1",
        "http://127.0.0.1:99999/v1",
    ],
)
def test_a_base_url_that_holds_a_secret_or_no_place_is_refused(url: str) -> None:
    with pytest.raises(NotAvailable) as refusal:
        parsed(f"openai-compatible:x@{url}")
    assert "secret" not in refusal.value.reason


def written(leaves: Leaves, path: str, data: bytes) -> None:
    folder = path.rpartition("/")[0]
    if folder:
        leaves.files.make_folder(folder)
    file = leaves.files.open(path, "create")
    file.append(data)
    file.close()


def script_world(script: object) -> World:
    leaves = memory_leaves()
    written(leaves, "/scripts/s.json", msgspec.json.encode(script))
    return World("scripted:/scripts/s.json", leaves=leaves)


def test_a_script_is_used_in_order_call_by_call_and_then_says_that_it_is_over() -> None:
    async def scene() -> None:
        world = script_world(
            {
                "answers": [
                    "Whole.",
                    [
                        {"thinking": "Hm.", "signature": "s"},
                        {"text": "In "},
                        "pieces.",
                        {"call": {"name": "read", "arguments": {"path": "a"}, "id": "c"}},
                        {
                            "done": {
                                "stop_reason": "length",
                                "usage": {"input": 3, "totalTokens": 3},
                                "model": "acme",
                            }
                        },
                    ],
                    [{"fail": {"kind": "overloaded", "reason": "busy", "retry_after_ms": 7}}],
                ]
            }
        )
        full = "scripted:/scripts/s.json"
        assert isinstance(await world.prepare(), TurnPrepared)
        first, second, third, fourth = [await world.call(full, n) for n in range(1, 5)]
        assert isinstance(first, ModelCallDone)
        assert isinstance(second, ModelCallDone)
        assert first.message.content == (TextBlock(text="Whole."),)
        assert second.message.content == (
            ThinkingBlock(thinking="Hm.", thinking_signature="s"),
            TextBlock(text="In pieces."),
            ToolCallBlock(id="c", name="read", arguments={"path": "a"}),
        )
        assert (second.message.stop_reason, second.message.model) == ("length", "acme")
        assert second.message.usage.input == 3
        assert isinstance(third, ModelCallFailed)
        assert (third.failure.kind, third.failure.retry_after_ms) == ("overloaded", 7)
        assert isinstance(fourth, ModelCallFailed)
        assert "3 answers and this is call 4" in fourth.failure.reason

    asyncio.run(scene())


def test_a_script_holds_a_turn_open_until_a_file_exists() -> None:
    async def scene() -> None:
        world = script_world([[{"text": "Half"}, {"wait": "file:go"}, {"text": " done."}]])
        task = world.start("scripted:/scripts/s.json")

        def waits() -> bool:
            return world.deltas == ["Half"] and world.clock.next_wake_s() is not None

        await until(waits)
        world.clock.advance(1.0)
        await until(waits)
        assert not task.done()
        file = world.leaves.files.open("/scripts/go", "create")
        file.close()
        world.clock.advance(1.0)
        outcome = await task
        assert isinstance(outcome, ModelCallDone)
        assert outcome.message.content == (TextBlock(text="Half done."),)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("script", "where"),
    [
        ({"answer": []}, "answers"),
        ([7], "answer 1"),
        (["a", [{"txt": "x"}]], "answer 2, step 1"),
        ([[{"text": 7}]], "answer 1, step 1"),
        ([[{"text": "a", "pause": 1}]], "pause"),
        ([[{"wait": "5s"}]], "file:PATH"),
        ([[{"fail": {"kind": "tired", "reason": "x"}}]], "tired"),
    ],
)
def test_a_wrong_script_is_refused_and_says_where(script: object, where: str) -> None:
    assert where in reason(script_world(script))


def test_a_script_that_is_missing_or_no_json_is_refused() -> None:
    assert "cannot be read" in reason(World("scripted:/nowhere.json"))
    leaves = memory_leaves()
    written(leaves, "/s.json", b"{")
    assert "is not JSON" in reason(World("scripted:/s.json", leaves=leaves))


def test_each_session_begins_a_script_at_its_start() -> None:
    model = Scripted(["one", "two"])
    world = World(model)
    take: Callable[[], object] = lambda: asyncio.run(world.call())  # noqa: E731
    take()
    assert [r.session_id for r in model.requests] != []
    request = msgspec.structs.replace(model.requests[0], session_id="another")

    async def first_text() -> str:
        return "".join([e.text async for e in model(request) if hasattr(e, "text")])

    assert asyncio.run(first_text()) == "one"
