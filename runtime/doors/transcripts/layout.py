"""Where things lie under a root, and how names become safe file names."""

import json
from typing import Any

from tenure.messages.tokens import SessionId
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.safe_names import TRANSCRIPT_SUFFIX as SUFFIX
from tenure.runtime.doors.safe_names import named_session, safe_name
from tenure.runtime.doors.transcripts.codec import iso_time
from tenure.runtime.doors.transcripts.dialects import Unreadable, read_header
from tenure.runtime.doors.transcripts.storage import close_quietly

_HEADER_BYTES_MAX = 65_536


class Layout:
    """The folders of one root.

    Args:
        root: the workspace root, an absolute path.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.home = f"{root.rstrip('/')}/.tenure"
        self.sessions = f"{self.home}/sessions"
        self.trash = f"{self.home}/trash/sessions"
        self.cache = f"{self.home}/cache/sessions.json"

    def new_session(self, session_id: SessionId, created_ms: int) -> str:
        """The path of a new transcript."""
        moment = iso_time(created_ms).replace(":", "-").replace(".", "-")
        return f"{self.sessions}/{moment}_{safe_name(session_id)}{SUFFIX}"

    def claim(self, session_id: SessionId) -> str:
        """The path that stands for a session among the claims."""
        return f"{self.home}/claims/sessions/{safe_name(session_id)}"

    def doubt(self, session_id: SessionId) -> str:
        """The path of the note that a sync of the session's transcript failed."""
        return f"{self.claim(session_id)}.doubt"

    def host(self, host_id: str) -> str:
        """The folder of what one host notes for itself."""
        return f"{self.home}/hosts/{safe_name(host_id)}"

    def seat(self, host_id: str, seat: str) -> str:
        """The path of a seat record."""
        return f"{self.host(host_id)}/seats/{safe_name(seat)}.json"

    def transcripts(self, files: Files) -> list[str]:
        """The paths of everything that is named as a transcript, in order of their names."""
        try:
            names = files.list(self.sessions)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [f"{self.sessions}/{name}" for name, _ in names if name.endswith(SUFFIX)]

    def find(self, files: Files, session_id: SessionId) -> str | None:
        """The transcript of a session, in this root and in no other; None where there is none.

        By file name; only where no name tells are files looked into, and first those
        that are named otherwise.
        """
        paths = self.transcripts(files)
        safe = safe_name(session_id)
        named = [path for path in paths if named_session(path) == safe]
        if named:
            return named[-1]
        others = sorted(paths, key=lambda path: bool(named_session(path)))
        return next((path for path in others if header_id(files, path) == session_id), None)

    def session_ids(self, files: Files) -> dict[SessionId, str]:
        """Every session of the root with its transcript.

        By file name; only files whose name does not tell are looked into.
        """
        ids: dict[SessionId, str] = {}
        for path in self.transcripts(files):
            named = named_session(path)
            told = named and not set(named) & {"%", "~"}
            session_id = named if told else header_id(files, path)
            if session_id is not None:
                ids[SessionId(session_id)] = path
        return ids

    def parent_of(self, files: Files, path: str) -> str:
        """The path of the transcript that this one was forked from, as its header has it."""
        header = _header_fields(files, path)
        parent = header.get("parentSession")
        return parent if isinstance(parent, str) else ""


def _header_fields(files: Files, path: str) -> dict[str, Any]:
    try:
        file = files.open(path, "read")
    except OSError:
        return {}
    try:
        fields = json.loads(file.read_at(0, _HEADER_BYTES_MAX).partition(b"\n")[0])
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        close_quietly(file)
    return fields if isinstance(fields, dict) else {}


def header_id(files: Files, path: str) -> str | None:
    """The session id in the header of a file; None where it cannot be told."""
    try:
        file = files.open(path, "read")
    except OSError:
        return None
    try:
        line, parted, _ = file.read_at(0, _HEADER_BYTES_MAX).partition(b"\n")
        return read_header(line, terminated=bool(parted)).id
    except (OSError, Unreadable):
        return None
    finally:
        close_quietly(file)
