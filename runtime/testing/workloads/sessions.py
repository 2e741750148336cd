"""Names, branches, copies, ends and rewrites of sessions, beside turns and swaps."""

from typing import TYPE_CHECKING, Literal

from tenure.messages.base import Command
from tenure.messages.session_ops import (
    ClearSessions,
    DeleteSession,
    ForkSession,
    Position,
    Redact,
    RenameSession,
    RewindSession,
    RewriteSession,
    SetLabel,
    Vacuum,
)
from tenure.messages.tokens import EntryId, SessionId, SessionToken
from tenure.runtime.testing.workloads.base import AtSeat, Workload

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_plan import Planner
    from tenure.runtime.testing.workload_run import Run

Whose = Literal["own", "known", "of_other_seat", "missing"]
TokenOf = Literal["none", "current", "stale"]


class Rename(AtSeat, frozen=True, kw_only=True):
    """Give a session a name."""

    whose: Whose
    pick: int
    name: str
    token: TokenOf


class Label(AtSeat, frozen=True, kw_only=True):
    """Mark an entry, or take its mark away."""

    entry: int
    label: str
    token: TokenOf


class Fork(AtSeat, frozen=True, kw_only=True):
    """Copy a path into a new session."""

    whose: Whose
    pick: int
    entry: int
    position: Position
    name: str


class Rewind(AtSeat, frozen=True, kw_only=True):
    """Go on from an earlier entry."""

    entry: int
    position: Position
    token: TokenOf


class Delete(AtSeat, frozen=True, kw_only=True):
    """Move a session to the trash."""

    whose: Whose
    pick: int


class Clear(AtSeat, frozen=True, kw_only=True):
    """Move every session that nobody has open to the trash."""


class Rewrite(AtSeat, frozen=True, kw_only=True):
    """Take text out of a session, or leave other branches out of its file."""

    whose: Whose
    pick: int
    how: Literal["redact", "vacuum", "bad_pattern", "of_nothing"]
    entry: int
    token: TokenOf


SessionOp = Rename | Label | Fork | Rewind | Delete | Clear | Rewrite

# --- how they are drawn ----------------------------------------------------------------------

WHOSE: tuple[Whose, ...] = ("own", "own", "own", "known", "known", "of_other_seat", "missing")
POSITIONS: tuple[Position, ...] = ("at", "at", "before")
NO_ENTRY, UNKNOWN_ENTRY = -1, -2
ENTRIES = (0, 0, 1, 2, 5, NO_ENTRY, UNKNOWN_ENTRY)
"""How far back from the newest entry; the leaf or the root; one that no session has."""


def _draw_rename(planner: "Planner") -> Rename:
    return Rename(
        **planner.place(),
        whose=planner.one(WHOSE),
        pick=planner.one(range(4)),
        name=planner.one(("", "name", planner.text("name"))),
        token=planner.token(),
    )


def _draw_label(planner: "Planner") -> Label:
    return Label(
        **planner.place(),
        entry=planner.one(ENTRIES),
        label=planner.one(("", "mark", planner.text("label"))),
        token=planner.token(),
    )


def _draw_fork(planner: "Planner") -> Fork:
    return Fork(
        **planner.place(),
        whose=planner.one(WHOSE),
        pick=planner.one(range(4)),
        entry=planner.one(ENTRIES),
        position=planner.one(POSITIONS),
        name=planner.one(("", planner.text("fork"))),
    )


def _draw_rewind(planner: "Planner") -> Rewind:
    return Rewind(
        **planner.place(),
        entry=planner.one(ENTRIES),
        position=planner.one(POSITIONS),
        token=planner.token(),
    )


def _draw_delete(planner: "Planner") -> Delete:
    return Delete(**planner.place(), whose=planner.one(WHOSE), pick=planner.one(range(4)))


def _draw_clear(planner: "Planner") -> Clear:
    return Clear(**planner.place())


def _draw_rewrite(planner: "Planner") -> Rewrite:
    return Rewrite(
        **planner.place(),
        whose=planner.one(WHOSE),
        pick=planner.one(range(4)),
        how=planner.one(("redact", "redact", "redact", "vacuum", "bad_pattern", "of_nothing")),
        entry=planner.one(ENTRIES),
        token=planner.token(),
    )


