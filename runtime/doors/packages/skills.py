"""`SKILL.md`: a block of YAML between two lines of three hyphens, and text for the model."""

import re
from typing import Any

import msgspec

from tenure.runtime.doors.packages.manifest import BadManifest
from tenure.runtime.doors.packages.names import wrong_skill_name

FRONTMATTER_CHARS_MAX = 32_768
DESCRIPTION_CHARS_MAX = 1_024
KEPT_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_HEAD = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    body: str


def split_skill(data: bytes, where: str) -> tuple[dict[str, Any], str]:
    """The fields at the head of a SKILL.md, and the text below; no fields where there is no head.

    Raises:
        BadManifest: it is no text, or its head cannot be read.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadManifest(f"{where}: it is not UTF-8 text") from None
    head = _HEAD.match(text)
    if head is None:
        return {}, text
    if len(head.group(1)) > FRONTMATTER_CHARS_MAX:
        raise BadManifest(f"{where}: its head has more than {FRONTMATTER_CHARS_MAX:,} characters")
    return _yaml(head.group(1), where), text[head.end() :]


def _yaml(text: str, where: str) -> dict[str, Any]:
    import yaml  # costs 15 ms: only who has packages pays for it

    try:
        # A reference to another place can grow without bound when it is followed.
        if any(isinstance(each, yaml.AliasToken) for each in yaml.scan(text)):
            raise BadManifest(f"{where}: its head has a YAML reference, which may not be")
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        plain = _plain_fields(text)
        if plain:
            return plain
        line = " ".join(str(wrong).split())
        raise BadManifest(f"{where}: its head is no YAML: {line[:200]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadManifest(f"{where}: its head has no fields")
    return {str(key): value for key, value in found.items()}


def _plain_fields(text: str) -> dict[str, Any]:
    """`name: text` line by line, for heads whose texts hold an unquoted colon, as many do."""
    fields: dict[str, Any] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        if line[0] in " \t-" or not colon or not re.fullmatch(r"[\w-]+", key):
            return {}
        value = value.strip()
        if value[:1] in ("|", ">", "[", "{", "&", "*", "!") or not value:
            return {}
        fields[key] = value.strip("'\"") if value[:1] == value[-1:] else value
    return fields


def read_skill(data: bytes, folder: str) -> Skill:
    """A skill of the native layout: its name is that of its folder.

    Raises:
        BadManifest: with every violation.
    """
    where = f"skills/{folder}/SKILL.md"
    fields, body = split_skill(data, where)
    name, description = fields.get("name"), fields.get("description")
    wrong = []
    if not isinstance(name, str):
        wrong.append("name is missing or no text")
    elif reason := wrong_skill_name(name):
        wrong.append(f"name {name!r}: {reason}")
    elif name != folder:
        wrong.append(f"name is {name!r}, and its folder is {folder!r}")
    if not isinstance(description, str) or not description.strip():
        wrong.append("description is missing or no text")
    elif len(description) > DESCRIPTION_CHARS_MAX:
        wrong.append(f"description has more than {DESCRIPTION_CHARS_MAX:,} characters")
    if wrong:
        raise BadManifest(*(f"{where}: {each}" for each in wrong))
    return Skill(name=str(name), description=" ".join(str(description).split()), body=body)


def native_skill(data: bytes, name: str, where: str) -> bytes:
    """A foreign SKILL.md with the fields that are known here, and the name of its folder.

    Raises:
        BadManifest: it is no text, or its head cannot be read.
    """
    import yaml

    fields, body = split_skill(data, where)
    kept = {key: fields[key] for key in KEPT_FIELDS if key in fields}
    description = kept.get("description")
    if not isinstance(description, str) or not description.strip():
        description = _first_line(body) or f"The skill {name}."
    kept = {"name": name, "description": description[:DESCRIPTION_CHARS_MAX], **_rest(kept)}
    head = yaml.safe_dump(kept, allow_unicode=True, sort_keys=False, width=1_000_000)
    return f"---\n{head}---\n{body}".encode()


def _rest(kept: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kept.items() if key not in ("name", "description")}


def _first_line(body: str) -> str:
    lines = (line.strip().lstrip("#").strip() for line in body.splitlines())
    return next((line for line in lines if line and not line.startswith("<!--")), "")
