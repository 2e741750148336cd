"""Providers by way of the library, against a server of our own over real sockets."""

import asyncio
import base64
import json
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest
from model_world import World
from provider_world import KEYS, SECRET, Server, answer, called, running_server

from tenure.messages.content import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from tenure.messages.models import ToolSpec
from tenure.messages.turn_effects import ModelCallDone, ModelCallFailed, TurnPrepared

pytestmark = [
    pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="needs the extra tenure[models]"),
    pytest.mark.real,
]

READ = ToolSpec(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def test_an_answer_is_streamed_and_its_usage_kept(server: Server) -> None:
    outcome, world = called(server.chat("well"))
    assert isinstance(outcome, ModelCallDone)
    message = outcome.message
    assert message.content == (TextBlock(text="Hello, world."),)
    assert "".join(world.deltas) == "Hello, world."
    assert (message.stop_reason, message.model) == ("stop", "well-served")
    assert (message.provider, message.api) == ("openai-compatible", "openai-completions")
    usage = message.usage
    assert (usage.input, usage.cache_read, usage.output, usage.total_tokens) == (12, 8, 5, 25)
    # What a server of one's own costs is not known, whatever its model is called.
    assert not usage.priced
    # The message says it all, so nothing is kept beside it.
    assert message.provider_part is msgspec.UNSET


def test_the_request_holds_prompt_conversation_tools_and_the_servers_own_key(
    server: Server,
) -> None:
    image = base64.b64encode(b"\x89PNG\r\n\x1a\nnot really").decode()
    call = ToolCallBlock(id="c1", name="read", arguments={"path": "a.md"})
    answer(
        server.chat("well"),
        UserMessage(
            content=(TextBlock(text="See:"), ImageBlock(data=image, mime_type="image/png"))
        ),
        AssistantMessage(content=(TextBlock(text="Reading."), call), stop_reason="toolUse"),
        ToolResultMessage(
            tool_call_id="c1", tool_name="read", content=(TextBlock(text="line one"),)
        ),
        UserMessage(content="And now?"),
        tools=(READ,),
    )
    request = server.last()
    assert request["headers"]["authorization"] == f"Bearer {SECRET}"
    body = request["body"]
    system, picture, reading, result, now = body["messages"]
    assert (system["role"], system["content"]) == ("system", "Be brief.")
    assert picture["content"][1]["image_url"]["url"] == f"data:image/png;base64,{image}"
    (sent,) = reading["tool_calls"]
    assert (reading["content"], sent["id"]) == ("Reading.", "c1")
    assert json.loads(sent["function"]["arguments"]) == {"path": "a.md"}
    assert (result["role"], result["tool_call_id"], result["content"]) == (
        "tool",
        "c1",
        "line one",
    )
    assert now["content"] == "And now?"
    (tool,) = body["tools"]
    assert tool["function"]["name"] == "read"
    assert tool["function"]["parameters"]["properties"] == {"path": {"type": "string"}}


def test_a_conversation_with_missing_halves_is_still_sent_in_pairs(server: Server) -> None:
    answer(
        server.chat("well"),
        UserMessage(content="q"),
        AssistantMessage(content=(), stop_reason="error"),
        AssistantMessage(content=(ToolCallBlock(id="open", name="read", arguments={}),)),
        ToolResultMessage(tool_call_id="gone", tool_name="ls", content=(TextBlock(text="a.md"),)),
    )
    roles = [(m["role"], m.get("tool_call_id")) for m in server.last()["body"]["messages"]]
    assert roles == [
        ("system", None),
        ("user", None),
        ("assistant", None),
        ("tool", "open"),
        ("user", None),
    ]


def test_parallel_calls_whose_pieces_are_mixed_come_whole(server: Server) -> None:
    message = answer(server.chat("tools"), tools=(READ,))
    assert message.content == (
        TextBlock(text="Looking."),
        ToolCallBlock(id="call_a", name="read", arguments={"path": "a.md"}),
        ToolCallBlock(id="call_b", name="search", arguments={"query": "é"}),
    )
    assert message.stop_reason == "toolUse"


def test_arguments_that_are_no_json_are_kept_as_they_came(server: Server) -> None:
    (call,) = answer(server.chat("bad-arguments"), tools=(READ,)).content
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == {"__invalid_json__": '{"path": '}


def test_thoughts_are_told_from_text(server: Server) -> None:
    outcome, world = called(server.chat("thinking"))
    assert isinstance(outcome, ModelCallDone)
    assert outcome.message.content == (
        ThinkingBlock(thinking="Let me think."),
        TextBlock(text="Done."),
    )
    assert [getattr(d, "kind", "") for d in world.progress][-1] == "text"


def test_a_length_stop_is_told(server: Server) -> None:
    assert answer(server.chat("long")).stop_reason == "length"


@pytest.mark.parametrize("model", ["stall", "silent"])
def test_a_cancel_closes_the_connection_at_once(server: Server, model: str) -> None:
    async def scene() -> None:
        world = World(environ=KEYS)
        heard = asyncio.Event()
        world.on_progress = lambda outcome: (world.progress.append(outcome), heard.set())[1]
        full = server.chat(model)
        assert isinstance(await world.prepare(full), TurnPrepared)
        task = world.start(full)
        assert (await asyncio.to_thread(server.get, f"/asked/{model}"))["asked"]
        if model == "stall":
            await heard.wait()
        task.cancel()
        outcome = await task
        assert isinstance(outcome, ModelCallFailed)
        assert outcome.failure.kind == "cancelled"
        told = "".join(b.text for b in outcome.partial if isinstance(b, TextBlock))
        assert told == "".join(world.deltas) == ("One moment" if model == "stall" else "")
        assert (await asyncio.to_thread(server.get, f"/gone/{model}"))["gone"]

    asyncio.run(scene())


def test_a_cancel_closes_a_connection_of_the_anthropic_interface(server: Server) -> None:
    async def scene() -> None:
        world = World(environ=KEYS)
        full = server.anthropic("stall-claude")
        assert isinstance(await world.prepare(full), TurnPrepared)
        task = world.start(full)
        assert (await asyncio.to_thread(server.get, "/asked/stall-claude"))["asked"]
        task.cancel()
        assert isinstance(await task, ModelCallFailed)
        assert (await asyncio.to_thread(server.get, "/gone/stall-claude"))["gone"]

    asyncio.run(scene())


def test_pieces_are_passed_on_while_the_provider_still_speaks(server: Server) -> None:
    outcome, world = called(server.chat("slow"))
    assert isinstance(outcome, ModelCallDone)
    assert outcome.message.content == (TextBlock(text="0 1 2 3 4 5 6 7 8 9 "),)
    assert world.deltas[0] == "0 "
    assert "".join(world.deltas) == "0 1 2 3 4 5 6 7 8 9 "


def test_the_anthropic_interface_keeps_signatures_ids_and_cache_tokens(server: Server) -> None:
    model = server.anthropic("thinker")
    question = UserMessage(content="Read it.")
    message = answer(model, question, tools=(READ,))
    assert message.content == (
        ThinkingBlock(thinking="The user wants a file.", thinking_signature="c2lnbmVk"),
        ThinkingBlock(thinking="", thinking_signature="b3BhcXVl"),
        TextBlock(text="Reading it."),
        ToolCallBlock(id="toolu_1", name="read", arguments={"path": "a.md"}),
    )
    usage = message.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (10, 100, 40, 12)
    assert (message.api, message.stop_reason) == ("anthropic-messages", "toolUse")

    # Through the transcript and back, then on to the provider again.
    stored = msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage)
    result = ToolResultMessage(
        tool_call_id="toolu_1",
        tool_name="read",
        content=(TextBlock(text="no such file"),),
        is_error=True,
    )
    answer(model, question, stored, result, tools=(READ,))
    replayed, told = server.last()["body"]["messages"][1:]
    assert [
        {key: block[key] for key in block if key != "cache_control"}
        for block in replayed["content"]
    ] == [
        {"type": "thinking", "thinking": "The user wants a file.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "Reading it."},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.md"}},
    ]
    (block,) = told["content"]
    assert (block["type"], block["tool_use_id"], block["is_error"]) == (
        "tool_result",
        "toolu_1",
        True,
    )


