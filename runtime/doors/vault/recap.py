"""What wake tells of the notes: projects and commitments that are open, new decisions and
lessons.

A few fields of each note are kept in a cache outside the notes.  It is never trusted
further than a note looks as it did, and a vault works without it.

These functions block: they run in a worker.
"""

import re
from contextlib import suppress

import msgspec

from tenure.messages.handoff import ItemKind
from tenure.runtime.doors.claims import make_folders_durably, replace_durably
from tenure.runtime.doors.files import FileStat
from tenure.runtime.doors.vault.frontmatter import FRONT_BYTES_MAX, parse_note
from tenure.runtime.doors.vault.handoff_files import RACY_MS
from tenure.runtime.doors.vault.names import one_line
from tenure.runtime.doors.vault.paths import VaultGround, reason_of

FOLDERS: dict[str, ItemKind] = {
    "projects": "project",
    "commitments": "commitment",
    "decisions": "decision",
    "lessons": "lesson",
}
END_STATES = frozenset(
    {
        "abandoned",
        "archived",
        "canceled",
        "cancelled",
        "closed",
        "complete",
        "completed",
        "done",
        "dropped",
        "fulfilled",
        "resolved",
    }
)
"""Whatever its case, a project or a commitment in one of these is over."""
NEW_MAX = 5
READ_AGAIN_MAX = 32
_DATE = re.compile(r"\A\d{4}-\d{2}-\d{2}")
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)


class Row(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What is known of one note, and how it looked when it was read."""

    title: str
    status: str
    date: str
    size: int
    mtime_ns: int
    inode: int
    at_ms: int
    problem: str = ""

    def is_still(self, found: FileStat) -> bool:
        same = (self.size, self.mtime_ns, self.inode) == (found.size, found.mtime_ns, found.inode)
        return same and found.mtime_ns // 1_000_000 < self.at_ms - RACY_MS


class Recap(msgspec.Struct, kw_only=True):
    """The notes that wake tells of: path and title."""

    rows: dict[ItemKind, list[tuple[str, str]]] = {}
    problems: list[str] = []


def recap(ground: VaultGround) -> Recap:
    """Look at every note of the four folders; those that look as before are not read."""
    before = _load(ground)
    now: dict[str, Row] = {}
    problems: list[str] = []
    for folder in FOLDERS:
        try:
            names = ground.names(folder)
        except OSError as error:
            problems.append(f"{folder}: {reason_of(error)}")
            continue
        for name in names:
            path = f"{folder}/{name}"
            try:
                now[path] = _row(ground, path, before.get(path))
            except OSError as error:
                problems.append(f"{path}: {reason_of(error)}")
    problems += [f"{path}: {row.problem}" for path, row in now.items() if row.problem]
    if sum(before.get(path) != row for path, row in now.items()) > READ_AGAIN_MAX:
        _save(ground, now)
    return Recap(
        rows={kind: _told(folder, now) for folder, kind in FOLDERS.items()}, problems=problems
    )


def _told(folder: str, rows: dict[str, Row]) -> list[tuple[str, str]]:
    mine = {path: row for path, row in rows.items() if path.startswith(f"{folder}/") and row.title}
    if folder in ("projects", "commitments"):
        open_ones = {p: row for p, row in mine.items() if row.status.casefold() not in END_STATES}
        return [(path, row.title) for path, row in sorted(open_ones.items())]
    by_date = sorted(mine.items(), key=lambda each: (each[1].date, each[0]), reverse=True)
    return [(path, row.title) for path, row in by_date]


def _row(ground: VaultGround, path: str, before: Row | None) -> Row:
    if before is not None:
        found = ground.files.lstat(ground.at(path))
        if found.kind == "file" and before.is_still(found):
            return before
    file = ground.open(path)
    try:
        found = file.stat()
        data = file.read_at(0, FRONT_BYTES_MAX + 8_192)
    finally:
        file.close()
    note = parse_note(data)
    return Row(
        title=_title(path, note.text("title"), note.body),
        status=one_line(note.text("status")),
        date=one_line(note.text("date"))[:10],
        size=found.size,
        mtime_ns=found.mtime_ns,
        inode=found.inode,
        at_ms=ground.leaves.clock.now_ms(),
        problem=note.problem,
    )


def _title(path: str, given: str, body: str) -> str:
    if given.strip():
        return one_line(given)
    stem = path.rpartition("/")[2].removesuffix(".md")
    if _DATE.match(stem):
        return ""  # a day's list of observations is no project
    heading = _HEADING.search(body)
    return one_line(heading[1] if heading else stem)


def _load(ground: VaultGround) -> dict[str, Row]:
    try:
        file = ground.files.open(f"{ground.cache}/recap.json", "read")
    except OSError:
        return {}
    try:
        return msgspec.json.decode(file.read_at(0, file.stat().size), type=dict[str, Row])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    finally:
        file.close()


def _save(ground: VaultGround, rows: dict[str, Row]) -> None:
    with suppress(OSError, UnicodeEncodeError):
        make_folders_durably(ground.files, ground.cache)
        replace_durably(ground.files, f"{ground.cache}/recap.json", msgspec.json.encode(rows))
