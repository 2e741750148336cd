"""The settings file: read as it is, failing closed, changed one value at a time by one writer."""

import asyncio
import contextlib
import errno
import itertools
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tools_world import disk_leaves

from tenure.messages.base import Outcome
from tenure.messages.settings import (
    Change,
    ReadSettings,
    RemoveToolPolicy,
    SetChangeRule,
    SetExpiry,
    SetMode,
    SetModel,
    Settings,
    SettingsNotRead,
    SettingsNotWritten,
    SettingsRead,
    SettingsWritten,
    SetToolPolicy,
    SetWorkingDirs,
    WriteSettings,
)
from tenure.runtime.doors.claims import Claims, HeldClaim
from tenure.runtime.doors.context import Context
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.settings_file import SettingsFile
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.faults import (
    DISK_FULL,
    READ_ONLY,
    DiskCall,
    Fail,
    Fault,
    FaultRule,
    FaultRules,
    KeepAll,
    KillBefore,
    LoseAll,
    ProcessKilled,
    SeededFate,
)
from tenure.runtime.testing.leaves import memory_leaves

CONTEXT = Context(owner="settings", seat="", progress=lambda outcome: None)
PATH = "/work/.tenure/settings.toml"
CLAIM = "/work/.tenure/claims/settings"

FILE = b"""\
# Mine.
model = "ollama:small"      # a local one
base_url = "http://127.0.0.1:1"
theme = "dark"

[approval]
mode = "yolo"
mutating = "deny"
working_dirs = ["notes", "./drafts/", "notes"]

[approval.tools]
# I trust it.
write = "allow"
delete = "deny"

[later]
version = 2
"""


def door(
    leaves: Leaves, root: str = "/work", overrides: dict[str, object] | None = None
) -> SettingsFile:
    return SettingsFile(leaves, root, Claims(leaves, "host"), overrides or {})


def new_disk(data: bytes | None = None) -> MemoryDisk:
    disk = MemoryDisk()
    disk.put_folder("/work")
    if data is not None:
        disk.put(PATH, data)
    return disk


def read(settings_file: SettingsFile) -> Settings:
    outcome = asyncio.run(settings_file.read(ReadSettings(), CONTEXT))
    assert isinstance(outcome, SettingsRead), outcome
    return outcome.settings


def write(settings_file: SettingsFile, change: Change) -> Outcome:
    return asyncio.run(settings_file.write(WriteSettings(change=change), CONTEXT))


def read_from(data: bytes, overrides: dict[str, object] | None = None) -> Settings:
    return read(door(memory_leaves(new_disk(data)), overrides=overrides))


# --- reading ---------------------------------------------------------------------------------


def test_without_a_file_the_defaults_hold_and_nothing_is_made() -> None:
    disk = new_disk()
    settings = read(door(memory_leaves(disk)))
    assert settings.path == PATH
    assert (settings.model, settings.base_url, settings.problems) == ("librarian", "", ())
    assert settings.policy.mode == "safe"
    assert settings.policy.mutating == "ask"
    assert (settings.policy.tools, settings.policy.working_dirs) == ({}, ())
    assert disk.paths() == ()


def test_every_value_of_the_file_is_read() -> None:
    settings = read_from(FILE)
    assert (settings.model, settings.base_url) == ("ollama:small", "http://127.0.0.1:1")
    assert settings.policy.mode == "yolo"
    assert settings.policy.mutating == "deny"
    assert settings.policy.tools == {"write": "allow", "delete": "deny"}
    assert settings.policy.working_dirs == ("notes", "drafts")
    assert settings.problems == ()


def test_an_unchanged_file_costs_one_stat_and_a_changed_one_is_read_anew() -> None:
    disk = new_disk(FILE)
    settings_file = door(memory_leaves(disk))
    first = read(settings_file)
    disk.calls.clear()
    assert read(settings_file) is first
    calls = [(call.name, call.path) for call in disk.calls if call.name != "real_path"]
    assert calls == [("stat", PATH)]
    disk.clock.advance(1)
    disk.put(PATH, FILE.replace(b'"yolo"', b'"safe"'))
    assert read(settings_file).policy.mode == "safe"
    memory_leaves(disk).files.remove(PATH)
    assert read(settings_file).policy.mutating == "ask"


