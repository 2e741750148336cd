"""The tool that looks into all files: `search`.

`find_hits` is the whole search, apart from how its result is told: another
searcher (an index) answers the same `Question` with the same `Hits`.
"""

import importlib
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tenure.messages.models import ToolSpec
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.tools.globs import Glob
from tenure.runtime.doors.tools.reading import missing
from tenure.runtime.doors.tools.text import BLOCK_BYTES, NotText, counted, shown, text_blocks
from tenure.runtime.doors.tools.tool import (
    ToolCall,
    ToolRefused,
    ToolResult,
    parameters_of,
    read_arguments,
    text_result,
)
from tenure.runtime.doors.tools.workspace import Entry, Place, Workspace

HITS_MAX = 200
HITS_PER_FILE_MAX = 50
EXCERPT_CHARS = 200
QUERY_CHARS_MAX = 1_000
SEARCHED_BYTES_MAX = 536_870_912
SEARCH_TIME_MAX_S = 20.0
REPEATS_MAX = 1_000
"""Of the counted repetitions of a regular expression, multiplied: they are unrolled."""
LINE_TIME_MAX_S = 1.0
"""How long a regular expression may work on one line."""

_ENOUGH = f"stopped after {HITS_MAX} matches; give a longer query, a glob or a path"


class SearchArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    query: Annotated[str, Meta(description="The text to find, within one line.")]
    regex: Annotated[bool, Meta(description="Take the query as a regular expression.")] = False
    case_sensitive: Annotated[bool, Meta(description="Tell upper from lower case.")] = False
    glob: Annotated[
        str, Meta(description="Search only files that fit, for example *.md or notes/**/*.txt.")
    ] = ""
    path: Annotated[
        str, Meta(description="The folder or file to search, relative to the workspace root.")
    ] = "."


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One line that matches."""

    path: str
    line: int
    """From 1."""
    text: str
    """The line, or a part of a long one."""


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    hits: tuple[Hit, ...]
    files: int
    """How many files were searched."""
    notes: tuple[str, ...]
    """What was left out, and how to get it."""


class Search:
    """Lines with a text or a pattern, over all files."""

    def __init__(self, files: Files, clock: Clock, root: str) -> None:
        self._files = files
        self._clock = clock
        self._root = root
        self.spec = ToolSpec(
            name="search",
            label="Search files",
            description=(
                "Find a text (or a regular expression) in the files of the workspace. "
                "Gives the lines that match as path:line: text. Upper and lower case are "
                "the same unless caseSensitive is true."
            ),
            parameters=parameters_of(SearchArguments),
            mutating=False,
            path_arguments=("path",),
        )

    def run(self, call: ToolCall) -> ToolResult:
        asked = read_arguments(SearchArguments, call)
        workspace = Workspace(self._files, self._root)
        found = find_hits(workspace, self._clock, asked)
        lines = [f"{shown(hit.path)}:{hit.line}: {hit.text}" for hit in found.hits]
        if not lines:
            lines.append(
                f"[no line matches {asked.query!r}; {counted(found.files, 'file')} searched]"
            )
        lines += [f"[{note}]" for note in found.notes]
        details = {"hits": len(found.hits), "files": found.files}
        return text_result("\n".join(lines), details)


def find_hits(workspace: Workspace, clock: Clock, asked: SearchArguments) -> Hits:
    """Search file after file, in the order of their paths.

    Raises:
        ToolRefused: the question cannot be asked like this.
    """
    place = workspace.target(asked.path)
    run = _Run(workspace, clock, _finder(asked))
    single = _single_file(workspace, place)
    if single is not None:
        run.search(single, HITS_MAX)
        return run.result()
    glob = Glob(asked.glob)
    for entry in workspace.walk(place):
        if run.over:
            break
        if entry.kind == "file" and glob.fits(entry.path):
            run.search(entry, HITS_PER_FILE_MAX)
    return run.result()


def _single_file(workspace: Workspace, place: Place) -> Entry | None:
    found = workspace.stat(place)
    if found is None:
        raise missing(workspace, place)
    if found.kind == "folder":
        return None
    if found.kind != "file":
        raise ToolRefused(f"{shown(place.path)} is no plain file (a pipe, socket or device)")
    return Entry(real=place.real, path=place.path, kind="file")


class _Run:
    """One search: what it found so far, and what it may still spend."""

    def __init__(self, workspace: Workspace, clock: Clock, finder: "_Finder") -> None:
        self._files = workspace.files
        self._clock = clock
        self._ends_s = clock.monotonic_s() + SEARCH_TIME_MAX_S
        self._finder = finder
        self._hits: list[Hit] = []
        self._files_searched = 0
        self._unread: list[str] = []
        self._more_in: list[str] = []
        self._bytes = 0
        self.over = ""

    def search(self, entry: Entry, hits_max: int) -> None:
        try:
            file = self._files.open(entry.real, "read")
        except OSError as refused:
            self._unread.append(f"{shown(entry.path)} ({refused.strerror})")
            return
        self._files_searched += 1
        found = 0
        try:
            for number, block in text_blocks(file):
                for hit in self._hits_in(entry, number, block):
                    if found == hits_max and hits_max < HITS_MAX:
                        self._more_in.append(shown(entry.path))
                        return
                    if len(self._hits) == HITS_MAX:
                        self.over = _ENOUGH
                        return
                    self._hits.append(hit)
                    found += 1
                self._spend(block, entry)
                if self.over:
                    return
        except NotText:
            return
        except OSError as refused:
            self._unread.append(f"{shown(entry.path)} ({refused.strerror})")
        finally:
            file.close()

    def result(self) -> Hits:
        notes = [self.over] if self.over else []
        if self._more_in:
            notes.append(
                f"only the first {HITS_PER_FILE_MAX} matches are given of {_few(self._more_in)}; "
                "search one file by its path for more"
            )
        if self._unread:
            notes.append(f"could not be read: {_few(self._unread)}")
        return Hits(hits=tuple(self._hits), files=self._files_searched, notes=tuple(notes))

    def _hits_in(self, entry: Entry, number: int, block: str) -> Iterator[Hit]:
        if not self._finder.may_match(block):
            return
        for line_number, line in enumerate(block.split("\n"), number):
            at = self._finder.find(line)
            if at >= 0:
                yield Hit(path=entry.path, line=line_number, text=_excerpt(line, at))

    def _spend(self, block: str, entry: Entry) -> None:
        self._bytes += len(block)
        where = f"stopped at {shown(entry.path)} after"
        if self._bytes >= SEARCHED_BYTES_MAX:
            self.over = f"{where} {SEARCHED_BYTES_MAX // BLOCK_BYTES} MB; give a glob or a path"
        elif self._clock.monotonic_s() >= self._ends_s:
            self.over = f"{where} {SEARCH_TIME_MAX_S:.0f} s; give a glob or a path"


class _Finder:
    """Finds plain text, whatever way its accents are composed."""

    def __init__(self, fold: Callable[[str], str], query: str) -> None:
        self._fold = fold
        self._needle = fold(query)

    def may_match(self, block: str) -> bool:
        return self._needle in self._fold(block)

    def find(self, line: str) -> int:
        return self._fold(line).find(self._needle)


class _PatternFinder(_Finder):
    """Finds a regular expression, within a time.

    The expression comes from a model, and the interpreter's own engine may work
    on a hostile one for ever, with the whole process standing still.  This
    engine can be timed, and lets the other threads run.
    """

    def __init__(self, query: str, flags: int) -> None:
        engine = _regex_engine()
        if _repeats(query) > REPEATS_MAX:
            raise ToolRefused(
                f"the regular expression repeats more than {REPEATS_MAX} times; use * or +"
            )
        try:
            self._pattern = engine.compile(query, flags)
        except engine.error as wrong:
            raise ToolRefused(
                f"the query is no regular expression: {wrong}. "
                "Correct it, or search for plain text with regex=false"
            ) from None

    def may_match(self, block: str) -> bool:
        return True

    def find(self, line: str) -> int:
        try:
            match = self._pattern.search(
                line.removesuffix("\r"), timeout=LINE_TIME_MAX_S, concurrent=True
            )
        except TimeoutError:
            raise ToolRefused(
                "the regular expression takes too long; make it simpler, "
                "or search for plain text with regex=false"
            ) from None
        return int(match.start()) if match else -1


def _finder(asked: SearchArguments) -> _Finder:
    if not asked.query:
        raise ToolRefused("the query is empty; give the text to find")
    if len(asked.query) > QUERY_CHARS_MAX:
        raise ToolRefused(f"the query is longer than {QUERY_CHARS_MAX} characters; shorten it")
    if asked.regex:
        engine = _regex_engine()
        return _PatternFinder(asked.query, 0 if asked.case_sensitive else engine.IGNORECASE)
    if "\n" in asked.query:
        raise ToolRefused("the query has more than one line; search for one of its lines")
    return _Finder(_composed if asked.case_sensitive else _folded, asked.query)


def _regex_engine() -> Any:
    try:
        return importlib.import_module("regex")
    except ModuleNotFoundError:
        raise ToolRefused(
            "regular expressions need the package regex, which is not installed; "
            "search for plain text with regex=false"
        ) from None


def _repeats(query: str) -> int:
    """The product of all counts in braces: at least as often as any part is unrolled."""
    product = 1
    for counts in re.findall(r"\{([0-9 ,]*)\}", query):
        product *= max(1, *(int(count) for count in counts.split(",") if count.strip().isdigit()))
    return product


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def _excerpt(line: str, at: int) -> str:
    """The line, or what surrounds the match in a long one."""
    line = line.rstrip("\r")
    if len(line) <= 2 * EXCERPT_CHARS:
        return line
    first = max(0, at - EXCERPT_CHARS)
    last = min(len(line), first + 2 * EXCERPT_CHARS)
    return f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
