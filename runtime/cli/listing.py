"""Sessions as rows: the newest first."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from tenure.messages.tokens import SessionId
from tenure.runtime.cli.screen import JsonScreen, Screen, one_line, print_json, print_text
from tenure.runtime.doors.transcripts import SessionMatch, SessionSummary

ID_CHARS_MIN = 8
TITLE_CHARS_MAX = 60


def print_sessions(
    sessions: Sequence[SessionSummary], screen: Screen, current: SessionId | None = None
) -> None:
    """One row, or one JSON object, for each session; `current` is marked."""
    if isinstance(screen, JsonScreen):
        for session in sessions:
            print_json(session)
        return
    if not sessions:
        screen.note("no sessions here; `tenure run` starts one")
    width = id_width(sessions)
    for session in sessions:
        mark = "*" if current and session.id == current else " "
        print_text(f"{mark} {_row(session, width)}\n")


def print_matches(matches: Sequence[SessionMatch], screen: Screen) -> None:
    """One row, or one JSON object, for each session in which the words were found."""
    if isinstance(screen, JsonScreen):
        for match in matches:
            print_json(match)
        return
    if not matches:
        screen.note("found in no session")
    width = id_width([match.session for match in matches])
    for match in matches:
        print_text(f"  {_row(match.session, width)}\n")
        if match.place == "entry":
            more = f" (+{match.entries - 1} entries)" if match.entries > 1 else ""
            print_text(f"      {match.entry_id}: {match.snippet}{more}\n")


def id_width(sessions: Sequence[SessionSummary]) -> int:
    """How many characters tell the ids apart."""
    ids = sorted(session.id for session in sessions if session.id)
    common = (_common(one, other) for one, other in pairwise(ids))
    return max(ID_CHARS_MIN, *(length + 1 for length in common), 0)


def _common(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _row(session: SessionSummary, width: int) -> str:
    if session.problem:
        return f"{'?' * width}  {moment(session.updated_ms)}  {session.path}: {session.problem}"
    title = session.name or session.first_text or "(nothing said)"
    shown = title if len(title) <= TITLE_CHARS_MAX else title[: TITLE_CHARS_MAX - 1] + "…"
    damage = f"  [{session.damage} damaged]" if session.damage else ""
    return (
        f"{session.id[:width]:{width}}  {moment(session.updated_ms)}  "
        f"{session.messages:5}  {one_line(shown)}{damage}"
    )


def moment(milliseconds: int) -> str:
    """Local time, to the minute."""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):  # what another program wrote is no date
        return "----------------"
