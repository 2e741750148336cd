"""Which session a person means."""

import msgspec

from tenure.messages.session import SessionNotFound
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.cache import SessionSummary
from tenure.runtime.doors.transcripts.catalogue import Catalogue


class SessionFound(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Exactly one session is meant."""

    session_id: SessionId
    path: str


class SessionAmbiguous(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Several ids begin like this, or several sessions have this name."""

    text: str
    candidates: tuple[SessionId, ...]

    @property
    def remedy(self) -> str:
        return f"{self.text!r} may be any of {len(self.candidates)} sessions; give more of one's id"


def find_session(
    leaves: Leaves, root: str, text: str
) -> SessionFound | SessionAmbiguous | SessionNotFound:
    """`find_listed` for who has no catalogue.  Blocks.

    Raises:
        OSError: the folder of sessions cannot be read.
    """
    return find_listed(leaves, Catalogue(leaves, root), text)


def find_listed(
    leaves: Leaves, catalogue: Catalogue, text: str
) -> SessionFound | SessionAmbiguous | SessionNotFound:
    """Find a session of this root, and of no other, by its id, the beginning of one, or its name.

    An id, or the beginning of one, goes before a name; a name counts whole, whatever
    its case.

    Blocks.

    Raises:
        OSError: the folder of sessions cannot be read.
    """
    layout = catalogue.layout
    ids = layout.session_ids(leaves.files)
    if text in ids:
        return SessionFound(session_id=SessionId(text), path=ids[SessionId(text)])
    candidates = sorted(session_id for session_id in ids if text and session_id.startswith(text))
    if not candidates and text:
        # A file that was renamed is listed by the id in its header, so it is found by it.
        ids = _by_header(catalogue, text)
        candidates = [SessionId(text)] if text in ids else sorted(ids)
    if len(candidates) == 1:
        return SessionFound(session_id=candidates[0], path=ids[candidates[0]])
    if candidates:
        return SessionAmbiguous(text=text, candidates=tuple(candidates))
    named = _named(catalogue, text) if text.strip() else ()
    if len(named) == 1:
        return SessionFound(session_id=named[0].id, path=named[0].path)
    if named:
        return SessionAmbiguous(text=text, candidates=tuple(each.id for each in named))
    return SessionNotFound(session_id=SessionId(text), searched=layout.sessions)


def _by_header(catalogue: Catalogue, text: str) -> dict[SessionId, str]:
    """The sessions whose id begins with the text, as their headers have it."""
    return {each.id: each.path for each in catalogue.sessions() if each.id.startswith(text)}


def _named(catalogue: Catalogue, text: str) -> tuple[SessionSummary, ...]:
    wanted = " ".join(text.split()).casefold()
    return tuple(
        each for each in catalogue.sessions() if each.id and each.name.casefold() == wanted
    )
