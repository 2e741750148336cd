"""What all transcripts of one root stand on."""

from dataclasses import dataclass, field

from tenure.messages.tokens import SessionId
from tenure.runtime.doors.claims import Claims
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.layout import Layout
from tenure.runtime.doors.transcripts.storage import Sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    leaves: Leaves
    layout: Layout
    claims: Claims
    host_id: str
    sync: Sync
    seats: dict[SessionId, str] = field(default_factory=dict)
    """Which seat of this host holds or opens which session.  Written by workers too."""
    doubted: set[SessionId] = field(default_factory=set)
    """Sessions whose last write could not be confirmed.  Written by workers too."""