def test_equal_policies_have_one_version_and_others_have_another() -> None:
    versions = [
        read_from(b"").policy.version,
        read_from(b'model = "other"\n[approval]\nmode = "safe"\n').policy.version,
        read_from(b'[approval.tools]\na = "deny"\nb = "ask"\n').policy.version,
        read_from(b'[approval.tools]\nb = "ask"\na = "deny"\n').policy.version,
        read_from(b'[approval]\nmode = "plan"\n').policy.version,
        read_from(b'[approval]\nmutating = "deny"\n').policy.version,
        read_from(b'[approval]\nworking_dirs = ["a"]\n').policy.version,
    ]
    assert versions[0] == versions[1]
    assert versions[2] == versions[3]
    assert len(set(versions)) == 5


def test_the_mode_names_of_an_earlier_layout_are_understood() -> None:
    for old, new in (("agent", "safe"), ("ask", "plan")):
        settings = read_from(f'[approval]\nmode = "{old}"\n'.encode())
        assert (settings.policy.mode, settings.problems) == (new, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[approval]\nmode = "root"\n', "approval.mode is 'root'"),
        ('[approval]\nmode = ["yolo"]\n', "approval.mode is ['yolo']"),
        ('[approval]\nmode = "__proto__"\n', "approval.mode is '__proto__'"),
        ('[approval]\nmode = "YOLO"\n', "approval.mode is 'YOLO'"),
        ('[approval]\nmutating = "yes"\n', "approval.mutating is 'yes'"),
        ("[approval]\nmutating = true\n", "approval.mutating is True"),
        ('[approval.tools]\nwrite = "Allow"\n', "approval.tools.write is 'Allow'"),
        ("[approval.tools]\nwrite = 1\n", "approval.tools.write is 1"),
    ],
)
def test_a_value_that_nobody_understands_allows_nothing_and_is_named(
    text: str, problem: str
) -> None:
    settings = read_from(text.encode())
    assert settings.policy.mode == "safe"
    assert settings.policy.mutating == "ask"
    assert set(settings.policy.tools.values()) <= {"ask"}
    (told,) = settings.problems
    assert told.startswith(problem)


def test_one_bad_value_leaves_the_others_as_they_are() -> None:
    settings = read_from(FILE.replace(b'"deny"\nworking', b'"???"\nworking'))
    assert settings.policy.mutating == "ask"
    assert settings.policy.tools == {"write": "allow", "delete": "deny"}
    assert settings.model == "ollama:small"
    assert len(settings.problems) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"[approval\nmode = 'yolo'\n",
        b"\xff\xfe[approval]\n",
        b'[approval]\nmode = "yolo"\nmode = "yolo"\n',
        b'approval = "yolo"\n',
        b'[approval]\nmode = "yolo"\ntools = "none"\n',
        b'[approval]\nmode = "safe"\nworking_dirs = "notes"\n',
        b'[approval]\nmode = "safe"\nworking_dirs = ["../up", 3, "/etc"]\n',
        b"x = " + b"[" * 5_000 + b"]" * 5_000 + b"\n",
        b"# " + b"x" * 1_100_000 + b"\n",
    ],
)
def test_a_broken_file_asks_for_every_call(text: bytes) -> None:
    """A boundary or a deny may be lost in what cannot be read, so nothing runs unasked."""
    settings = read_from(text)
    assert settings.policy.mode == "safe"
    assert settings.policy.mutating == "ask"
    assert settings.policy.tools == {}
    assert settings.policy.working_dirs == (".tenure",)
    assert settings.problems


def test_a_bad_working_dir_is_left_out_and_the_good_ones_stay() -> None:
    dirs = '["notes", "../up", "a/../b", "/work/c", "/etc", ".", "/work"]'
    settings = read_from(f"[approval]\nworking_dirs = {dirs}\n".encode())
    assert settings.policy.working_dirs == ("notes", "b", "c", "")
    assert [problem.split("'")[1] for problem in settings.problems] == ["../up", "/etc"]


