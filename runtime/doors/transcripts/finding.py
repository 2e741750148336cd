"""Which session a person means."""

import msgspec

from tenure.messages.session import SessionNotFound
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.layout import Layout


class SessionFound(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Exactly one session is meant."""

    session_id: SessionId
    path: str


class SessionAmbiguous(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Several sessions begin like this."""

    text: str
    candidates: tuple[SessionId, ...]

    @property
    def remedy(self) -> str:
        return (
            f"{self.text!r} is the beginning of {len(self.candidates)} sessions; write more of it"
        )


def find_session(
    leaves: Leaves, root: str, text: str
) -> SessionFound | SessionAmbiguous | SessionNotFound:
    """Find a session of this root, and of no other, by its id or the beginning of one.

    Blocks.

    Raises:
        OSError: the folder of sessions cannot be read.
    """
    layout = Layout(root)
    ids = layout.session_ids(leaves.files)
    if text in ids:
        return SessionFound(session_id=SessionId(text), path=ids[SessionId(text)])
    candidates = sorted(session_id for session_id in ids if text and session_id.startswith(text))
    if len(candidates) == 1:
        return SessionFound(session_id=candidates[0], path=ids[candidates[0]])
    if candidates:
        return SessionAmbiguous(text=text, candidates=tuple(candidates))
    return SessionNotFound(session_id=SessionId(text), searched=layout.sessions)