def test_the_provider_part_says_nothing_twice(server: Server) -> None:
    message = answer(server.anthropic("thinker"), tools=(READ,))
    part = json.dumps(message.provider_part)
    for told in ("The user wants", "Reading it", "c2lnbmVk", "a.md"):
        assert told not in part


def test_a_message_that_was_changed_is_sent_as_it_stands(server: Server) -> None:
    model = server.anthropic("thinker")
    message = answer(model, tools=(READ,))
    redacted = msgspec.structs.replace(message, content=(TextBlock(text="[redacted]"),))
    answer(model, UserMessage(content="q"), redacted, UserMessage(content="more"))
    replayed = server.last()["body"]["messages"][1]
    assert [block["type"] for block in replayed["content"]] == ["text"]
    assert replayed["content"][0]["text"] == "[redacted]"


def test_another_provider_gets_neither_signatures_nor_foreign_ids(server: Server) -> None:
    message = answer(server.anthropic("thinker"), tools=(READ,))
    answer(server.chat("well"), UserMessage(content="q"), message, UserMessage(content="more"))
    body = json.dumps(server.last()["body"])
    assert "c2lnbmVk" not in body
    assert "b3BhcXVl" not in body
    assert "Reading it." in body


def test_the_responses_interface_keeps_encrypted_thoughts_and_ids(server: Server) -> None:
    model = server.responses("gpt-5")
    question = UserMessage(content="Read it.")
    message = answer(model, question, tools=(READ,))
    assert message.content == (
        ThinkingBlock(thinking="Thinking.", thinking_signature="opaque"),
        TextBlock(text="Reading it."),
        ToolCallBlock(id="call_1", name="read", arguments={"path": "a.md"}),
    )
    usage = message.usage
    assert (usage.input, usage.cache_read, usage.output) == (20, 10, 6)
    assert message.api == "openai-responses"
    stored = msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage)
    result = ToolResultMessage(
        tool_call_id="call_1", tool_name="read", content=(TextBlock(text="text"),)
    )
    answer(model, question, stored, result, tools=(READ,))
    sent = server.last()["body"]["input"]
    kept = {item.get("type"): item for item in sent}
    assert kept["reasoning"]["id"] == "rs_1"
    assert kept["reasoning"]["encrypted_content"] == "opaque"
    assert kept["function_call"]["call_id"] == "call_1"
    assert kept["function_call"]["id"] == "fc_1"
    assert kept["function_call_output"]["output"] == "text"


def test_a_price_is_known_only_for_a_known_model_at_its_usual_place() -> None:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

    from tenure.runtime.doors.models.names import parsed
    from tenure.runtime.doors.models.provider_calls import _usage

    def usage(name: str, model: str) -> Any:
        reply = ModelResponse(
            parts=[],
            usage=RequestUsage(input_tokens=1_000_000, output_tokens=1_000_000),
            model_name=model,
            provider_name="openai",
        )
        return _usage(reply, parsed(name))

    known = usage("openai:gpt-4o", "gpt-4o")
    assert known.priced
    assert known.cost.total == pytest.approx(known.cost.input + known.cost.output)
    assert known.cost.total > 0
    for unknown in (
        usage("openai:gpt-4o@http://127.0.0.1:1/v1", "gpt-4o"),
        usage("ollama:gpt-4o", "gpt-4o"),
        usage("openai:gpt-nobody-knows", "gpt-nobody-knows"),
    ):
        assert not unknown.priced
        assert unknown.cost.total == 0
        assert unknown.total_tokens == 2_000_000
