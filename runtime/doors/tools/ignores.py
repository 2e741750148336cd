"""What the ignore files hide from tools.

`.gitignore` and `.tenureignore` count, at the root and in every folder below it,
with the patterns of git: the last match in a file wins, a file further down wins
over one further up, and what lies in a hidden folder is hidden.  Where the two
disagree about a name, `.tenureignore` wins: it is the user's word to the agent.
For the same reason no tool may change a `.tenureignore`.  `.git` is always
hidden, and so is a temporary file of an unfinished write.
"""

import msgspec
import pathspec

from tenure.runtime.doors.files import Files, Kind
from tenure.runtime.doors.staged import TEMPORARY_PREFIX

FENCE_NAME = ".tenureignore"

IGNORE_FILES = (FENCE_NAME, ".gitignore")
"""The first one that says something decides."""

IGNORE_BYTES_MAX = 1_048_576
"""What lies beyond is not read."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say of one name."""

    hidden: bool
    rule: str
    """Where the deciding pattern stands."""


class IgnoreRules:
    """The ignore files below one root.  Each is read once, when it is first needed."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self._specs: dict[str, pathspec.GitIgnoreSpec | None] = {}

    def hiding(self, path: str, kind: Kind) -> str:
        """The rule that hides a path relative to the root, or nothing."""
        if path == ".":
            return ""
        parts = path.split("/")
        for depth, name in enumerate(parts):
            last = depth == len(parts) - 1
            verdict = self._verdict("/".join(parts[:depth]), name, kind if last else "folder")
            if verdict is not None and verdict.hidden:
                return verdict.rule
        return ""

    def hides_name(self, folder: str, name: str, kind: Kind) -> bool:
        """Whether a name is hidden in a folder that is not; `folder` is empty for the root."""
        verdict = self._verdict(folder, name, kind)
        return verdict is not None and verdict.hidden

    def _verdict(self, folder: str, name: str, kind: Kind) -> Verdict | None:
        if name.casefold() == ".git":
            return Verdict(hidden=True, rule="a built-in rule (.git)")
        if name.startswith(TEMPORARY_PREFIX):
            return Verdict(hidden=True, rule="a built-in rule (unfinished write)")
        path = f"{folder}/{name}" if folder else name
        tail = "/" if kind == "folder" else ""
        for ignore_file in IGNORE_FILES:
            for base in _upward(folder):
                spec = self._spec(f"{base}/{ignore_file}" if base else ignore_file)
                if spec is None:
                    continue
                below = path[len(base) + 1 :] if base else path
                found = spec.check_file(below + tail)
                if found.include is not None:
                    where = f"{base}/{ignore_file}" if base else ignore_file
                    return Verdict(hidden=found.include, rule=where)
        return None

    def _spec(self, path: str) -> pathspec.GitIgnoreSpec | None:
        if path not in self._specs:
            self._specs[path] = self._read(f"{self._root}/{path}")
        return self._specs[path]

    def _read(self, real: str) -> pathspec.GitIgnoreSpec | None:
        try:
            if self._files.lstat(real).kind != "file":
                return None  # git follows no link here either
            file = self._files.open(real, "read")
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            data = file.read_at(0, IGNORE_BYTES_MAX)
        finally:
            file.close()
        return _compiled(data.decode("utf-8-sig", "replace").splitlines())


def _compiled(lines: list[str]) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError:
        # Some line is no pattern.  It hides nothing, and must not unhide the rest.
        return pathspec.GitIgnoreSpec.from_lines(filter(_is_pattern, lines))


def _is_pattern(line: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _upward(folder: str) -> list[str]:
    """The folder and all above it, deepest first; the root is empty."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]
