"""Making a transcript whole before it is appended to.

Four things may be in the way: a torn tail, a last line without its newline, an
older dialect, and doubt.  Doubt: a sync failed once, so that some bytes may be
in the system's memory and never on the disk, and no later sync brings them
there.  A note of it lies beside the claim; the next opening writes what it reads
into a new file.

These functions block, and are called under the session's claim.
"""

from contextlib import suppress

from tenure.messages.tokens import SessionId
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.transcripts.codec import DIALECT_VERSION
from tenure.runtime.doors.transcripts.ground import Ground
from tenure.runtime.doors.transcripts.scan import Scan
from tenure.runtime.doors.transcripts.storage import (
    TranscriptFile,
    close_quietly,
    folder_of,
    open_file,
    replace_whole,
    replace_with_backup,
    save_torn,
)


def note_doubt(ground: Ground, session_id: SessionId) -> None:
    """Remember, here and for other processes, that a sync of this transcript failed."""
    ground.doubted.add(session_id)
    path = ground.layout.doubt(session_id)
    files = ground.leaves.files
    with suppress(OSError):  # the disk fails: this note may fail as well
        close_quietly(files.open(path, "create"))
        files.sync_folder(folder_of(path))


def made_whole(
    ground: Ground, session_id: SessionId, file: TranscriptFile, data: bytes, found: Scan
) -> TranscriptFile:
    """The transcript, ready to be appended to, with all that was read of it on disk.

    Raises:
        OSError: it is as it was, or whole already; nothing that was read is lost.
    """
    files = ground.leaves.files
    doubt = ground.layout.doubt(session_id)
    doubted = session_id in ground.doubted or is_there(files, doubt)
    if found.header.version != DIALECT_VERSION:
        file = _in_present_dialect(files, file, data, found)
    elif doubted:
        file = _anew(files, file, found)
    else:
        _mend(file, found)
        # Who made the file may have died before its name was durable.
        files.sync_folder(folder_of(file.path))
    if doubted:
        with suppress(FileNotFoundError):
            files.remove(doubt)
        files.sync_folder(folder_of(doubt))
        ground.doubted.discard(session_id)
    return file


def _mend(file: TranscriptFile, found: Scan) -> None:
    """Cut a torn tail, end a last line, and see to it that what was read is on disk."""
    match found.tail.state:
        case "torn":
            file.cut_tail(found.tail.data)
        case "unterminated":
            file.end_last_line()
        case "clean":
            file.sync()


def _in_present_dialect(
    files: Files, file: TranscriptFile, data: bytes, found: Scan
) -> TranscriptFile:
    """Put the present dialect in the place of an older one, which is kept beside it."""
    file.close()
    replace_with_backup(files, file.path, data, _joined(found.new_lines), found.header.version)
    return open_file(files, file.path)


def _anew(files: Files, file: TranscriptFile, found: Scan) -> TranscriptFile:
    """Write the lines into a new file, so that every byte of them gets to the disk."""
    file.close()
    if found.tail.state == "torn":
        save_torn(files, f"{file.path}.torn", found.tail.data)
    replace_whole(files, file.path, _joined(found.old_lines), files.stat(file.path).mode)
    return open_file(files, file.path)


def _joined(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def is_there(files: Files, path: str) -> bool:
    """Whether anything is at a path."""
    try:
        files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