def test_keys_that_are_not_known_mean_nothing() -> None:
    settings = read_from(
        b'[approval]\nallow_all = true\n[approval.tools]\n"__proto__" = "allow"\nread = "deny"\n'
    )
    assert settings.policy.tools == {"read": "deny"}
    assert settings.problems == ()


def test_a_file_that_cannot_be_read_is_told_and_not_taken_for_an_empty_one() -> None:
    disk = new_disk(FILE)
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EACCES), calls=("open",), path_ends="settings.toml")
    )
    outcome = asyncio.run(door(memory_leaves(disk)).read(ReadSettings(), CONTEXT))
    assert outcome == SettingsNotRead(reason=f"{PATH}: Permission denied")


# --- overrides -------------------------------------------------------------------------------


def test_overrides_win_over_the_file_value_by_value() -> None:
    settings = read_from(
        FILE,
        {"model": "librarian", "approval": {"mode": "plan", "tools": {"write": "deny"}}},
    )
    assert settings.model == "librarian"
    assert settings.base_url == "http://127.0.0.1:1"
    assert settings.policy.mode == "plan"
    assert settings.policy.mutating == "deny"
    assert settings.policy.tools == {"write": "deny", "delete": "deny"}


def test_overrides_of_one_rule_do_not_repair_a_broken_file() -> None:
    settings = read_from(b"approval = 3\n", {"approval": {"tools": {"write": "allow"}}})
    assert settings.policy.tools == {}
    assert settings.policy.working_dirs == (".tenure",)


def test_overrides_are_never_written() -> None:
    disk = new_disk(FILE)
    settings_file = door(memory_leaves(disk), overrides={"approval": {"mode": "plan"}})
    outcome = write(settings_file, SetModel(model="librarian"))
    assert isinstance(outcome, SettingsWritten)
    assert outcome.settings.policy.mode == "plan"
    assert tomllib.loads(disk.content(PATH).decode())["approval"]["mode"] == "yolo"


@pytest.mark.parametrize(
    "overrides",
    [
        {"approval": {"mode": "root"}},
        {"approval": {"mod": "safe"}},
        {"approval": "safe"},
        {"Model": "x"},
        {"approval": {"tools": {"write": "yes"}}},
        {"model": 3},
    ],
)
def test_overrides_with_a_slip_are_refused_at_once(overrides: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="settings: "):
        door(memory_leaves(new_disk()), overrides=overrides)


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (SetMode(mode="plan"), b'mode = "yolo"', b'mode = "plan"'),
        (SetToolPolicy(tool="write", rule="ask"), b'write = "allow"', b'write = "ask"'),
        (
            SetToolPolicy(tool="mcp__x.y", rule="deny"),
            b'delete = "deny"\n',
            b'delete = "deny"\n"mcp__x.y" = "deny"\n',
        ),
        (
            SetModel(model="librarian", base_url="http://127.0.0.1:1"),
            b'"ollama:small"',
            b'"librarian"',
        ),
    ],
)
def test_a_write_changes_one_value_and_keeps_every_other_byte(
    change: Change, old: bytes, new: bytes
) -> None:
    disk = new_disk(FILE)
    outcome = write(door(memory_leaves(disk)), change)
    assert isinstance(outcome, SettingsWritten)
    assert disk.content(PATH) == FILE.replace(old, new)


def test_the_first_write_makes_the_file_and_answers_with_what_is_in_it() -> None:
    disk = new_disk()
    settings_file = door(memory_leaves(disk))
    outcome = write(settings_file, SetToolPolicy(tool="write", rule="allow"))
    assert isinstance(outcome, SettingsWritten)
    assert outcome.settings.policy.tools == {"write": "allow"}
    write(settings_file, SetModel(model="ollama:x"))
    write(settings_file, SetMode(mode="yolo"))
    assert tomllib.loads(disk.content(PATH).decode()) == {
        "model": "ollama:x",
        "base_url": "",
        "approval": {"mode": "yolo", "tools": {"write": "allow"}},
    }
    assert read(settings_file).model == "ollama:x"


