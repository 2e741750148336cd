"""The one way from a path that a model wrote to a file that a tool may touch.

A path is taken relative to the root (an absolute one must lie inside it), every
link is followed, and what comes out must lie in the root, outside every
`.tenure/` folder, and outside what the ignore files hide.  All tools get their
paths here, and a tool that changes something asks again right before it does.
"""

import unicodedata
from collections.abc import Iterator

import msgspec

from tenure.runtime.doors.files import Files, FileStat, Kind
from tenure.runtime.doors.staged import folder_of
from tenure.runtime.doors.tools.ignores import FENCE_NAME, IgnoreRules
from tenure.runtime.doors.tools.text import shown
from tenure.runtime.doors.tools.tool import ToolRefused

CLOSED_NAME = ".tenure"
PATH_CHARS_MAX = 4_096
WALK_DEPTH_MAX = 64


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A path that passed every check."""

    real: str
    """Absolute, without links."""
    path: str
    """Relative to the root, `.` for the root itself: as people and models see it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One name found in a folder of the workspace."""

    real: str
    path: str
    kind: Kind


class Workspace:
    """The files below one root, as the tools of one call see them.

    It is made anew for each call, so that it reads each ignore file once and
    never serves an old one.
    """

    def __init__(self, files: Files, root: str) -> None:
        self.files = files
        self.root = files.real_path(root)
        self._base = self.root.rstrip("/")
        self._closed = files.real_path(f"{self._base}/{CLOSED_NAME}")
        self._ignores = IgnoreRules(files, self._base)

    def target(self, path: str) -> Place:
        """The place that a path leads to, every link followed; it need not exist.

        Raises:
            ToolRefused: the path leads out of the root, into `.tenure/`, or to
                something that the ignore files hide.
        """
        joined = self._joined(path)
        place = self._admitted(self._real(joined, path), path)
        # A visible link to a hidden file is refused by the file, a hidden link
        # to a visible one by its own name.
        self._refuse_hidden(self._spelled(joined), path)
        self._refuse_hidden(place.path, path)
        return place

    def entry(self, path: str) -> Place:
        """The place of the name itself: a link is not followed, the folders above it are.

        For what moves or removes a name.  Raises as `target`.
        """
        joined = self._joined(path)
        folder, _, name = joined.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return self.target(path)
        real = self._real(folder or "/", path)
        place = self._admitted(f"{real.rstrip('/')}/{name}", path)
        self._refuse_hidden(place.path, path)
        return place

    def confirm(self, place: Place) -> None:
        """Look again, right before a change, that a place is still where it was.

        Raises:
            ToolRefused: a folder on the way became a link, or the like.
        """
        folder = folder_of(place.real)
        if self._real(folder, place.path) != folder:
            raise ToolRefused(f"{shown(place.path)} moved while the tool ran; nothing was changed")
        self._admitted(place.real, place.path)

    def refuse_fence(self, place: Place) -> None:
        """Refuse to change a `.tenureignore`: it is what the user put up against the tools."""
        if place.real.rpartition("/")[2].casefold() == FENCE_NAME:
            raise ToolRefused(
                f"{shown(place.path)} says what is hidden from tools; only the user may change it"
            )

    def stat(self, place: Place) -> FileStat | None:
        """Of the place itself; None where there is nothing."""
        try:
            return self.files.lstat(place.real)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def walk(self, place: Place, depth_max: int = WALK_DEPTH_MAX) -> Iterator[Entry]:
        """What lies in a folder and below it, sorted, hidden and closed names left out.

        Links are named and never followed: a file is found once, where it is.
        A folder that cannot be listed is left out, except the first.
        """
        yield from self._walk(place.real, "" if place.path == "." else place.path, depth_max, 0)

    def holds_hidden(self, place: Place) -> bool:
        """Whether anything below a folder is hidden from tools, or closed to them."""
        waiting = [place.path]
        while waiting:
            folder = waiting.pop()
            for name, kind in self.files.list(f"{self._base}/{folder}"):
                if _closed_name(name) or self._ignores.hides_name(folder, name, kind):
                    return True
                if kind == "folder":
                    waiting.append(f"{folder}/{name}")
        return False

    def _walk(self, real: str, path: str, depth_max: int, depth: int) -> Iterator[Entry]:
        try:
            names = self.files.list(real)
        except OSError:
            if depth == 0:
                raise
            return
        for name, kind in names:
            inner = f"{path}/{name}" if path else name
            if _closed_name(name) or self._ignores.hides_name(path, name, kind):
                continue
            entry = Entry(real=f"{real.rstrip('/')}/{name}", path=inner, kind=kind)
            if entry.real == self._closed:
                continue
            yield entry
            if kind == "folder" and depth + 1 < depth_max:
                yield from self._walk(entry.real, inner, depth_max, depth + 1)

    def _joined(self, path: str) -> str:
        if not path.strip():
            raise ToolRefused("the path is empty; give one relative to the workspace root")
        if len(path) > PATH_CHARS_MAX:
            raise ToolRefused(f"the path is longer than {PATH_CHARS_MAX} characters; shorten it")
        if "\0" in path or not _encodable(path):
            raise ToolRefused(f"the path {shown(path)!r} has characters that no file name has")
        return path if path.startswith("/") else f"{self._base}/{path}"

    def _real(self, joined: str, path: str) -> str:
        try:
            return self.files.real_path(joined)
        except OSError as refused:
            reason = refused.strerror or "it cannot be followed"
            raise ToolRefused(f"{shown(path)}: {reason}") from None

    def _admitted(self, real: str, path: str) -> Place:
        """The one check that keeps every tool in the root and out of `.tenure/`."""
        trouble = self._outside(real, path) or self._closed_at(real, path)
        if trouble:  # guard: TOOL-1
            raise ToolRefused(trouble)
        return Place(real=real, path=real[len(self._base) :].strip("/") or ".")

    def _outside(self, real: str, path: str) -> str:
        if _inside(real, self.root):
            return ""
        return (
            f"{shown(path)} is outside the workspace; tools work only on files inside it. "
            "Give a path relative to the workspace root"
        )

    def _closed_at(self, real: str, path: str) -> str:
        below = real[len(self._base) :].split("/")
        if _inside(real, self._closed) or any(map(_closed_name, below)):
            return f"{shown(path)} is in {CLOSED_NAME}/, which is closed to tools"
        return ""

    def _refuse_hidden(self, path: str, asked: str) -> None:
        rule = self._ignores.hiding(path, self._kind_of(path))
        if rule:
            raise ToolRefused(f"{shown(asked)} is hidden from tools by {rule}; work without it")

    def _kind_of(self, path: str) -> Kind:
        try:
            return self.files.lstat(f"{self._base}/{path}").kind
        except OSError:
            return "file"

    def _spelled(self, joined: str) -> str:
        """The path as it was written, without `.` and `..`; `.` where it is not below the root."""
        parts: list[str] = []
        for part in joined.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        spelled = "/" + "/".join(parts)
        return spelled[len(self._base) :].strip("/") or "." if _inside(spelled, self.root) else "."


def _inside(real: str, folder: str) -> bool:
    return real == folder or real.startswith(folder.rstrip("/") + "/")


def _closed_name(name: str) -> bool:
    """Whether a file system could take this name for `.tenure`.

    Some fold case, some compose or drop characters, some cut dots and blanks
    at the end; none of these spellings is a name that a workspace needs.
    """
    if name.isascii():
        return name.lower().rstrip(". ").split(":")[0] == CLOSED_NAME
    folded = unicodedata.normalize("NFKC", name).casefold()
    plain = "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Mn", "Cc"))
    return plain.rstrip(". ").split(":")[0] == CLOSED_NAME


def _encodable(path: str) -> bool:
    """Whether the path is text; half a surrogate pair is not."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
