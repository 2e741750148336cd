"""The transcript door: one JSONL file per session, in the pi v3 dialect, appended by one hand."""

from tenure.runtime.doors.transcripts.catalogue import (
    Catalogue,
    EntryView,
    SessionSnapshot,
    SessionSummary,
    list_sessions,
    read_session,
)
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.door import Transcripts
from tenure.runtime.doors.transcripts.finding import (
    SessionAmbiguous,
    SessionFound,
    find_session,
)
from tenure.runtime.doors.transcripts.storage import Sync

__all__ = [
    "Catalogue",
    "EntryView",
    "SessionAmbiguous",
    "SessionFound",
    "SessionSnapshot",
    "SessionSummary",
    "Sync",
    "Transcripts",
    "Unreadable",
    "find_session",
    "list_sessions",
    "read_session",
]
