"""The transcript door: one JSONL file per session, in the pi v3 dialect, appended by one hand."""

from tenure.runtime.doors.transcripts.cache import SessionSummary
from tenure.runtime.doors.transcripts.catalogue import (
    Catalogue,
    EntryView,
    SessionSnapshot,
    list_sessions,
    read_session,
)
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.doors.transcripts.door import Transcripts
from tenure.runtime.doors.transcripts.exporting import Exported, NothingToExport, export_session
from tenure.runtime.doors.transcripts.finding import (
    SessionAmbiguous,
    SessionFound,
    find_listed,
    find_session,
)
from tenure.runtime.doors.transcripts.following import Follower
from tenure.runtime.doors.transcripts.searching import SessionMatch, search_sessions
from tenure.runtime.doors.transcripts.storage import Sync
from tenure.runtime.doors.transcripts.trees import SessionTree, TreeNode, tree_of
from tenure.runtime.doors.transcripts.verifying import Problem, Verification, verify_session

__all__ = [
    "Catalogue",
    "EntryView",
    "Exported",
    "Follower",
    "NothingToExport",
    "Problem",
    "SessionAmbiguous",
    "SessionFound",
    "SessionMatch",
    "SessionSnapshot",
    "SessionSummary",
    "SessionTree",
    "Sync",
    "Transcripts",
    "TreeNode",
    "Unreadable",
    "Verification",
    "export_session",
    "find_listed",
    "find_session",
    "list_sessions",
    "read_session",
    "search_sessions",
    "tree_of",
    "verify_session",
]
