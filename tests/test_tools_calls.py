"""The door itself: calls that are wrong, tools of the embedder, caps, and cancelling."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tools_world import CONTEXT, Bench, disk_leaves, text

from tenure.messages.approval import Preview
from tenure.messages.content import ImageBlock, TextBlock
from tenure.messages.models import ToolSpec
from tenure.messages.tokens import CallId, TurnId
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.doors.tools.door import RESULT_CHARS_MAX, Tools
from tenure.runtime.doors.tools.functions import function_tool
from tenure.runtime.doors.tools.tool import ToolCall, ToolRefused, ToolResult, text_result


def spec(name: str = "weather", **more: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "units": {"enum": ["metric", "imperial"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {
                "type": "object",
                "properties": {"exact": {"type": "boolean"}},
                "required": ["exact"],
            },
            "note": {"type": ["string", "null"]},
        },
        "required": ["city"],
    }
    return ToolSpec(name=name, description="x", parameters=parameters, mutating=False, **more)


def run_tool(tool: str, **arguments: Any) -> RunTool:
    return RunTool(turn_id=TurnId("s/1"), call_id=CallId("c1"), tool=tool, arguments=arguments)


# --- wrong calls -----------------------------------------------------------------------------


def test_an_unknown_tool_is_refused_with_the_names_of_those_there_are(tmp_path: Path) -> None:
    said = Bench(tmp_path).error("grep", pattern="x")
    assert said == (
        "there is no tool 'grep'; "
        "the tools are: read, ls, search, write, edit, rename, delete, ask_user"
    )


def test_arguments_that_were_no_json_are_refused_with_their_beginning(tmp_path: Path) -> None:
    raw = '{"path": "a.md", "content": "' + "x" * 1_000
    said = Bench(tmp_path).error("write", __invalid_json__=raw)
    assert "no valid JSON object; nothing was run" in said
    assert '{"path": "a.md"' in said
    assert len(said) < 500


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({}, "missing required field `path`"),
        ({"path": 3}, "Expected `str`, got `int` - at `$.path`"),
        ({"path": "a", "file": "b"}, "unknown field `file`"),
        ({"path": "a", "offset": "1"}, "Expected `int`, got `str` - at `$.offset`"),
        ({"path": "a", "limit": True}, "Expected `int`, got `bool` - at `$.limit`"),
    ],
)
def test_wrong_arguments_are_refused_and_say_what_is_right(
    tmp_path: Path, arguments: dict[str, Any], wrong: str
) -> None:
    said = Bench(tmp_path).error("read", **arguments)
    assert wrong in said
    assert "The arguments of read are: path, offset, limit, column." in said


# --- tools of the embedder -------------------------------------------------------------------


def test_an_async_function_and_a_plain_one_are_called_with_their_arguments(
    tmp_path: Path,
) -> None:
    async def weather(city: str, days: int = 1) -> str:
        await asyncio.sleep(0)
        return f"{city}, {days}"

    def shout(city: str) -> dict[str, str]:
        return {"loud": city.upper()}

    bench = Bench(
        tmp_path, None, function_tool(spec(), weather), function_tool(spec("shout"), shout)
    )
    assert bench.ok("weather", city="Graz", days=2) == "Graz, 2"
    assert bench.ok("shout", city="Graz") == '{"loud":"GRAZ"}'
    names = [one.name for one in bench.tools.specs()]
    assert names[-2:] == ["weather", "shout"]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({}, "city is missing"),
        ({"city": 3}, "city must be string, not integer"),
        ({"city": "x", "town": "y"}, "town is unknown"),
        ({"city": "x", "days": True}, "days must be integer, not boolean"),
        ({"city": "x", "days": 1.5}, "days must be integer, not number"),
        ({"city": "x", "units": "kelvin"}, "units must be one of 'metric', 'imperial'"),
        ({"city": "x", "tags": ["a", 1]}, "tags[1] must be string, not integer"),
        ({"city": "x", "place": {}}, "place.exact is missing"),
        ({"city": "x", "place": {"exact": True, "more": 1}}, "place.more is unknown"),
        ({"city": "x", "note": 3}, "note must be string or null, not integer"),
    ],
)
def test_arguments_of_a_function_are_checked_against_its_schema(
    tmp_path: Path, arguments: dict[str, Any], wrong: str
) -> None:
    called: list[object] = []

    def weather(**given: object) -> str:
        called.append(given)
        return ""

    said = Bench(tmp_path, None, function_tool(spec(), weather)).error("weather", **arguments)
    assert f"wrong arguments for weather: {wrong}." in said
    assert called == []


def test_arguments_that_fit_the_schema_reach_the_function_as_they_are(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "city": "x",
        "days": 3,
        "units": "metric",
        "tags": ["a"],
        "place": {"exact": True},
        "note": None,
    }
    seen: list[object] = []

    def weather(**arguments: object) -> str:
        seen.append(arguments)
        return "ok"

    assert Bench(tmp_path, None, function_tool(spec(), weather)).ok("weather", **given) == "ok"
    assert seen == [given]


def test_a_schema_may_welcome_more_arguments_and_hold_what_is_not_checked(tmp_path: Path) -> None:
    free = ToolSpec(
        name="free",
        description="x",
        parameters={
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "string"}]}, "b": {"type": "object"}},
            "additionalProperties": {"type": "integer"},
        },
    )

    def function(**given: object) -> str:
        return ",".join(given)

    bench = Bench(tmp_path, None, function_tool(free, function))
    assert bench.ok("free", a=1, b={"any": {"thing": 1}}, c=3) == "a,b,c"
    assert "d must be integer" in bench.error("free", d="x")


def test_what_a_function_raises_becomes_an_error_result(tmp_path: Path) -> None:
    def fails(city: str) -> str:
        raise ValueError(f"no such city: {city}")

    async def refuses(city: str) -> str:
        raise ToolRefused("ask for a capital")

    def disk(city: str) -> str:
        raise OSError(28, "No space left on device")

    bench = Bench(
        tmp_path,
        None,
        function_tool(spec("fails"), fails),
        function_tool(spec("refuses"), refuses),
        function_tool(spec("disk"), disk),
    )
    assert bench.error("fails", city="x") == "the tool failed: ValueError: no such city: x"
    assert bench.error("refuses", city="x") == "ask for a capital"
    # What a foreign tool changed before it failed, nobody knows.
    assert bench.error("disk", city="x") == "the file system refused: No space left on device"


def test_a_function_may_give_a_whole_result(tmp_path: Path) -> None:
    image = ImageBlock(data="AAAA", mime_type="image/png")
    result = ToolResult(content=(TextBlock(text="look"), image), details={"n": 1})

    def paint(city: str) -> ToolResult:
        return result

    done = Bench(tmp_path, None, function_tool(spec("paint"), paint)).call("paint", city="x")
    assert (done.content, done.details, done.is_error) == (result.content, {"n": 1}, False)


def test_a_function_that_hides_a_coroutine_is_told_to_be_async(tmp_path: Path) -> None:
    async def weather(city: str) -> str:
        return city

    tool = function_tool(spec(), lambda city: weather(city))
    assert "declare it with async def" in Bench(tmp_path, None, tool).error("weather", city="x")


def test_an_object_with_an_async_call_is_an_async_function(tmp_path: Path) -> None:
    class Weather:
        async def __call__(self, city: str) -> str:
            await asyncio.sleep(0)
            return city

    assert Bench(tmp_path, None, function_tool(spec(), Weather())).ok("weather", city="x") == "x"


def test_a_tool_of_ones_own_may_block_or_be_async_and_show_previews(tmp_path: Path) -> None:
    class Later:
        spec = spec("later")

        async def run(self, call: ToolCall) -> ToolResult:
            await asyncio.sleep(0)
            return text_result(f"{call.tool} {call.call_id} {call.arguments}")

    class Stamp:
        spec = spec("stamp", previews=True)

        def run(self, call: ToolCall) -> ToolResult:
            return text_result(call.expects)

        def preview(self, call: ToolCall) -> Preview:
            return Preview(path="a", diff="", digest="d", summary="stamps a")

    bench = Bench(tmp_path, None, Later(), Stamp())
    assert bench.ok("later", n=1) == "later c1 {'n': 1}"
    assert bench.ok("stamp", expects="d") == "d"
    assert bench.shown("stamp").preview.summary == "stamps a"


def test_an_extra_tool_takes_the_place_of_a_workspace_tool(tmp_path: Path) -> None:
    def search(city: str) -> str:
        return "by the index"

    bench = Bench(tmp_path, None, function_tool(spec("search"), search))
    assert bench.ok("search", city="x") == "by the index"
    assert [one.name for one in bench.tools.specs()].count("search") == 1


def test_two_extra_tools_of_one_name_and_a_schema_of_no_object_are_refused(
    tmp_path: Path,
) -> None:
    tool = function_tool(spec(), lambda city: city)
    with pytest.raises(ValueError, match="more than one tool is named weather"):
        Tools(disk_leaves(), str(tmp_path), (tool, tool))
    with pytest.raises(ValueError, match="type 'object'"):
        function_tool(ToolSpec(name="x", description="", parameters={}), lambda: "")


def test_every_result_is_cut_to_what_a_conversation_can_hold(tmp_path: Path) -> None:
    def much(city: str) -> ToolResult:
        return ToolResult(content=(TextBlock(text="x" * 49_999), TextBlock(text="yyy")))

    said = Bench(tmp_path, None, function_tool(spec("much"), much)).ok("much", city="x")
    assert said.startswith("x" * 49_999 + "\ny\n[2 more characters left out")
    assert len(said) < RESULT_CHARS_MAX + 100


def test_a_result_with_half_a_character_can_still_be_stored(tmp_path: Path) -> None:
    tool = function_tool(spec(), lambda city: "half \ud83d")
    assert Bench(tmp_path, None, tool).ok("weather", city="x").encode() == b"half \\ud83d"


# --- cancelling ------------------------------------------------------------------------------


def test_a_cancel_reaches_an_async_function(tmp_path: Path) -> None:
    ended: list[str] = []

    async def scenario() -> None:
        begun = asyncio.Event()

        async def weather(city: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(city)
            return city

        tools = Tools(disk_leaves(), str(tmp_path), (function_tool(spec(), weather),))
        call = asyncio.ensure_future(tools.run(run_tool("weather", city="Graz"), CONTEXT))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(scenario())
    assert ended == ["Graz"]


def test_a_cancelled_blocking_function_runs_to_its_end(tmp_path: Path) -> None:
    from tenure.runtime.doors.leaves import system_leaves

    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def weather(city: str) -> str:
        begun.set()
        go_on.wait(20)
        ended.set()
        return city

    async def scenario() -> None:
        leaves = system_leaves()
        tools = Tools(leaves, str(tmp_path), (function_tool(spec(), weather),))
        call = asyncio.ensure_future(tools.run(run_tool("weather", city="Graz"), CONTEXT))
        await asyncio.to_thread(begun.wait, 20)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not ended.is_set()
        go_on.set()
        await leaves.workers.close()

    asyncio.run(scenario())
    assert ended.is_set()


def test_reading_tools_of_one_batch_run_side_by_side(tmp_path: Path) -> None:
    from tenure.runtime.doors.leaves import system_leaves

    (tmp_path / "a.md").write_text("one\n")
    meeting = threading.Barrier(2, timeout=20)

    def meet(city: str) -> str:
        meeting.wait()
        return city

    async def scenario() -> list[str]:
        leaves = system_leaves()
        tools = Tools(leaves, str(tmp_path), (function_tool(spec("meet"), meet),))
        calls = [run_tool("meet", city="1"), run_tool("meet", city="2"), run_tool("ls")]
        done = await asyncio.gather(*(tools.run(call, CONTEXT) for call in calls))
        await leaves.workers.close()
        return [text(one) for one in done if isinstance(one, ToolCallDone)]

    assert asyncio.run(scenario()) == ["1", "2", "a.md"]
