"""What the settings file means, and how one change is made in its text.

    model = "librarian"
    base_url = ""

    [approval]
    mode = "safe"                     # safe, yolo, plan
    mutating = "ask"                  # allow, ask, deny
    working_dirs = ["notes"]

    expires_s = 0                     # seconds until a request is denied; 0 is never

    [approval.tools]                  # by tool, or tool and pattern (messages/patterns.py)
    write = "allow"
    "bash:git *" = "allow"

    [compaction]
    enabled = true
    threshold_percent = 80            # of the window, 50 to 95
    model = ""                        # who summarises; "same" is the turn's model, "" the rule
    window = 0                        # tokens that the model can read; 0 takes what is known

Budgets, retries and thinking are in settings_limits.py, the index in settings_index.py.

A file that is broken, or says something that nobody understands, never allows
more than one that says nothing: every value fails closed, by itself, and is
named in `Settings.problems`.  Keys that are not known are kept and mean nothing.
"""

import copy
import hashlib
import posixpath
import tomllib
from collections.abc import Mapping
from typing import Any

import msgspec

from tenure.messages.patterns import PatternProblem, parse_rule
from tenure.messages.settings import (
    Change,
    Mode,
    Policy,
    RemoveToolPolicy,
    Rule,
    SetChangeRule,
    SetExpiry,
    SetMode,
    SetModel,
    Settings,
    SetToolPolicy,
    SetWorkingDirs,
)
from tenure.runtime.doors import settings_compaction, settings_index, settings_limits

CLOSED_DIRS = (".tenure",)
"""Working directories that no tool can reach: in safe mode every call is asked for."""

_MODES: dict[str, Mode] = {
    "safe": "safe",
    "yolo": "yolo",
    "plan": "plan",
    "agent": "safe",  # the names of an earlier layout
    "ask": "plan",
}
_RULES: dict[str, Rule] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_KEYS = {
    "": ("model", "base_url", "thinking", "approval", "compaction", "budget", "retry", "index"),
    "approval": ("mode", "mutating", "working_dirs", "expires_s", "tools"),
    "compaction": ("enabled", "threshold_percent", "model", "window"),
    **settings_limits.KEYS,
    **settings_index.KEYS,
}
EXPIRES_S_MAX = 31_536_000
"""A year; 0 is for ever."""
_PROTOTYPE_KEYS = ("__proto__", "constructor", "prototype")
"""Names that other readers of such a file could trip over; no tool has them."""


_GONE = object()