# --- how they are done -----------------------------------------------------------------------

NOBODY = SessionId("no-such-session")


async def _do(run: "Run", op: "SessionOp") -> None:
    host, seat = await run.clients.seat(op)
    await host.ask(_command(run, op, (host.run_name, seat)), seat)


def _command(run: "Run", op: "SessionOp", place: tuple[str, str]) -> Command:
    match op:
        case Rename(name=name):
            session = _session(run, op, place)
            token = _token(run, op, place)
            return RenameSession(name=name, session_id=session, token=token)
        case Label(label=label):
            entry = _entry(run, op.entry, place) or EntryId("none")
            return SetLabel(entry_id=entry, label=label, token=_token(run, op, place))
        case Fork(position=position, name=name):
            return ForkSession(
                session_id=_session(run, op, place),
                entry_id=_entry(run, op.entry, place),
                position=position,
                name=name,
            )
        case Rewind(position=position):
            token = _token(run, op, place)
            target = _entry(run, op.entry, place)
            return RewindSession(entry_id=target, position=position, token=token)
        case Delete():
            session = _session(run, op, place) or _own(run, place)
            return DeleteSession(session_id=session)
        case Clear():
            return ClearSessions()
        case Rewrite():
            return RewriteSession(
                rewrite=_rewrite(run, op, place),
                session_id=_session(run, op, place),
                token=_token(run, op, place),
            )


def _rewrite(run: "Run", op: Rewrite, place: tuple[str, str]) -> Redact | Vacuum:
    match op.how:
        case "vacuum":
            return Vacuum()
        case "bad_pattern":
            return Redact(patterns=("(",))
        case "of_nothing":
            return Redact(patterns=("no such text",))
        case "redact":
            entry = _entry(run, op.entry, place)
            return Redact(patterns=("line[0-9]",), entry_ids=() if entry is None else (entry,))


def _token(
    run: "Run", op: "Rename | Label | Rewind | Rewrite", place: tuple[str, str]
) -> SessionToken | None:
    return run.clients.token(op.token, place)


def _own(run: "Run", place: tuple[str, str]) -> SessionId:
    tokens = run.board.tokens.get(place)
    return tokens[-1].session_id if tokens else NOBODY


def _session(
    run: "Run", op: Rename | Fork | Delete | Rewrite, place: tuple[str, str]
) -> SessionId | None:
    """None for the seat's own, as commands say it."""
    board = run.board
    match op.whose:
        case "own":
            return None
        case "known" if board.sessions:
            return board.sessions[-1 - op.pick % len(board.sessions)]
        case "of_other_seat":
            others = [tokens[-1] for other, tokens in board.tokens.items() if other != place]
            return others[-1].session_id if others else NOBODY
        case _:
            return NOBODY


def _entry(run: "Run", back: int, place: tuple[str, str]) -> EntryId | None:
    """An entry of the seat's own session, which may be no entry of the one that is meant."""
    if back == NO_ENTRY:
        return None
    entries = run.board.entries.get(_own(run, place), [])
    if back == UNKNOWN_ENTRY or back >= len(entries):
        return EntryId("no-such-entry")
    return entries[-1 - back]


# --- the workload ----------------------------------------------------------------------------

WORKLOAD = Workload(
    name="sessions",
    draws={
        "rename": _draw_rename,
        "label": _draw_label,
        "fork": _draw_fork,
        "rewind": _draw_rewind,
        "delete": _draw_delete,
        "clear": _draw_clear,
        "rewrite": _draw_rewrite,
    },
    does=dict.fromkeys((Rename, Label, Fork, Rewind, Delete, Clear, Rewrite), _do),
    themes={
        "usual": {
            "rename": 8, "label": 6, "fork": 8, "rewind": 10, "delete": 5, "clear": 2,
            "rewrite": 8,
        },
        "rewinds": {"rewind": 25, "label": 10, "fork": 10, "stop": 12},
        "rewrites": {"rewrite": 25, "append": 15, "rewind": 10, "disk": 14, "edit": 6},
        "ends": {"delete": 15, "clear": 8, "swap": 20, "park": 8, "process": 8},
    },
    share=2.0,
)  # fmt: skip