@pytest.mark.witness("CLAIM-1")
def test_a_write_reads_again_what_another_wrote_before_it_changes_its_own_value() -> None:
    disk = new_disk()
    first, second = door(memory_leaves(disk)), door(memory_leaves(disk))
    read(first), read(second)
    write(first, SetToolPolicy(tool="write", rule="allow"))
    write(second, SetToolPolicy(tool="edit", rule="deny"))
    assert read(first).policy.tools == {"write": "allow", "edit": "deny"}


def test_a_change_to_what_is_there_already_writes_nothing() -> None:
    disk = new_disk(FILE)
    settings_file = door(memory_leaves(disk))
    disk.before = FaultRules(
        FaultRule(fault=Fail(errno=errno.EIO), calls=("create",), path_ends="settings.toml")
    )
    assert isinstance(write(settings_file, SetMode(mode="yolo")), SettingsWritten)
    assert disk.content(PATH) == FILE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[approval\n", "it is no TOML"),
        (b"\xff\n", "it is not UTF-8 text"),
        (b"approval = 3\n", "approval is no table"),
        (b"[approval]\ntools = []\n", "tools is no table"),
    ],
)
def test_a_broken_file_is_never_overwritten(text: bytes, reason: str) -> None:
    disk = new_disk(text)
    outcome = write(door(memory_leaves(disk)), SetToolPolicy(tool="write", rule="allow"))
    assert isinstance(outcome, SettingsNotWritten)
    assert outcome.path == PATH
    assert reason in outcome.reason
    assert disk.content(PATH) == text


def test_a_change_that_names_nothing_is_refused() -> None:
    disk = new_disk()
    for change in (
        SetToolPolicy(tool=" ", rule="allow"),
        SetToolPolicy(tool="__proto__", rule="allow"),
        SetModel(model=""),
    ):
        assert isinstance(write(door(memory_leaves(disk)), change), SettingsNotWritten)
    assert PATH not in disk.paths()


# --- the claim (CLAIM-1) ---------------------------------------------------------------------


@pytest.mark.witness("CLAIM-1")
def test_a_write_is_refused_while_another_holds_the_claim() -> None:
    disk = new_disk(FILE)
    other = Claims(memory_leaves(disk), "other").take(CLAIM)
    assert isinstance(other, HeldClaim)

    async def scenario() -> Outcome:
        settings_file = door(memory_leaves(disk))
        effect = WriteSettings(change=SetMode(mode="plan"))
        call = asyncio.ensure_future(settings_file.write(effect, CONTEXT))
        return await ended(call, disk)

    outcome = asyncio.run(scenario())
    assert isinstance(outcome, SettingsNotWritten)
    assert "another host is changing the settings" in outcome.reason
    assert disk.content(PATH) == FILE


def test_a_write_waits_for_the_claim_and_then_is_made() -> None:
    disk = new_disk(FILE)
    other = Claims(memory_leaves(disk), "other").take(CLAIM)
    assert isinstance(other, HeldClaim)

    async def scenario() -> Outcome:
        settings_file = door(memory_leaves(disk))
        effect = WriteSettings(change=SetMode(mode="plan"))
        call = asyncio.ensure_future(settings_file.write(effect, CONTEXT))
        for _ in range(10):
            await asyncio.sleep(0)
            disk.clock.advance(0.05)
        assert not call.done()
        other.release()
        return await ended(call, disk)

    assert isinstance(asyncio.run(scenario()), SettingsWritten)
    assert b'mode = "plan"' in disk.content(PATH)


async def ended(call: "asyncio.Future[Outcome]", disk: MemoryDisk) -> Outcome:
    """The end of a call that sleeps, with the clock moved for it."""
    for _ in range(1_000):
        await asyncio.sleep(0)
        if call.done():
            break
        disk.clock.advance(0.05)
    return call.result()


@pytest.mark.witness("CLAIM-1")
def test_a_write_is_refused_where_its_claim_was_lost_on_the_way() -> None:
    disk = new_disk(FILE)
    stranger = memory_leaves(disk).files

    def on_call(call: DiskCall) -> None:
        if call.name == "sync" and ".tenure-stage-" in call.path:
            stranger.remove(f"{CLAIM}.lock")

    disk.on_call = on_call
    outcome = write(door(memory_leaves(disk)), SetMode(mode="plan"))
    assert isinstance(outcome, SettingsNotWritten)
    assert "the claim was lost" in outcome.reason
    assert disk.content(PATH) == FILE


