"""What a source turns out to be, and the package that is made of it.

Native: `plugin.json` at the top; it and `mcp.json` are kept byte for byte.  Foreign:
`.claude-plugin`, `.codex-plugin` or `.plugin` with a `plugin.json` inside, or a bare
SKILL.md.  Packages carry skills and MCP servers; what else a foreign one has (commands,
hooks, agents) is left out and named.
"""

from typing import Any

import msgspec

from tenure.runtime.doors.packages.manifest import (
    BadManifest,
    json_object,
    manifest_of,
    read_manifest,
)
from tenure.runtime.doors.packages.names import shown, skill_slug, slug
from tenure.runtime.doors.packages.servers import native_servers, read_servers
from tenure.runtime.doors.packages.skills import native_skill, read_skill, split_skill
from tenure.runtime.doors.packages.tree import Rejected, Tree, unwrapped

FOREIGN = (".claude-plugin", ".codex-plugin", ".plugin")
SCAN_DEPTH_MAX = 2
NAMES_SHOWN_MAX = 8
_LEFT_OUT = ("commands", "hooks", "agents", "output-styles", "lspServers", "apps")


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """What will be written, and what was said on the way."""

    name: str
    version: str
    tree: Tree
    warnings: tuple[str, ...] = ()


def package_of(tree: Tree, fallback_name: str) -> Package:
    """The package in a tree.

    Raises:
        Rejected: there is none, or it breaks a rule; every violation is named.
    """
    tree = unwrapped(tree)
    fallback_name = _registered_name(tree) or fallback_name
    try:
        found = _find(tree)
        if found is None:
            raise Rejected(_nothing(tree))
        prefix, kind, others = found
        inner = _below(tree, prefix)
        if kind == "native":
            package = _native(inner)
        elif kind == "skill":
            package = _bare_skill(inner, prefix or fallback_name)
        else:
            package = _foreign(inner, kind, fallback_name)
    except BadManifest as bad:
        raise Rejected(*bad.violations) from None
    if not others:
        return package
    warning = f"it holds several packages; {prefix or 'the one at the top'} was taken"
    return msgspec.structs.replace(package, warnings=(*package.warnings, warning))


def _find(tree: Tree) -> tuple[str, str, int] | None:
    """Where a package begins, which kind it is, and how many others there are."""
    folders = sorted(
        {
            path.rpartition("/")[0].rpartition("/")[0] if _is_foreign(path) else _folder(path)
            for path in tree
            if path.rpartition("/")[2] in ("plugin.json", "SKILL.md")
        },
        key=lambda each: (each.count("/") + bool(each), each),
    )
    found = [
        (folder, kind)
        for folder in folders
        if folder.count("/") + bool(folder) <= SCAN_DEPTH_MAX and (kind := _kind(tree, folder))
    ]
    packages = [each for each in found if each[1] != "skill"]
    if packages:
        return (*packages[0], len(packages) - 1)
    if any(path.endswith("marketplace.json") for path in tree):
        return None
    if found and found[0][0] == "":
        return (*found[0], 0)
    if any(path.startswith("skills/") and path.endswith("/SKILL.md") for path in tree):
        return "", "skills", 0
    return (*found[0], len(found) - 1) if found else None


def _registered_name(tree: Tree) -> str:
    """What an npm package calls itself, without its scope; empty where it is none."""
    try:
        name = json_object(tree.get("package.json", b""), "package.json").get("name")
    except BadManifest:
        return ""
    return name.rpartition("/")[2] if isinstance(name, str) else ""


