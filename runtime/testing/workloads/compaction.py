"""Passes in small windows: by themselves, wished for, stopped, queued and taken back."""

from typing import TYPE_CHECKING, Any, Literal

from tenure.messages.base import Command
from tenure.messages.compaction import (
    Compact,
    GetCompaction,
    PassId,
    StopCompaction,
    Uncompact,
)
from tenure.messages.session import CancelTurn, OpenNewSession, StartTurn
from tenure.messages.turn import TurnAccepted, TurnQueued
from tenure.runtime.testing.workloads.base import AtSeat, Workload

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_plan import Planner
    from tenure.runtime.testing.workload_run import Run

TokenOf = Literal["none", "current", "stale"]


class Talk(AtSeat, frozen=True, kw_only=True):
    """A few turns with much to say, one after the other."""

    text: str
    turns: int
    words: int


class WantPass(AtSeat, frozen=True, kw_only=True):
    """Ask for a compaction, mostly behind a few turns that are worth one."""

    text: str
    turns_before: int
    instructions: str
    when_busy: Literal["refuse", "queue"]
    token: TokenOf


class StopPass(AtSeat, frozen=True, kw_only=True):
    """Stop a pass by its id."""

    which: Literal["running", "last", "unknown"]
    patience_ms: int
    """How long to wait for one to begin."""


class LeaveDuringPass(AtSeat, frozen=True, kw_only=True):
    """Open a new session in the seat as soon as a pass is under way."""

    patience_ms: int


class TakeBack(AtSeat, frozen=True, kw_only=True):
    """Take the last compaction back."""

    token: TokenOf


class LookAtPasses(AtSeat, frozen=True, kw_only=True):
    """What the seat's compaction is doing."""


CompactionOp = Talk | WantPass | StopPass | LeaveDuringPass | TakeBack | LookAtPasses

# --- how they are drawn ----------------------------------------------------------------------


def _draw_talk(planner: "Planner") -> Talk:
    return Talk(
        **planner.place(),
        text=planner.text("talk"),
        turns=planner.one((1, 2, 3, 5)),
        words=planner.one((5, 20, 60)),
    )


def _draw_want(planner: "Planner") -> WantPass:
    return WantPass(
        **planner.place(),
        text=planner.text("before"),
        turns_before=planner.one((0, 3, 4)),
        instructions=planner.one(("", "", planner.text("keep"))),
        when_busy=planner.one(("refuse", "queue")),
        token=planner.token(),
    )


def _draw_stop(planner: "Planner") -> StopPass:
    return StopPass(
        **planner.place(),
        which=planner.one(("running", "running", "running", "last", "unknown")),
        patience_ms=planner.one((0, 50, 500, 5_000)),
    )


def _draw_leave(planner: "Planner") -> LeaveDuringPass:
    return LeaveDuringPass(**planner.place(), patience_ms=planner.one((500, 5_000)))


def _draw_take_back(planner: "Planner") -> TakeBack:
    return TakeBack(**planner.place(), token=planner.token())


def _draw_look(planner: "Planner") -> LookAtPasses:
    return LookAtPasses(**planner.place())


def _settings(planner: "Planner") -> dict[str, Any]:
    """A window that a few turns fill, and who writes the summary."""
    return {
        "compaction": {
            "window": planner.one((150, 400, 1_000, 100_000, 100_000)),
            "threshold_percent": planner.one((50, 80, 95)),
            "model": planner.one(("", "", "same", "same", "same", "no-such:model")),
            "enabled": planner.one((True, True, True, False)),
        }
    }


# --- how they are done -----------------------------------------------------------------------

WORD = "and so on "
WORDS = 15
STEP_MS = 5


async def _talk(run: "Run", op: Talk) -> None:
    await _turns(run, op, op.text, op.turns, op.words)


async def _want(run: "Run", op: WantPass) -> None:
    await _turns(run, op, op.text, op.turns_before, WORDS)
    await _ask(run, op)


async def _turns(run: "Run", op: AtSeat, text: str, turns: int, words: int) -> None:
    for number in range(turns):
        start = StartTurn(text=f"{text}.{number} {WORD * words}", when_busy="queue")
        reply = await run.ask(op, start)
        if not isinstance(reply, TurnAccepted | TurnQueued):
            continue
        host, seat = await run.clients.seat(op)
        if not await run.clients.ends(host, reply.turn_id):
            await host.ask(CancelTurn(), seat)


async def _leave(run: "Run", op: LeaveDuringPass) -> None:
    host, seat = await run.clients.seat(op)
    await _until_pass(run, (host.run_name, seat), op.patience_ms)
    await host.ask(OpenNewSession(), seat)


async def _until_pass(run: "Run", place: tuple[str, str], patience_ms: int) -> None:
    waited_ms = 0
    while place not in run.board.passing and waited_ms < patience_ms:
        await run.world.clock.sleep(STEP_MS / 1000)
        waited_ms += STEP_MS


async def _stop(run: "Run", op: StopPass) -> None:
    host, seat = await run.clients.seat(op)
    place = (host.run_name, seat)
    if op.which == "running":
        await _until_pass(run, place, op.patience_ms)
    running = run.board.passing.get(place)
    last = run.board.passes.get(place, [PassId("no-such-pass")])[-1]
    named = {"running": running or last, "last": last}.get(op.which, PassId("no-such-pass"))
    await host.ask(StopCompaction(pass_id=named), seat)


async def _ask(run: "Run", op: WantPass | TakeBack | LookAtPasses) -> None:
    host, seat = await run.clients.seat(op)
    await host.ask(_command(run, op, (host.run_name, seat)), seat)


def _command(run: "Run", op: WantPass | TakeBack | LookAtPasses, place: tuple[str, str]) -> Command:
    match op:
        case WantPass(instructions=instructions, when_busy=when_busy, token=token):
            return Compact(
                instructions=instructions,
                when_busy=when_busy,
                token=run.clients.token(token, place),
            )
        case TakeBack(token=token):
            return Uncompact(token=run.clients.token(token, place))
        case LookAtPasses():
            return GetCompaction()


# --- the workload ----------------------------------------------------------------------------

_DRAWS = {
    "talk": _draw_talk,
    "want_pass": _draw_want,
    "stop_pass": _draw_stop,
    "leave_during_pass": _draw_leave,
    "take_back": _draw_take_back,
    "look_at_passes": _draw_look,
}
_USUAL = {
    "talk": 30,
    "want_pass": 14,
    "stop_pass": 10,
    "leave_during_pass": 4,
    "take_back": 8,
    "look_at_passes": 3,
}

WORKLOAD = Workload(
    name="compaction",
    draws=_DRAWS,
    does={
        Talk: _talk,
        StopPass: _stop,
        LeaveDuringPass: _leave,
        WantPass: _want,
        **dict.fromkeys((TakeBack, LookAtPasses), _ask),
    },
    themes={
        "usual": _USUAL,
        "wishes": {**_USUAL, "want_pass": 30, "stop_pass": 20},
        "stops": {**_USUAL, "stop": 25, "cancel": 10, "stop_pass": 25},
        "swaps": {**_USUAL, "leave_during_pass": 30, "want_pass": 30, "prompt": 10, "swap": 20},
        "owners": {**_USUAL, "crash": 20},
        "disk": {**_USUAL, "disk": 25, "edit": 8, "process": 8, "power": 5},
        "back": {**_USUAL, "take_back": 30, "want_pass": 20, "prompt": 10, "disk": 10},
    },
    settings=_settings,
    crashing=("compaction", "compaction", "session", "turn"),
    share=2.0,
)
