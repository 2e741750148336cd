"""Which session is the newest that nobody has open."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from tenure.messages.session import StorageFailed
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.transcripts.catalogue import summary_of
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.opening import Opening, open_path
from tenure.runtime.doors.transcripts.storage import reason_of


def open_newest(ground: Ground, seat: str) -> Opening | StorageFailed | None:
    """Open the newest session that can be opened; None where there is none.

    What is in use or cannot be read is passed over.  Where the disk itself says no,
    that is the answer: a new session beside it would fare no better, and hide it.
    """
    files, layout = ground.leaves.files, ground.layout
    try:
        paths = layout.transcripts(files)
    except OSError as error:
        return StorageFailed(path=layout.sessions, reason=reason_of(error))
    for session_id, path in newest_first(files, paths):
        if session_id in ground.seats:
            continue
        opened = open_path(ground, seat, session_id, path, kept=0)
        if isinstance(opened, Opening | StorageFailed):
            return opened
    return None


def newest_first(files: Files, paths: Sequence[str]) -> Iterator[tuple[SessionId, str]]:
    """Readable sessions by the time of their last message, newest first.

    A file is read only once its turn may have come: no message is newer than the
    last change of its file.
    """
    by_change: list[tuple[int, str, FileStat]] = []
    for path in paths:
        try:
            status = files.stat(path)
        except OSError:
            continue  # removed meanwhile
        by_change.append((status.mtime_ns // 1_000_000, path, status))
    by_change.sort(key=lambda each: each[:2], reverse=True)
    read: list[tuple[int, int, SessionId, str]] = []
    for rank, (changed_ms, path, status) in enumerate(by_change):
        while read and -read[0][0] > changed_ms:
            _, _, session_id, newest = heappop(read)
            yield session_id, newest
        summary = summary_of(files, path, status)
        if not summary.problem:
            heappush(read, (-summary.updated_ms, rank, summary.id, path))
    while read:
        _, _, session_id, newest = heappop(read)
        yield session_id, newest
