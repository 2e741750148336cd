"""Two processes that want one session: handed over, taken over, followed, left by force."""

import asyncio
from typing import TYPE_CHECKING, Literal

from tenure.messages.approval import GetApprovals
from tenure.messages.handover import HandOverSession
from tenure.messages.session import OpenSession
from tenure.messages.tokens import SessionId
from tenure.runtime.errors import Refused
from tenure.runtime.remote import RemoteHost
from tenure.runtime.testing.workloads.base import SEATS, AtSeat, Op, Workload

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_plan import Planner
    from tenure.runtime.testing.workload_run import Run
    from tenure.runtime.testing.world import SimHost


class TakeOver(AtSeat, frozen=True, kw_only=True):
    """A host takes what another one has."""

    pick: int
    within_s: float


class AskForHandover(AtSeat, frozen=True, kw_only=True):
    """Ask a seat to let go of its session, as another process would."""

    whose: Literal["own", "other", "missing"]


class SpeakThroughSocket(Op, frozen=True, kw_only=True):
    """A client of another process asks through the host's socket."""

    host: int
    asks: Literal["approvals", "unknown_host"]


HandoverOp = TakeOver | AskForHandover | SpeakThroughSocket


def _draw_take(planner: "Planner") -> TakeOver:
    return TakeOver(
        **planner.place(), pick=planner.one(range(3)), within_s=planner.one((0.2, 3.0, 30.0))
    )


def _draw_ask(planner: "Planner") -> AskForHandover:
    return AskForHandover(
        **planner.place(), whose=planner.one(("own", "own", "own", "other", "missing"))
    )


def _draw_speak(planner: "Planner") -> SpeakThroughSocket:
    return SpeakThroughSocket(
        **planner.who(),
        host=planner.host(),
        asks=planner.one(("approvals", "approvals", "unknown_host")),
    )


async def _take(run: "Run", op: TakeOver) -> None:
    host = run.host(op.host)
    await host.start()
    wanted = _sessions_elsewhere(run, host)
    if not wanted:
        return
    session = wanted[op.pick % len(wanted)]
    taking = host.host.take_over(session, seat=SEATS[op.seat], within_s=op.within_s)
    await run.world.inside(host.process, taking)


def _sessions_elsewhere(run: "Run", host: "SimHost") -> list[SessionId]:
    """What others have open, or what there is."""
    others = [
        tokens[-1].session_id
        for (name, _), tokens in run.board.tokens.items()
        if name != host.run_name
    ]
    return list(dict.fromkeys(others)) or run.board.sessions


async def _ask(run: "Run", op: AskForHandover) -> None:
    host, seat = await run.clients.seat(op)
    tokens = run.board.tokens.get((host.run_name, seat))
    session = tokens[-1].session_id if tokens else SessionId("no-such-session")
    if op.whose == "missing":
        session = SessionId("no-such-session")
    elif op.whose == "other" and run.board.sessions:
        session = run.board.sessions[0]
    await host.ask(HandOverSession(session_id=session), seat)
    # Whoever wanted it has it now; here somebody goes on.
    await host.ask(OpenSession(session_id=session), seat)


async def _speak(run: "Run", op: SpeakThroughSocket) -> None:
    host = run.host(op.host)
    await host.start()
    process = run.world.start_process()
    leaves = run.world.leaves_of(process, "client")

    async def speak() -> None:
        known = host.host.host_id if op.asks == "approvals" else "no-such-host"
        async with await RemoteHost.connect(host_id=known, leaves=leaves) as remote:
            await asyncio.gather(*(remote.ask(GetApprovals(), seat) for seat in SEATS))

    try:
        await run.world.inside(process, speak())
    except Refused as refused:
        run.board.refusals[type(refused.reply).__name__] += 1
    finally:
        run.world.end(process)


WORKLOAD = Workload(
    name="handover",
    draws={"take_over": _draw_take, "ask_for": _draw_ask, "speak": _draw_speak},
    does={TakeOver: _take, AskForHandover: _ask, SpeakThroughSocket: _speak},
    themes={
        "usual": {"take_over": 18, "ask_for": 8, "speak": 3},
        "turns": {"take_over": 20, "ask_for": 12, "prompt": 40, "stop": 10},
        "owners": {"take_over": 20, "ask_for": 10, "crash": 15},
        "machine": {"take_over": 20, "ask_for": 8, "process": 14, "power": 4, "disk": 10},
        "appends": {"take_over": 15, "ask_for": 15, "append": 30, "disk": 12},
    },
    hosts="two",
    sockets="listen",
    share=1.5,
)
