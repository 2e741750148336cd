"""What a source turns out to be, how foreign packages are converted; a bad one hides none."""

import json

import pytest
from packages_world import HOME, PackagesWorld, manifest, skill, tree

from tenure.messages.install import PackageInstalled, PackageRefused
from tenure.runtime.doors.packages.contents import package_of
from tenure.runtime.doors.packages.download import checked_redirect, checked_url
from tenure.runtime.doors.packages.manifest import BadManifest, read_manifest
from tenure.runtime.doors.packages.servers import SCHEMA, read_servers, server_id
from tenure.runtime.doors.packages.skill_tool import ReadSkill, find_skill, instructions, invocation
from tenure.runtime.doors.packages.skills import read_skill
from tenure.runtime.doors.packages.tree import Rejected
from tenure.runtime.doors.tools.tool import ToolCall, ToolRefused

FOREIGN_SKILL = b"---\nname: Other Name\ndescription: Says: with a colon\nmodel: x\n---\nBody"


@pytest.mark.parametrize("folder", [".claude-plugin", ".codex-plugin", ".plugin"])
def test_a_foreign_package_is_converted_and_loads(folder: str) -> None:
    """S125, S127."""
    world = PackagesWorld()
    world.put(
        "/src/x",
        {
            f"{folder}/plugin.json": b'{"name":"My Plugin!","version":"2","author":"Ann"}',
            "skills/Foo_Bar/SKILL.md": FOREIGN_SKILL,
            "skills/Foo_Bar/scripts/run.py": b"x",
            "commands/go.md": b"x",
            "hooks/hooks.json": b"{}",
            ".mcp.json": json.dumps(
                {"mcpServers": {"a": {"url": "https://x.org/m"}, "b": {"command": "sh"}}}
            ).encode(),
        },
    )
    reply = world.install("/src/x")
    assert isinstance(reply, PackageInstalled)
    assert (reply.name, reply.version) == ("my-plugin", "2")
    assert {"left out: commands", "left out: hooks"} <= set(reply.warnings)
    assert any("stdio servers" in each for each in reply.warnings)
    (view,) = world.load().packages
    assert view.status == "ok"
    assert [(each.name, each.description) for each in view.skills] == [
        ("foo-bar", "Says: with a colon")
    ]
    assert [each.url for each in view.servers] == ["https://x.org/m"]
    assert "skills/foo-bar/scripts/run.py" in world.names(f"{HOME}/my-plugin")


def test_a_bare_skill_becomes_a_package() -> None:
    """S125, S129."""
    found = package_of({"SKILL.md": FOREIGN_SKILL, "a.txt": b"x"}, "anything")
    assert found.name == "other-name"
    assert set(found.tree) == {
        "plugin.json",
        "skills/other-name/SKILL.md",
        "skills/other-name/a.txt",
    }
    assert read_skill(found.tree["skills/other-name/SKILL.md"], "other-name").body == "Body"


def test_a_package_is_found_two_folders_deep_and_others_are_named() -> None:
    deep = {f"a/b/{path}": data for path, data in tree().items()}
    other = {f"a/c/{path}": data for path, data in tree("other").items()}
    found = package_of({**deep, **other, "x": b""}, "x")
    assert found.name == "demo"
    assert found.warnings[-1] == "it holds several packages; a/b was taken"


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": b"x"},
        {".claude-plugin/marketplace.json": b"{}", "plugins/a/skills/b/SKILL.md": skill("b")},
        {".claude-plugin/plugin.json": b'{"name":"x"}', "commands/a.md": b"x"},
        {"plugin.json": b"not json"},
        {"plugin.json": b'{"name":"x"}'},
        {"plugin.json": manifest().replace(b"1.0.0", b"9.0.0")},
    ],
)
def test_what_is_no_package_is_refused_with_the_reason(files: dict[str, bytes]) -> None:
    world = PackagesWorld()
    world.put("/src/x", files)
    refused = world.install("/src/x")
    assert isinstance(refused, PackageRefused)
    assert refused.violations[0]
    assert not world.names(HOME)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "A"},
        {"name": "a--b"},
        {"name": "a..b"},
        {"name": "-a"},
        {"name": "a" * 65},
        {"name": "nul"},
        {"name": 5},
        {"version": 1},
        {"description": []},
        {"keywords": "a"},
        {"keywords": [1]},
        {"author": "Ann"},
        {"author": {"name": 1}},
    ],
)
def test_each_rule_of_a_manifest_is_fatal(wrong: dict[str, object]) -> None:
    """S136."""
    table = {**json.loads(manifest()), **wrong}
    with pytest.raises(BadManifest):
        read_manifest(json.dumps(table).encode())


def test_what_a_manifest_has_beyond_the_rules_is_a_warning() -> None:
    found = read_manifest(manifest(other=1, extensions=[]))
    assert len(found.warnings) == 2


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        {"type": "ftp", "url": "https://x.org"},
        {"url": "ftp://x.org"},
        {"url": "http://x.org"},
        {"url": "https://u:p@x.org"},
        {"url": "https://x.org/#f"},
        {"url": "https://x.org", "headers": {"Authorization": "x"}},
        {"url": "https://x.org", "headers": {"Connection": "x"}},
        {"url": "https://x.org", "headers": {"X-A": "1", "x-a": "2"}},
        {"url": "https://x.org", "headers": {"a b": "1"}},
        {"url": "https://x.org", "headers": {"a": "1\r\nb: 2"}},
        {"command": "sh"},
    ],
)
def test_a_wrong_server_costs_itself_and_no_other(entry: object) -> None:
    """S136."""
    table = {"$schema": SCHEMA, "mcpServers": {"good": {"url": "https://x.org"}, "bad": entry}}
    found = read_servers(json.dumps(table).encode(), "demo")
    assert [each.key for each in found.servers] == ["good"]
    assert len(found.skipped) == 1


