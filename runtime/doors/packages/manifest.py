"""`plugin.json`: what a package says of itself, and every rule that it must keep.

A wrong manifest costs its own package and no other; every violation is named.
"""

from typing import Any

import msgspec

from tenure.runtime.doors.packages.names import wrong_package_name

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
_SCHEMAS = "https://agent-plugins.org/schemas/"
TEXT_CHARS_MAX = 4_096

_TEXTS = ("version", "description", "homepage", "repository", "license")
_KNOWN = frozenset({"$schema", "name", "keywords", "author", "extensions", *_TEXTS})
_AUTHOR = ("name", "email", "url")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is used of a `plugin.json` that keeps the rules."""

    name: str
    version: str = ""
    description: str = ""
    warnings: tuple[str, ...] = ()


class BadManifest(Exception):
    """Every violation, a sentence each."""

    def __init__(self, *violations: str) -> None:
        self.violations = violations
        super().__init__("; ".join(violations))


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """The object in the bytes of a JSON file.  Raises `BadManifest`."""
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise BadManifest(f"{where}: it is no JSON: {wrong}") from None
    if not isinstance(found, dict):
        raise BadManifest(f"{where}: it is no JSON object")
    return found


def read_manifest(data: bytes) -> Manifest:
    """The manifest in the bytes of a `plugin.json`.

    Raises:
        BadManifest: with every violation.
    """
    table = json_object(data, "plugin.json")
    wrong = [f"plugin.json: {each}" for each in _violations(table)]
    if wrong:
        raise BadManifest(*wrong)
    return Manifest(
        name=table["name"],
        version=table.get("version", ""),
        description=table.get("description", ""),
        warnings=tuple(f"plugin.json: {each}" for each in _warnings(table)),
    )


def _violations(table: dict[str, Any]) -> list[str]:
    wrong = []
    schema = table.get("$schema")
    if schema != SCHEMA:
        newer = isinstance(schema, str) and schema.startswith(_SCHEMAS)
        wrong.append(
            f"$schema is {schema!r}, a layout that this version does not know"
            if newer
            else f"$schema is not {SCHEMA}"
        )
    name = table.get("name")
    if not isinstance(name, str):
        wrong.append("name is missing or no text")
    elif reason := wrong_package_name(name):
        wrong.append(f"name {name!r}: {reason}")
    wrong += [
        f"{key} is no text" for key in _TEXTS if key in table and not isinstance(table[key], str)
    ]
    wrong += [
        f"{key} has more than {TEXT_CHARS_MAX:,} characters"
        for key in _TEXTS
        if isinstance(table.get(key), str) and len(table[key]) > TEXT_CHARS_MAX
    ]
    keywords = table.get("keywords", [])
    if not isinstance(keywords, list) or not all(isinstance(each, str) for each in keywords):
        wrong.append("keywords is no list of texts")
    return wrong + _author_violations(table.get("author", {}))


def _author_violations(author: object) -> list[str]:
    if not isinstance(author, dict):
        return ["author is no object with name, email and url"]
    return [
        f"author.{key} is no text"
        for key in _AUTHOR
        if key in author and not isinstance(author[key], str)
    ]


def _warnings(table: dict[str, Any]) -> list[str]:
    warnings = [f"{key!r} is not known here" for key in table if key not in _KNOWN]
    if not isinstance(table.get("extensions", {}), dict):
        warnings.append("extensions is no object, and is not read")
    return warnings


def manifest_of(table: dict[str, Any], name: str) -> bytes:
    """A `plugin.json` out of a foreign one: what is not understood is left out."""
    made: dict[str, Any] = {"$schema": SCHEMA, "name": name}
    for key in _TEXTS:
        text = table.get(key)
        if isinstance(text, dict) and key == "repository":
            text = text.get("url")  # as npm writes it
        if isinstance(text, str):
            made[key] = text[:TEXT_CHARS_MAX]
    keywords = table.get("keywords")
    if isinstance(keywords, list):
        made["keywords"] = [each for each in keywords if isinstance(each, str)]
    author = table.get("author")
    if isinstance(author, str):
        made["author"] = {"name": author}
    elif isinstance(author, dict):
        made["author"] = {key: author[key] for key in _AUTHOR if isinstance(author.get(key), str)}
    return msgspec.json.format(msgspec.json.encode(made)) + b"\n"
