"""A small check of tool arguments against the JSON Schema that the model was shown.

It knows `type`, `properties`, `required`, `additionalProperties`, `items` and
`enum`.  Every other keyword is left to the tool: what is not understood is not
refused.  Names that the schema does not list are refused unless it says that
additional properties are welcome, because a model that invents an argument
believes that it did something.
"""

from typing import Any

from tenure.messages.models import ToolSpec
from tenure.runtime.doors.tools.tool import ToolRefused

DEPTH_MAX = 32

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def check_arguments(spec: ToolSpec, arguments: dict[str, Any]) -> None:
    """Raise `ToolRefused` where the arguments do not fit `spec.parameters`."""
    problem = _problem(spec.parameters, arguments, "arguments", DEPTH_MAX)
    if problem:
        known = ", ".join(_properties(spec.parameters)) or "none"
        raise ToolRefused(
            f"wrong arguments for {spec.name}: {problem}. "
            f"The arguments of {spec.name} are: {known}. Correct the call and make it again."
        )


def _problem(schema: Any, value: Any, where: str, depth: int) -> str:
    """What is wrong with a value, or nothing."""
    if not isinstance(schema, dict):
        return ""
    if depth == 0:
        return f"{where} is nested too deeply"
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    if names and not any(_is_a(name, value) for name in names):
        return f"{where} must be {' or '.join(map(str, names))}, not {_name_of(value)}"
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{where} must be one of {', '.join(map(repr, choices))}"
    if isinstance(value, dict) and ("properties" in schema or "object" in names):
        return _object_problem(schema, value, where, depth)
    if isinstance(value, (list, tuple)) and "items" in schema:
        for index, item in enumerate(value):
            problem = _problem(schema["items"], item, f"{where}[{index}]", depth - 1)
            if problem:
                return problem
    return ""


def _object_problem(schema: dict[str, Any], value: dict[str, Any], where: str, depth: int) -> str:
    properties = _properties(schema)
    for name in schema.get("required", ()):
        if name not in value:
            return f"{_inside(where, name)} is missing"
    more = schema.get("additionalProperties", not properties and where != "arguments")
    for name, item in value.items():
        if name not in properties and more is False:
            return f"{_inside(where, name)} is unknown"
        inner = properties.get(name, more)
        problem = _problem(inner, item, _inside(where, name), depth - 1)
        if problem:
            return problem
    return ""


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _inside(where: str, name: str) -> str:
    return name if where == "arguments" else f"{where}.{name}"


def _is_a(name: object, value: object) -> bool:
    if not isinstance(name, str) or name not in _PYTHON_TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"  # in Python a bool is an int; in JSON it is not
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[name])


def _name_of(value: Any) -> str:
    return next((name for name in _PYTHON_TYPES if _is_a(name, value)), type(value).__name__)
