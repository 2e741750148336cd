"""Conformance of the tool port: a spec that the model sees, and something that runs.

Every call goes through the tools door, as in a host: what a tool raises becomes an
error result there, and the turn goes on.
"""

import asyncio
import inspect
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from tenure.messages.approval import CallPreviewed, PreviewCall
from tenure.messages.content import TextBlock
from tenure.messages.tokens import CallId, RequestId, TurnId
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.tools.door import AnyTool, Tools
from tenure.runtime.testing.conformance.checks import Kit, fail, holds, same
from tenure.runtime.testing.leaves import memory_leaves

CALL_S_MAX = 30.0
CANCEL_S_MAX = 2.0
NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
"""What every provider takes for a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUnderTest:
    """A tool, and arguments with which it works, as often as it is called."""

    tool: AnyTool
    arguments: dict[str, Any]


TOOL: Kit[ToolUnderTest] = Kit("tool")
_check = TOOL.check
_CONTEXT = Context(owner="main/turn", seat="main", progress=lambda outcome: None)


def _door(at: ToolUnderTest) -> Tools:
    leaves: Leaves = memory_leaves()
    leaves.files.make_folder("/work")
    return Tools(leaves, "/work", (at.tool,))


def _effect(at: ToolUnderTest, arguments: dict[str, Any]) -> RunTool:
    name = at.tool.spec.name
    return RunTool(turn_id=TurnId("s/1"), call_id=CallId("c1"), tool=name, arguments=arguments)


async def _call(at: ToolUnderTest, arguments: dict[str, Any]) -> ToolCallDone:
    task = asyncio.ensure_future(_door(at).run(_effect(at, arguments), _CONTEXT))
    await asyncio.wait({task}, timeout=CALL_S_MAX)
    if not task.done():
        task.cancel()
        fail(f"the call did not end within {CALL_S_MAX:g} s")
    outcome = task.result()
    if not isinstance(outcome, ToolCallDone):
        fail(f"the call ended in {type(outcome).__name__}")
    return outcome


def _text(done: ToolCallDone) -> str:
    return "\n".join(block.text for block in done.content if isinstance(block, TextBlock))


def _properties(at: ToolUnderTest) -> dict[str, Any]:
    found = at.tool.spec.parameters.get("properties", {})
    return found if isinstance(found, dict) else {}


# --- the spec -----------------------------------------------------------------------------------


@_check
def the_name_is_one_that_every_provider_takes(at: ToolUnderTest) -> None:
    """A letter, then letters, digits, `_` and `-`; 64 at most."""
    name = at.tool.spec.name
    holds(NAME.fullmatch(name), f"the name {name!r} is refused by providers")
    holds(at.tool.spec.description.strip(), "the tool has no description: no model will use it")


@_check
def the_parameters_are_the_schema_of_an_object_without_references(at: ToolUnderTest) -> None:
    """Few models and providers follow `$ref`."""
    schema = at.tool.spec.parameters
    same("the type of the parameters", schema.get("type"), "object")
    try:
        written = msgspec.json.encode(schema).decode()
    except (TypeError, UnicodeEncodeError) as error:
        fail(f"the parameters are no JSON: {error}")
    holds('"$ref"' not in written, "the parameters hold a $ref; write the schema out")
    holds(isinstance(schema.get("properties", {}), dict), "properties is no object")
    for name, inner in _properties(at).items():
        holds(isinstance(inner, dict), f"the schema of {name} is a {type(inner).__name__}")
    unknown = set(schema.get("required", ())) - set(_properties(at))
    same("required arguments that have no schema", sorted(unknown), [])


@_check
def path_arguments_are_arguments(at: ToolUnderTest) -> None:
    """The working-directory boundary looks at them; a wrong name would look at nothing."""
    unknown = set(at.tool.spec.path_arguments) - set(_properties(at))
    same("path_arguments that are no arguments", sorted(unknown), [])


# --- calls --------------------------------------------------------------------------------------


@_check
async def a_good_call_gives_a_result_that_a_transcript_can_hold(at: ToolUnderTest) -> None:
    """Text for the model, and plain JSON values beside it."""
    done = await _call(at, at.arguments)
    holds(not done.is_error, f"the good call is an error result: {_text(done)}")
    try:
        msgspec.json.encode(done)
    except (TypeError, UnicodeEncodeError) as error:
        fail(f"the result is no JSON: {error}")


@_check
async def the_same_call_twice_gives_a_result_twice(at: ToolUnderTest) -> None:
    """A tool lives as long as its host."""
    for _ in range(2):
        done = await _call(at, at.arguments)
        holds(not done.is_error, f"the good call is an error result: {_text(done)}")


@_check
async def an_unknown_argument_is_an_error_result_that_names_it(at: ToolUnderTest) -> None:
    """A model that invents an argument believes that it did something."""
    if at.tool.spec.parameters.get("additionalProperties", False) is not False:
        return  # this tool says that it takes any
    done = await _call(at, {**at.arguments, "no_such_argument": 1})
    holds(done.is_error, "a call with an unknown argument was carried out")
    holds("no_such_argument" in _text(done), f"the error does not name it: {_text(done)}")


@_check
async def a_missing_argument_is_an_error_result_that_names_it(at: ToolUnderTest) -> None:
    """The model reads the error and calls again."""
    for name in at.tool.spec.parameters.get("required", ()):
        given = {other: value for other, value in at.arguments.items() if other != name}
        done = await _call(at, given)
        holds(done.is_error, f"a call without {name} was carried out")
        holds(name in _text(done), f"the error does not name {name}: {_text(done)}")


@_check
async def an_argument_of_the_wrong_type_is_an_error_result(at: ToolUnderTest) -> None:
    """Where the schema says a type, anything else is refused."""
    for name, schema in _properties(at).items():
        if not isinstance(schema.get("type"), str):
            continue
        wrong: Any = [] if schema["type"] != "array" else {}
        done = await _call(at, {**at.arguments, name: wrong})
        holds(done.is_error, f"a call with {name}={wrong!r} was carried out")


@_check
async def a_lone_surrogate_in_an_argument_is_no_crash(at: ToolUnderTest) -> None:
    """Models write half a pair now and then; the result must be storable all the same."""
    for name, schema in _properties(at).items():
        if schema.get("type") == "string":
            done = await _call(at, {**at.arguments, name: "half a pair: \ud83d"})
            try:
                msgspec.json.encode(done)
            except UnicodeEncodeError as error:
                fail(f"the result of a call with a lone surrogate in {name} is no JSON: {error}")


@_check
async def a_cancel_ends_an_async_call_at_once(at: ToolUnderTest) -> None:
    """A blocking tool runs to its end in its worker; an async one must let go."""
    if not inspect.iscoroutinefunction(at.tool.run):
        return
    task = asyncio.ensure_future(_door(at).run(_effect(at, at.arguments), _CONTEXT))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S_MAX)
    holds(task.done(), f"a cancelled call still runs after {CANCEL_S_MAX:g} s")


@_check
async def a_tool_that_says_it_previews_does(at: ToolUnderTest) -> None:
    """The user is shown what will happen to which file."""
    if not at.tool.spec.previews:
        return
    effect = PreviewCall(request_id=RequestId("r1"), tool=at.tool.spec.name, arguments=at.arguments)
    outcome = await _door(at).preview(effect, _CONTEXT)
    if not isinstance(outcome, CallPreviewed):
        fail(f"the good call has no preview: {getattr(outcome, 'reason', outcome)}")
    holds(outcome.preview.path, "the preview names no file")