class SettingsText(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a settings file, read."""

    table: dict[str, Any]
    broken: str = ""
    """Why it is no TOML; the table is then empty."""


class ChangeRefused(Exception):
    """The change cannot be made in this file; its text says why."""


def read_text(data: bytes) -> SettingsText:
    """The table in the bytes of a file."""
    try:
        return SettingsText(table=tomllib.loads(data.decode("utf-8-sig")))
    except UnicodeDecodeError:
        return SettingsText(table={}, broken="it is not UTF-8 text")
    except tomllib.TOMLDecodeError as wrong:
        return SettingsText(table={}, broken=f"it is no TOML: {wrong}")
    except RecursionError:
        return SettingsText(table={}, broken="it is nested too deeply")


def settings_of(path: str, root: str, text: SettingsText, overrides: Mapping[str, Any]) -> Settings:
    """The settings that a file and what goes before it amount to.

    Args:
        overrides: the same layout; they win over the file.
    """
    table: dict[str, Any] = text.table
    problems: list[str] = []
    if text.broken:
        problems.append(f"{text.broken}; every call is asked for until the file is corrected")
        table = {"approval": {"working_dirs": list(CLOSED_DIRS)}}
    reading = _Reading(root, problems)
    return reading.settings(path, _over(table, overrides, problems))


def check_overrides(root: str, overrides: Mapping[str, Any]) -> None:
    """Raise `ValueError` where overrides say something that nobody understands."""
    problems = _unknown(overrides)
    _Reading(root, problems).settings("", dict(overrides))
    if problems:
        raise ValueError("settings: " + "; ".join(problems))


def changed_text(text: str, change: Change) -> str:
    """The text with one value changed and everything else as it was.

    Raises:
        ChangeRefused: the text is broken, the value is none that can be
            written, or the layout has something else where it would go.
    """
    import tomlkit  # costs 40 ms: only a process that writes settings pays for it
    from tomlkit.exceptions import TOMLKitError

    before = read_text(text.encode())
    if before.broken:
        raise ChangeRefused(f"{before.broken}; correct the file first")
    values = _values(change)
    expected = copy.deepcopy(before.table)
    try:
        document: Any = tomlkit.parse(text)
        for keys, value in values:
            _put(document, keys, value, tomlkit.table)
            _put(expected, keys, value, dict)
        changed = tomlkit.dumps(document)
    except TOMLKitError as wrong:
        raise ChangeRefused(f"it cannot be changed: {wrong}; correct the file first") from None
    if read_text(changed.encode()) != SettingsText(table=expected):
        raise ChangeRefused("it cannot be changed without touching the rest; change it by hand")
    return changed


def _values(change: Change) -> list[tuple[tuple[str, ...], Any]]:
    """What a change puts where; `_GONE` takes the key away."""
    match change:
        case SetToolPolicy(tool=key, rule=rule):
            _check_rule(key)
            return [(("approval", "tools", key), rule)]
        case RemoveToolPolicy(tool=key):
            return [(("approval", "tools", key), _GONE)]
        case SetChangeRule(rule=rule):
            return [(("approval", "mutating"), rule)]
        case SetWorkingDirs(folders=folders):
            return [(("approval", "working_dirs"), list(folders))]
        case SetExpiry(expires_s=expires_s):
            if not 0 <= expires_s <= EXPIRES_S_MAX:
                raise ChangeRefused(f"{expires_s} is not between 0 and {EXPIRES_S_MAX} seconds")
            return [(("approval", "expires_s"), expires_s)]
        case SetMode():
            return [(("approval", "mode"), change.mode)]
        case SetModel():
            if not change.model.strip():
                raise ChangeRefused("the model is empty")
            return [(("model",), change.model), (("base_url",), change.base_url)]


def _check_rule(key: str) -> None:
    if not key.strip() or key in _PROTOTYPE_KEYS:
        raise ChangeRefused(f"{key!r} is no name of a tool")
    parsed = parse_rule(key)
    if isinstance(parsed, PatternProblem):
        raise ChangeRefused(parsed.reason)


def _put(table: Any, keys: tuple[str, ...], value: Any, new_table: Any) -> None:
    for key in keys[:-1]:
        if key not in table:
            table[key] = new_table()
        table = table[key]
        if not isinstance(table, Mapping):
            raise ChangeRefused(f"{key} is no table; correct the file first")
    if value is not _GONE:
        table[keys[-1]] = value
    elif keys[-1] in table:
        del table[keys[-1]]
    else:
        raise ChangeRefused(f"there is no rule {keys[-1]!r}; `tenure policy ls` lists them")


def _over(
    table: Mapping[str, Any], overrides: Mapping[str, Any], problems: list[str], where: str = ""
) -> dict[str, Any]:
    """The table with the overrides in place of its values."""
    merged = dict(table)
    for key, value in overrides.items():
        below = merged.get(key, {})
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = _over(below, value, problems, f"{where}{key}.")
        elif isinstance(value, Mapping):
            continue  # the file's value is no table: it is told of, and fails closed
        else:
            merged[key] = value
    return merged


def _unknown(overrides: Mapping[str, Any]) -> list[str]:
    """The keys that mean nothing: in a file they are kept, from a program they are a slip."""
    problems = [f"{key} is unknown" for key in overrides if key not in _KEYS[""]]
    for table in (name for name in _KEYS if name):
        found = overrides.get(table, {})
        if isinstance(found, Mapping):
            problems += [f"{table}.{key} is unknown" for key in found if key not in _KEYS[table]]
    return problems + settings_limits.unknown_bounds(overrides)


class _Reading:
    """Reads one table, and notes what cannot be used."""

    def __init__(self, root: str, problems: list[str]) -> None:
        self._root = root
        self._problems = problems

    def settings(self, path: str, table: Mapping[str, Any]) -> Settings:
        return Settings(
            path=path,
            model=self._string(table, "model", "librarian") or "librarian",
            base_url=self._string(table, "base_url", ""),
            policy=self._policy(table),
            compaction=settings_compaction.compaction_rules(table, self._problems),
            budget=settings_limits.budget_rules(table, self._problems),
            retries=settings_limits.retry_rules(table, self._problems),
            thinking=settings_limits.thinking_of(table, self._problems),
            index=settings_index.index_rules(table, self._problems),
            problems=tuple(self._problems),
        )

    def _policy(self, table: Mapping[str, Any]) -> Policy:
        approval = table.get("approval", {})
        if not isinstance(approval, Mapping):
            return self._closed("approval is no table")
        tools = approval.get("tools", {})
        if not isinstance(tools, Mapping):
            # A rule that denied something may be lost in it.
            return self._closed("approval.tools is no table")
        return _policy(
            mode=self._mode(approval.get("mode", "safe")),
            mutating=self._rule("approval.mutating", approval.get("mutating", "ask")),
            tools=self._rules(tools),
            working_dirs=self._working_dirs(approval.get("working_dirs", [])),
            expires_s=self._expiry(approval.get("expires_s", 0)),
        )

    def _rules(self, tools: Mapping[str, Any]) -> dict[str, Rule]:
        """The rules; a pattern that nobody understands makes its whole tool ask."""
        rules: dict[str, Rule] = {}
        unread: list[str] = []
        for key, said in tools.items():
            if key in _PROTOTYPE_KEYS:
                continue
            rule = self._rule(f"approval.tools.{key}", said)
            parsed = parse_rule(key)
            if isinstance(parsed, PatternProblem):
                tool = key.partition(":")[0]
                self._problems.append(f"approval.tools: {parsed.reason}; {tool or '*'} asks")
                unread.append(tool)
            else:
                rules[key] = rule
        for tool in unread:
            key = "*" if isinstance(parse_rule(tool), PatternProblem) else tool
            rules[key] = "deny" if rules.get(key) == "deny" else "ask"
        return rules

    def _expiry(self, value: Any) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and 0 <= value <= EXPIRES_S_MAX:
            return int(value)
        self._problems.append(f"approval.expires_s is {value!r}, no number of seconds; 0 is taken")
        return 0

    def _closed(self, problem: str) -> Policy:
        self._problems.append(f"{problem}; every call is asked for")
        return _policy(mode="safe", mutating="ask", tools={}, working_dirs=CLOSED_DIRS, expires_s=0)

    def _string(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if isinstance(value, str):
            return value
        self._problems.append(f"{key} is no text; {default!r} is taken")
        return default

    def _mode(self, value: Any) -> Mode:
        if isinstance(value, str) and value in _MODES:
            return _MODES[value]
        self._problems.append(f"approval.mode is {value!r}, not safe, yolo or plan; safe is taken")
        return "safe"

    def _rule(self, where: str, value: Any) -> Rule:
        if isinstance(value, str) and value in _RULES:
            return _RULES[value]
        self._problems.append(f"{where} is {value!r}, not allow, ask or deny; ask is taken")
        return "ask"

    def _working_dirs(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            self._problems.append("approval.working_dirs is no list; every call is asked for")
            return CLOSED_DIRS
        found: list[str] = []
        for item in value:
            folder = self._folder(item)
            if folder is None:
                self._problems.append(
                    f"approval.working_dirs has {item!r}, no folder below the root; it is left out"
                )
            elif folder not in found:
                found.append(folder)
        # None left is not the same as none given: that would mean no boundary at all.
        return tuple(found) if found or not value else CLOSED_DIRS

    def _folder(self, item: Any) -> str | None:
        """A folder relative to the root, empty for the root itself."""
        if not isinstance(item, str) or "\0" in item:
            return None
        path = item
        if path.startswith("/"):
            root = self._root.rstrip("/")
            if path != root and not path.startswith(root + "/"):
                return None
            path = path[len(root) :].strip("/")
        plain = posixpath.normpath(path) if path else "."
        if plain == ".." or plain.startswith("../"):
            return None
        return "" if plain == "." else plain


def _policy(
    *,
    mode: Mode,
    mutating: Rule,
    tools: dict[str, Rule],
    working_dirs: tuple[str, ...],
    expires_s: int,
) -> Policy:
    policy = Policy(
        version="",
        mode=mode,
        mutating=mutating,
        tools=tools,
        working_dirs=working_dirs,
        expires_s=expires_s,
    )
    return versioned(policy)


def versioned(policy: Policy) -> Policy:
    """The policy with the version that fits its content."""
    tools = sorted(policy.tools.items())
    parts = (policy.mode, policy.mutating, tools, policy.working_dirs, policy.expires_s)
    version = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]
    return msgspec.structs.replace(policy, version=version)