def test_a_write_does_not_overwrite_what_an_editor_saved_on_the_way() -> None:
    disk = new_disk(FILE)

    def on_call(call: DiskCall) -> None:
        if call.name == "sync" and ".tenure-stage-" in call.path:
            disk.clock.advance(1)
            disk.put(PATH, b"# by hand\n")

    disk.on_call = on_call
    outcome = write(door(memory_leaves(disk)), SetMode(mode="plan"))
    assert isinstance(outcome, SettingsNotWritten)
    assert "somebody changed the file" in outcome.reason
    assert disk.content(PATH) == b"# by hand\n"


@pytest.mark.witness("CLAIM-1")
def test_many_writers_at_once_lose_no_change(tmp_path: Path) -> None:
    from tenure.runtime.doors.leaves import system_leaves

    tools = [f"tool{n}" for n in range(8)]

    async def scenario() -> list[Outcome]:
        worlds = [system_leaves() for _ in tools]
        calls = [
            door(leaves, str(tmp_path)).write(
                WriteSettings(change=SetToolPolicy(tool=tool, rule="deny")), CONTEXT
            )
            for leaves, tool in zip(worlds, tools, strict=True)
        ]
        outcomes = await asyncio.gather(*calls)
        for leaves in worlds:
            await leaves.workers.close()
        return list(outcomes)

    outcomes = asyncio.run(scenario())
    assert all(isinstance(outcome, SettingsWritten) for outcome in outcomes)
    settings = read(door(disk_leaves(), str(tmp_path)))
    assert settings.policy.tools == dict.fromkeys(tools, "deny")


# --- the disk --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (READ_ONLY, "Read-only file system"),
        (DISK_FULL, "No space left on device"),
        (FaultRule(fault=Fail(errno=errno.ENOLCK), calls=("lock",)), "it cannot be locked here"),
        (FaultRule(fault=Fail(errno=errno.EIO), calls=("sync",)), "Input/output error"),
        (FaultRule(fault=Fail(errno=errno.EIO), calls=("rename",)), "Input/output error"),
    ],
)
def test_a_disk_that_refuses_leaves_the_settings_as_they_were(
    fault: FaultRule, reason: str
) -> None:
    disk = new_disk(FILE)
    disk.before = FaultRules(fault)
    settings_file = door(memory_leaves(disk))
    outcome = write(settings_file, SetMode(mode="plan"))
    assert isinstance(outcome, SettingsNotWritten)
    assert reason in outcome.reason
    disk.before = None
    assert disk.content(PATH) == FILE
    assert not [path for path in disk.paths() if "stage" in path]
    assert isinstance(write(settings_file, SetMode(mode="plan")), SettingsWritten)


@pytest.mark.parametrize("seed", range(4))
def test_after_death_at_any_call_the_settings_are_the_old_or_the_new_ones(seed: int) -> None:
    fate: Any = [LoseAll(), KeepAll(), *(SeededFate(random.Random(n)) for n in (1, 2))][seed]
    new = FILE.replace(b'"yolo"', b'"plan"')
    for nth in itertools.count(1):
        disk = new_disk(FILE)
        calls = itertools.count(1)

        def before(
            call: DiskCall, nth: int = nth, calls: "itertools.count[int]" = calls
        ) -> Fault | None:
            return KillBefore() if next(calls) == nth else None

        disk.before = before
        written = False
        with contextlib.suppress(ProcessKilled):
            outcome = write(door(memory_leaves(disk)), SetMode(mode="plan"))
            written = isinstance(outcome, SettingsWritten)
        disk.before = None
        disk.crash(fate)
        assert disk.content(PATH) in ((new,) if written else (FILE, new))
        # Nothing that the dead one left is in the way of the next.
        assert isinstance(write(door(memory_leaves(disk)), SetMode(mode="safe")), SettingsWritten)
        if written:
            return