def test_a_wrong_servers_file_leaves_the_skills() -> None:
    """S132."""
    world = PackagesWorld()
    world.put("/src/x", {**tree(), "mcp.json": b'{"mcpServers":{},"more":1}'})
    world.install("/src/x")
    (view,) = world.load().packages
    assert (view.status, len(view.skills), view.servers) == ("partial", 1, ())


def test_ids_of_servers_are_of_their_two_names_alone() -> None:
    assert server_id("demo", "Notes") == server_id("demo", "Notes")
    assert server_id("demo", "notes!") != server_id("demo", "notes?")


@pytest.mark.parametrize(
    "text",
    [
        b"no head",
        b"---\nname: other\ndescription: x\n---\n",
        b"---\nname: review\n---\n",
        b"---\nname: review\ndescription: " + b"x" * 1025 + b"\n---\n",
        b"---\n- a\n---\n",
        b"---\na: &x [1]\nb: *x\n---\n",
        b"\xff\xfe",
    ],
)
def test_a_wrong_skill_costs_itself_and_no_other(text: bytes) -> None:
    world = PackagesWorld()
    world.put("/src/x", {**tree(), "skills/good/SKILL.md": skill("good")})
    world.put("/src/x", {"skills/review/SKILL.md": text})
    world.install("/src/x")
    (view,) = world.load().packages
    assert view.status == "partial"
    assert [each.name for each in view.skills] == ["good"]


def test_one_bad_package_never_hides_another() -> None:
    """S132."""
    world = PackagesWorld()
    world.put_versions("1")
    world.install("/src/1")
    world.put(f"{HOME}/bad", {"plugin.json": b'{"name": 1}'})
    found = {each.name: each.status for each in world.load().packages}
    assert found == {"bad": "failed", "demo": "ok"}


def test_the_first_package_has_a_skills_plain_name_and_the_other_its_full_one() -> None:
    world = PackagesWorld()
    for name in ("beta", "alpha"):
        world.put(f"/src/{name}", tree(name))
        world.install(f"/src/{name}")
    found = world.load()
    assert [(each.package, each.shadowed_by) for each in found.skills] == [
        ("alpha", ""),
        ("beta", "alpha"),
    ]
    for name, package in (("review", "alpha"), ("beta:review", "beta")):
        skill_found = find_skill(found, name)
        assert skill_found is not None
        assert skill_found.package == package
    assert "beta:review" in instructions(found)
    assert "others wrote" in instructions(found)


def test_the_model_reads_a_skill_and_its_files_and_nothing_else() -> None:
    world = PackagesWorld()
    world.put_versions("1")
    world.install("/src/1")
    world.disk.put("/work/secret", b"x")
    tool = ReadSkill(world.door().loader)

    def read(**arguments: str) -> str:
        return str(tool.run(ToolCall(tool="read_skill", arguments=arguments)).content[0])

    assert "Version 1." in read(name="review")
    assert "data of 1" in read(name="review", file="data.txt")
    for arguments in (
        {"name": "nobody"},
        {"name": "review", "file": "../../plugin.json"},
        {"name": "review", "file": "/work/secret"},
        {"name": "review", "file": "missing"},
    ):
        with pytest.raises(ToolRefused):
            read(**arguments)
    world.disk.put(f"{HOME}/demo/skills/review/data.txt", b"dato of 1")
    with pytest.raises(ToolRefused, match="changed since"):
        read(name="review", file="data.txt")


def test_a_skill_that_is_invoked_gets_its_arguments() -> None:
    world = PackagesWorld()
    world.put(
        "/src/x",
        {
            **tree(),
            "skills/review/SKILL.md": skill(body="Look at $ARGUMENTS."),
            "skills/plain/SKILL.md": skill("plain", body="Look."),
        },
    )
    world.install("/src/x")
    loader = world.door().loader
    assert "Look at the docs." in invocation(loader, "review", "the docs")
    assert "Look.\n\nthe docs" in invocation(loader, "plain", "the docs")
    with pytest.raises(BadManifest, match="there is no skill 'nobody'"):
        invocation(loader, "nobody", "")


@pytest.mark.parametrize(
    "url", ["http://x.org/a", "ftp://x.org/a", "https://u@x.org/a", "https:///a", "file:///etc"]
)
def test_addresses_that_may_not_be_asked(url: str) -> None:
    with pytest.raises(Rejected):
        checked_url(url)


@pytest.mark.parametrize("to", ["http://x.org/a", "https://127.0.0.1/a", "https://10.0.0.1/a"])
def test_redirects_that_are_not_followed(to: str) -> None:
    with pytest.raises(Rejected):
        checked_redirect("https://x.org/a", to)
    assert checked_redirect("https://x.org/a", "/b") == "https://x.org/b"
