"""The conformance kit of tools: the workspace's pass, and broken ones fail with their reasons."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tools_world import disk_leaves

from tenure.messages.models import ToolSpec
from tenure.runtime.doors.tools.door import AnyTool, Tools
from tenure.runtime.doors.tools.functions import function_tool
from tenure.runtime.doors.tools.tool import ToolCall, ToolResult, text_result
from tenure.runtime.testing import conformance
from tenure.runtime.testing.conformance import Check, ToolUnderTest

SPEC = ToolSpec(
    name="weather",
    description="The weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
    mutating=False,
)


def weather(city: str, days: int = 1) -> str:
    return f"{days} fine days in {city}"


async def weather_later(city: str, days: int = 1) -> str:
    await asyncio.sleep(0)
    return f"{days} fine days in {city}"


WORKSPACE: dict[str, dict[str, Any]] = {
    "read": {"path": "a.md"},
    "ls": {"path": "."},
    "search": {"query": "one"},
    "write": {"path": "b.md", "content": "two\n"},
    "edit": {"path": "a.md", "old": "one", "new": "one"},
}


def workspace_tool(root: Path, name: str) -> AnyTool:
    tools = Tools(disk_leaves(), str(root))
    return tools._tools[name]


@pytest.mark.parametrize("check", conformance.TOOL)
@pytest.mark.parametrize("function", [weather, weather_later])
def test_tools_made_of_functions_keep_the_contract(
    function: Callable[..., object], check: Check[ToolUnderTest]
) -> None:
    check(ToolUnderTest(tool=function_tool(SPEC, function), arguments={"city": "Lagos"}))


@pytest.mark.real
@pytest.mark.parametrize("name", ["read", "ls", "search", "write"])
def test_the_workspace_tools_keep_the_contract(tmp_path: Path, name: str) -> None:
    numbers = iter(range(1000))

    @contextmanager
    def make() -> Iterator[ToolUnderTest]:
        root = tmp_path / str(next(numbers))
        root.mkdir()
        (root / "a.md").write_text("one\n")
        yield ToolUnderTest(tool=workspace_tool(root, name), arguments=WORKSPACE[name])

    report = conformance.tool(make)
    assert report.ok, str(report)


# --- broken ones -------------------------------------------------------------------------------


class Loose:
    """Takes any arguments and ignores what it does not know."""

    def __init__(self, spec: ToolSpec = SPEC) -> None:
        self.spec = spec

    def run(self, call: ToolCall) -> ToolResult:
        return text_result(f"fine in {call.arguments.get('city')}")


class Deaf:
    """Does not let go when it is cancelled."""

    spec = SPEC

    async def run(self, call: ToolCall) -> ToolResult:
        for _ in range(1_000_000):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
        return text_result("never")


def failures_of(tool: AnyTool) -> dict[str, str]:
    report = conformance.tool(lambda: ToolUnderTest(tool=tool, arguments={"city": "Lagos"}))
    return {failure.name: failure.reason for failure in report.failures}


def test_a_tool_that_takes_any_arguments_is_told() -> None:
    assert failures_of(Loose()) == {
        "an unknown argument is an error result that names it": (
            "a call with an unknown argument was carried out"
        ),
        "a missing argument is an error result that names it": (
            "a call without city was carried out"
        ),
        "an argument of the wrong type is an error result": ("a call with city=[] was carried out"),
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "the weather"}, "the name 'the weather' is refused by providers"),
        ({"description": " "}, "the tool has no description: no model will use it"),
        ({"parameters": {"type": "string"}}, "the type of the parameters: got 'string'"),
        (
            {"parameters": {"type": "object", "properties": {"city": {"$ref": "#/City"}}}},
            "the parameters hold a $ref; write the schema out",
        ),
        (
            {"parameters": {"type": "object", "properties": {}, "required": ["city"]}},
            "required arguments that have no schema: got ['city']",
        ),
        ({"path_arguments": ("file",)}, "path_arguments that are no arguments: got ['file']"),
        ({"previews": True}, "the good call has no preview: weather shows no preview"),
    ],
)
def test_a_broken_spec_is_told(change: dict[str, Any], reason: str) -> None:
    fields = {name: getattr(SPEC, name) for name in SPEC.__struct_fields__}
    failed = failures_of(Loose(ToolSpec(**{**fields, **change})))
    assert any(each.startswith(reason) for each in failed.values()), failed


def test_an_async_tool_that_does_not_let_go_is_told() -> None:
    subject = ToolUnderTest(tool=Deaf(), arguments={"city": "Lagos"})
    name = "a_cancel_ends_an_async_call_at_once"
    (check,) = [each for each in conformance.TOOL if each.__name__ == name]
    with pytest.raises(conformance.NotConforming, match="still runs after 2 s"):
        check(subject)