def test_a_link_to_the_settings_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / ".tenure").mkdir()
    real = tmp_path / "mine.toml"
    real.write_bytes(FILE)
    real.chmod(0o600)
    (tmp_path / ".tenure" / "settings.toml").symlink_to(real)
    outcome = write(door(disk_leaves(), str(tmp_path)), SetMode(mode="plan"))
    assert isinstance(outcome, SettingsWritten)
    assert (tmp_path / ".tenure" / "settings.toml").is_symlink()
    assert real.read_bytes() == FILE.replace(b'"yolo"', b'"plan"')
    assert real.stat().st_mode & 0o777 == 0o600


# --- rules with a pattern, expiry, working directories -------------------------------------------


@pytest.mark.parametrize(
    ("change", "table"),
    [
        (SetToolPolicy(tool="bash:git *", rule="allow"), {"tools": {"bash:git *": "allow"}}),
        (SetChangeRule(rule="deny"), {"mutating": "deny"}),
        (SetWorkingDirs(folders=("notes", "src")), {"working_dirs": ["notes", "src"]}),
        (SetExpiry(expires_s=90), {"expires_s": 90}),
    ],
)
def test_each_change_of_the_policy_is_written_in_its_place(
    change: Change, table: dict[str, object]
) -> None:
    disk = new_disk(b"[approval]\n# mine\n")
    assert isinstance(write(door(memory_leaves(disk)), change), SettingsWritten)
    found = disk.content(PATH)
    assert b"# mine" in found
    assert tomllib.loads(found.decode())["approval"] == table


def test_rule_is_taken_away_and_one_that_is_not_there_is_told() -> None:
    disk = new_disk(b'[approval.tools]\nwrite = "allow"\n"bash:git *" = "allow"  # mine\n')
    settings_file = door(memory_leaves(disk))
    assert isinstance(write(settings_file, RemoveToolPolicy(tool="bash:git *")), SettingsWritten)
    assert read(settings_file).policy.tools == {"write": "allow"}
    again = write(settings_file, RemoveToolPolicy(tool="bash:git *"))
    assert isinstance(again, SettingsNotWritten)
    assert "tenure policy ls" in again.reason


@pytest.mark.parametrize(
    "change", [SetToolPolicy(tool="bash:a && b", rule="allow"), SetExpiry(expires_s=-1)]
)
def test_change_that_nobody_could_mean_is_refused(change: Change) -> None:
    disk = new_disk(b"")
    assert isinstance(write(door(memory_leaves(disk)), change), SettingsNotWritten)
    assert disk.content(PATH) == b""


def test_pattern_that_nobody_understands_makes_its_tool_ask() -> None:
    settings = read_from(
        b'[approval.tools]\n"write:a; b" = "deny"\nwrite = "allow"\nread = "allow"'
    )
    assert settings.policy.tools == {"write": "ask", "read": "allow"}
    assert any("';'" in problem for problem in settings.problems)
    lost = read_from(b'[approval.tools]\n"wri te:a" = "deny"\nread = "allow"')
    assert lost.policy.tools == {"read": "allow", "*": "ask"}


def test_expiry_that_is_no_number_is_named_and_none_is_taken() -> None:
    settings = read_from(b'[approval]\nexpires_s = "soon"\n')
    assert settings.policy.expires_s == 0
    assert any("expires_s" in problem for problem in settings.problems)
    assert read_from(b"[approval]\nexpires_s = 60\n").policy.expires_s == 60


def test_working_dir_that_is_a_link_counts_where_it_leads() -> None:
    disk = new_disk(b'[approval]\nworking_dirs = ["in", "out"]\n')
    disk.put("/work/notes/a.md", b"")
    disk.put_link("/work/in", "/work/notes")
    disk.put_link("/work/out", "/elsewhere")
    settings_file = door(memory_leaves(disk))
    first = read(settings_file).policy
    assert first.working_dirs == ("notes",)
    disk.put("/work/other/a.md", b"")
    files = memory_leaves(disk).files
    files.remove("/work/in")
    disk.put_link("/work/in", "/work/other")
    second = read(settings_file).policy
    assert second.working_dirs == ("other",)
    assert first.version != second.version