def _is_foreign(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 1 and parts[-2] in FOREIGN


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _kind(tree: Tree, folder: str) -> str:
    top = f"{folder}/" if folder else ""
    foreign = next((each for each in FOREIGN if f"{top}{each}/plugin.json" in tree), "")
    if f"{top}plugin.json" in tree and (not foreign or _says_native(tree[f"{top}plugin.json"])):
        return "native"
    return foreign or ("skill" if f"{top}SKILL.md" in tree else "")


def _says_native(data: bytes) -> bool:
    try:
        return str(json_object(data, "").get("$schema", "")).startswith("https://agent-plugins.")
    except BadManifest:
        return False


def _nothing(tree: Tree) -> str:
    if any(path.endswith("marketplace.json") for path in tree):
        return "it is a catalogue of packages, not a package: install one of those that it names"
    names = sorted(tree)
    more = f" and {len(names) - NAMES_SHOWN_MAX:,} more" if len(names) > NAMES_SHOWN_MAX else ""
    seen = ", ".join(shown(each) for each in names[:NAMES_SHOWN_MAX])
    return f"there is no package in it: no plugin.json, no SKILL.md; it has {seen}{more}"


def _below(tree: Tree, folder: str) -> Tree:
    if not folder:
        return tree
    top = f"{folder}/"
    return {path[len(top) :]: data for path, data in tree.items() if path.startswith(top)}


# --- the three kinds -----------------------------------------------------------------------


def _native(tree: Tree) -> Package:
    manifest = read_manifest(tree["plugin.json"])
    warnings = list(manifest.warnings)
    warnings += component_problems(tree, manifest.name)
    kept = {path: data for path, data in tree.items() if _is_native(path)}
    warnings += _left_out(tree, kept)
    return Package(
        name=manifest.name, version=manifest.version, tree=kept, warnings=tuple(warnings)
    )


def component_problems(tree: Tree, name: str) -> list[str]:
    """What is wrong with skills and servers, which costs them and not the package."""
    problems: list[str] = []
    for folder in skill_folders(tree):
        try:
            read_skill(tree[f"skills/{folder}/SKILL.md"], folder)
        except BadManifest as bad:
            problems += bad.violations
    if "mcp.json" in tree:
        servers = read_servers(tree["mcp.json"], name)
        problems += [*servers.skipped, *servers.warnings]
    return problems


def skill_folders(tree: Tree) -> tuple[str, ...]:
    """The folders of `skills/` that have a SKILL.md."""
    paths = (path.split("/") for path in tree)
    return tuple(
        sorted(path[1] for path in paths if len(path) == 3 and (path[0], path[2]) == _SKILL)
    )


_SKILL = ("skills", "SKILL.md")


def _is_native(path: str) -> bool:
    return "/" not in path or path.startswith("skills/")


def _left_out(tree: Tree, kept: Tree) -> list[str]:
    tops = sorted({path.partition("/")[0] for path in tree if path not in kept})
    if not tops:
        return []
    shown_ = ", ".join(tops[:NAMES_SHOWN_MAX]) + (
        " and more" if len(tops) > NAMES_SHOWN_MAX else ""
    )
    return [f"left out, for packages carry skills and servers only: {shown_}"]


def _bare_skill(tree: Tree, fallback_name: str) -> Package:
    fields, _ = split_skill(tree["SKILL.md"], "SKILL.md")
    named = fields.get("name")
    name = skill_slug(named if isinstance(named, str) else fallback_name.rpartition("/")[2])
    made: Tree = {f"skills/{name}/{path}": data for path, data in tree.items()}
    made[f"skills/{name}/SKILL.md"] = native_skill(tree["SKILL.md"], name, "SKILL.md")
    metadata = fields.get("metadata")
    version = metadata.get("version") if isinstance(metadata, dict) else fields.get("version")
    about = {**fields, "version": str(version) if version is not None else ""}
    made["plugin.json"] = manifest_of(about, slug(name))
    return Package(name=slug(name), version=about["version"], tree=made)


def _foreign(tree: Tree, kind: str, fallback_name: str) -> Package:
    table: dict[str, Any] = {}
    if kind != "skills":
        table = json_object(tree[f"{kind}/plugin.json"], f"{kind}/plugin.json")
    named = table.get("name")
    name = slug(named if isinstance(named, str) else fallback_name)
    warnings: list[str] = []
    made: Tree = {"plugin.json": manifest_of(table, name)}
    for folder in _skill_sources(tree, table):
        _convert_skill(tree, folder, made, warnings)
    servers, said = _servers_of(tree, table, name)
    warnings += said
    if servers is not None:
        made["mcp.json"] = servers
    warnings += [f"left out: {each}" for each in _LEFT_OUT if each in table or _has(tree, each)]
    if len(made) == 1:
        raise Rejected("it has neither skills nor servers that can be used here", *warnings)
    version = table.get("version")
    return Package(
        name=name,
        version=version if isinstance(version, str) else "",
        tree=made,
        warnings=tuple(warnings),
    )


def _has(tree: Tree, folder: str) -> bool:
    return any(path.startswith(f"{folder}/") for path in tree)


def _skill_sources(tree: Tree, table: dict[str, Any]) -> tuple[str, ...]:
    """The folders that hold a SKILL.md, where the manifest says or where they usually are."""
    said = table.get("skills")
    tops = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    plain = [str(each).removeprefix("./").strip("/") for each in tops]
    plain = [each for each in plain if ".." not in each.split("/")] + ["skills"]
    found: list[str] = []
    for path in sorted(tree):
        if not path.endswith("/SKILL.md"):
            continue
        folder = _folder(path)
        if any(folder == top or _folder(folder) == top for top in plain) and folder not in found:
            found.append(folder)
    return tuple(found)


def _convert_skill(tree: Tree, folder: str, made: Tree, warnings: list[str]) -> None:
    name = skill_slug(folder.rpartition("/")[2])
    if f"skills/{name}/SKILL.md" in made:
        warnings.append(f"{folder}: a skill of this name is there already; it was left out")
        return
    try:
        text = native_skill(tree[f"{folder}/SKILL.md"], name, f"{folder}/SKILL.md")
    except BadManifest as bad:
        warnings.extend(f"{each}; the skill was left out" for each in bad.violations)
        return
    for path, data in _below(tree, folder).items():
        made[f"skills/{name}/{path}"] = data
    text = text.replace(b"${CLAUDE_PLUGIN_ROOT}", b"${PLUGIN_ROOT}")
    made[f"skills/{name}/SKILL.md"] = text


def _servers_of(tree: Tree, table: dict[str, Any], name: str) -> tuple[bytes | None, list[str]]:
    said = table.get("mcpServers", ".mcp.json")
    warnings: list[str] = []
    if isinstance(said, str):
        path = said.removeprefix("./")
        if path not in tree:
            return None, [] if path == ".mcp.json" else [f"{path}: there is no such file"]
        try:
            table = json_object(tree[path], path)
        except BadManifest as bad:
            return None, list(bad.violations)
        said = table.get("mcpServers", table)
    if not isinstance(said, dict):
        return None, ["mcpServers is no object; its servers were left out"]
    entries = {key: entry for key, entry in said.items() if isinstance(entry, dict)}
    data, more = native_servers(entries, name)
    return data, [*warnings, *more]
