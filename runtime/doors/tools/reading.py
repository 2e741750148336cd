"""The tools that look at files: `read` and `ls`."""

import difflib
import itertools
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.messages.models import ToolSpec
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.tools.globs import Glob
from tenure.runtime.doors.tools.text import (
    LineRange,
    NotText,
    describe_bytes,
    shown,
    take_lines,
)
from tenure.runtime.doors.tools.tool import (
    ToolCall,
    ToolRefused,
    ToolResult,
    parameters_of,
    read_arguments,
    text_result,
)
from tenure.runtime.doors.tools.workspace import Entry, Place, Workspace

LINES_MAX = 2_000
LINE_CHARS_MAX = 2_000
TEXT_CHARS_MAX = 48_000
"""Of the lines of one `read`, their numbers included; a note comes on top."""
NAMES_MAX = 1_000
NAMES_CHARS_MAX = 48_000
DEPTH_MAX = 32
COMPARED_NAMES_MAX = 5_000
"""How many names are looked at for one that was perhaps meant."""


class ReadArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, relative to the workspace root.")]
    offset: Annotated[int, Meta(ge=1, description="The first line to give, counted from 1.")] = 1
    limit: Annotated[
        int, Meta(ge=1, description=f"How many lines to give, {LINES_MAX} at most.")
    ] = LINES_MAX
    column: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="The first character of each line to give, for lines that were cut.",
        ),
    ] = 1


class Read:
    """Lines of a text file, numbered."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self.spec = ToolSpec(
            name="read",
            label="Read file",
            description=(
                "Read a text file. Gives numbered lines and tells how many there are. "
                "Use offset and limit for parts of a long file."
            ),
            parameters=parameters_of(ReadArguments),
            mutating=False,
            path_arguments=("path",),
        )

    def run(self, call: ToolCall) -> ToolResult:
        asked = read_arguments(ReadArguments, call)
        workspace = Workspace(self._files, self._root)
        place = workspace.target(asked.path)
        found = regular_file(workspace, place)
        limit = min(asked.limit, LINES_MAX)
        file = self._files.open(place.real, "read")
        try:
            given = take_lines(file, asked.offset, limit, asked.column, LINE_CHARS_MAX)
        except NotText:
            text = describe_bytes(place.path, file.read_at(0, 64), found.size)
            return text_result(text, {"path": place.path, "size": found.size, "binary": True})
        finally:
            file.close()
        return _lines_result(place, found, asked, given)


def _lines_result(
    place: Place, found: FileStat, asked: ReadArguments, given: LineRange
) -> ToolResult:
    name = shown(place.path)
    total = f"{given.total:,}" if given.counted else f"more than {given.total:,}"
    if not given.lines and given.total:
        raise ToolRefused(f"{name} has {total} lines; there is no line {asked.offset}")
    rows: list[str] = []
    room = TEXT_CHARS_MAX
    for number, line in enumerate(given.lines, asked.offset):
        row = f"{number:>6}\t{line}"
        room -= len(row) + 1
        if room < 0:
            break
        rows.append(row)
    last = asked.offset + len(rows) - 1
    notes = [f"{name}: lines {asked.offset:,}-{last:,} of {total}" if rows else f"{name} is empty"]
    if last < given.total:
        notes.append(f"go on with offset={last + 1}")
    if given.cut:
        column = asked.column + LINE_CHARS_MAX
        notes.append(f"lines are cut at {LINE_CHARS_MAX} characters; go on with column={column}")
    if given.crlf:
        notes.append("lines end in CR LF")
    details = {
        "path": place.path,
        "first_line": asked.offset,
        "last_line": last,
        "lines_total": given.total,
        "size": found.size,
    }
    return text_result("\n".join((*rows, f"[{'; '.join(notes)}]")), details)


class ListArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The folder, relative to the workspace root.")] = "."
    depth: Annotated[
        int, Meta(ge=1, le=DEPTH_MAX, description="1 lists the folder, 2 its sub-folders too.")
    ] = 1
    glob: Annotated[
        str, Meta(description="List only files that fit, for example *.md or notes/**/*.txt.")
    ] = ""


class List:
    """The names in a folder."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self.spec = ToolSpec(
            name="ls",
            label="List folder",
            description=(
                "List the names in a folder, one a line, as paths relative to the workspace "
                "root; folders end in a slash."
            ),
            parameters=parameters_of(ListArguments),
            mutating=False,
            path_arguments=("path",),
        )

    def run(self, call: ToolCall) -> ToolResult:
        asked = read_arguments(ListArguments, call)
        workspace = Workspace(self._files, self._root)
        place = workspace.target(asked.path)
        found = workspace.stat(place)
        if found is None:
            raise missing(workspace, place)
        if found.kind != "folder":
            raise ToolRefused(f"{shown(place.path)} is a file, not a folder; use read")
        glob = Glob(asked.glob)
        names: list[str] = []
        left_out = 0
        room = NAMES_CHARS_MAX
        for entry in workspace.walk(place, asked.depth):
            if asked.glob and (entry.kind == "folder" or not glob.fits(entry.path)):
                continue
            name = _listed(entry)
            if len(names) >= NAMES_MAX or room < len(name) + 1:
                left_out += 1
                continue
            room -= len(name) + 1
            names.append(name)
        return _names_result(place, asked, names, left_out)


def _listed(entry: Entry) -> str:
    name = shown(entry.path)
    return name + "/" if entry.kind == "folder" else name


def _names_result(
    place: Place, asked: ListArguments, names: list[str], left_out: int
) -> ToolResult:
    lines = list(names)
    if not names:
        fitting = f" that fits {asked.glob}" if asked.glob else ""
        lines.append(f"[{shown(place.path)}: nothing{fitting} is here]")
    if left_out:
        lines.append(f"[{left_out:,} more names left out; list a sub-folder or give a glob]")
    details = {"path": place.path, "names": len(names), "left_out": left_out}
    return text_result("\n".join(lines), details)


def regular_file(workspace: Workspace, place: Place) -> FileStat:
    """The stat of a plain file.

    Raises:
        ToolRefused: there is none, or it is something else.
    """
    found = workspace.stat(place)
    if found is None:
        raise missing(workspace, place)
    if found.kind == "folder":
        raise ToolRefused(f"{shown(place.path)} is a folder; use ls")
    if found.kind != "file":
        raise ToolRefused(f"{shown(place.path)} is no plain file (a pipe, socket or device)")
    return found


def missing(workspace: Workspace, place: Place) -> ToolRefused:
    """What to say of a path where nothing is, with the paths that were perhaps meant."""
    folder, _, name = place.path.rpartition("/")
    try:
        beside = workspace.walk(workspace.target(folder or "."), 1)
        near = [entry.path for entry in itertools.islice(beside, NAMES_MAX)]
        everywhere = itertools.islice(workspace.walk(workspace.target(".")), COMPARED_NAMES_MAX)
        same = [entry.path for entry in everywhere if entry.path.rpartition("/")[2] == name]
    except (ToolRefused, OSError):
        near, same = [], []
    close = dict.fromkeys(same[:3] + difflib.get_close_matches(place.path, near, n=3))
    meant = f"; did you mean {' or '.join(map(shown, close))}?" if close else ""
    return ToolRefused(
        f"{shown(place.path)} does not exist{meant or '; use ls or search to find it'}"
    )
