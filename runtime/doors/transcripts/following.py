"""Following a session that another process writes: its new entries, as they become whole lines.

Reads only.  A live writer's unfinished last line is left for the next look; a
file that took the place of the old one is read from its beginning, and only
what is new in it is given.
"""

from collections.abc import Iterator

from tenure.runtime.doors.files import File, Files, FileStat
from tenure.runtime.doors.transcripts.catalogue import EntryState, EntryView
from tenure.runtime.doors.transcripts.codec import has_seal_form, is_sealed
from tenure.runtime.doors.transcripts.scan import head_of
from tenure.runtime.doors.transcripts.storage import close_quietly
from tenure.runtime.doors.transcripts.tree import Head

READ_BYTES_MAX = 4 * 1024 * 1024
"""Of one look, unless a single line has more."""


class Follower:
    """How far one reader has come in one transcript.  Not for use by two workers at once."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that is read."""
        self._read = 0
        """Bytes of whole lines."""
        self._lines = 0
        self._seen: set[str] = set()
        self._last_id: str | None = None
        self._epoch = 0

    def look(self) -> tuple[EntryView, ...]:
        """What has come since the last look; empty for nothing.  Blocks.

        A file that is gone for the moment has nothing new.
        """
        try:
            found = self._files.stat(self._path)
            if self._is_read_to_its_end(found):
                return ()
            file = self._files.open(self._path, "read")
        except FileNotFoundError:
            return ()
        try:
            while lines := self._new_lines(file):
                views = tuple(self._views(lines))
                if views:
                    return views
            return ()
        finally:
            close_quietly(file)

    def _is_read_to_its_end(self, found: FileStat) -> bool:
        return self._file == (found.device, found.inode) and self._read == found.size

    def _new_lines(self, file: File) -> list[bytes]:
        found = file.stat()
        if self._file != (found.device, found.inode) or found.size < self._read:
            self._file = (found.device, found.inode)
            self._read, self._lines, self._last_id, self._epoch = 0, 0, None, 0
        data = file.read_at(self._read, min(found.size - self._read, READ_BYTES_MAX))
        if b"\n" not in data:
            data = file.read_at(self._read, found.size - self._read)
        whole, newline, _ = data.rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return whole.split(b"\n") if newline else []

    def _views(self, lines: list[bytes]) -> Iterator[EntryView]:
        for line in lines:
            self._lines += 1
            if self._lines == 1 or not line.strip():
                continue  # the header, or nothing
            head = None if _is_altered(line) else head_of(line)
            view = self._view(line, head)
            if head is not None:
                self._last_id = head.id
                if head.id in self._seen:
                    continue  # it was given before the file was replaced
                self._seen.add(head.id)
            yield view

    def _view(self, line: bytes, head: Head | None) -> EntryView:
        text = line.decode("utf-8", "replace")
        if head is None:
            state: EntryState = "altered" if _is_altered(line) else "unreadable"
            return EntryView(
                line=self._lines,
                state=state,
                id="",
                parent_id=None,
                type="",
                timestamp="",
                text=text,
            )
        known = head.parent_id is None or head.parent_id in self._seen
        return EntryView(
            line=self._lines,
            state=self._state(line, head),
            id=head.id,
            parent_id=head.parent_id if known else self._last_id,
            type=head.type,
            timestamp=head.timestamp,
            text=text,
        )

    def _state(self, line: bytes, head: Head) -> EntryState:
        if head.tenure is None or not is_sealed(line):
            return "unverified"
        if head.tenure.epoch < self._epoch:
            return "out_of_epoch"
        self._epoch = head.tenure.epoch
        return "intact"


def _is_altered(line: bytes) -> bool:
    return has_seal_form(line) and not is_sealed(line)
