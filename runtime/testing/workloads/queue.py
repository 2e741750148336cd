"""Prompts that steer, follow, redirect and wait; a queue that is edited; turns that are resumed."""

from typing import TYPE_CHECKING, Any, Literal

from tenure.messages.base import Command
from tenure.messages.queue import (
    CancelPrompt,
    EditPrompt,
    FollowUpTurn,
    GetQueue,
    MovePrompt,
    QueueView,
    RedirectTurn,
    ReleaseQueue,
    ResumeTurn,
    SteerTurn,
)
from tenure.messages.settings import SetChangeRule, SetExpiry, SetWorkingDirs
from tenure.messages.tokens import QueueItemId
from tenure.runtime.testing.workloads.base import AtSeat, Op, Workload

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_plan import Planner
    from tenure.runtime.testing.workload_run import Run

TokenOf = Literal["none", "current", "stale"]


class SayMore(AtSeat, frozen=True, kw_only=True):
    """Say something to the turn that runs."""

    text: str
    how: Literal["steer", "follow_up", "redirect"]
    token: TokenOf


class ChangeWaiting(AtSeat, frozen=True, kw_only=True):
    """Change what waits."""

    how: Literal["edit", "move", "cancel"]
    pick: int
    """Which item; -1 for one that was never there."""
    text: str
    position: int
    token: TokenOf


class GoOn(AtSeat, frozen=True, kw_only=True):
    """Let what is held start, or an interrupted turn go on."""

    what: Literal["release", "resume"]
    token: TokenOf


class Bound(Op, frozen=True, kw_only=True):
    """Change what tools may do."""

    host: int
    what: Literal["change_rule", "working_dirs", "expiry"]
    pick: int


QueueOp = SayMore | ChangeWaiting | GoOn | Bound


def _draw_more(planner: "Planner") -> SayMore:
    return SayMore(
        **planner.place(),
        text=planner.one((planner.text("more"),) * 20 + (" ",)),
        how=planner.one(("steer", "follow_up", "redirect", "redirect")),
        token=planner.token(),
    )


def _draw_change(planner: "Planner") -> ChangeWaiting:
    return ChangeWaiting(
        **planner.place(),
        how=planner.one(("edit", "move", "cancel")),
        pick=planner.one((0, 0, 0, 1, -1)),
        text=planner.one((planner.text("other"), planner.text("other"), "")),
        position=planner.one((1, 2, 9)),
        token=planner.token(),
    )


def _draw_go_on(planner: "Planner") -> GoOn:
    return GoOn(**planner.place(), what=planner.one(("release", "resume")), token=planner.token())


def _draw_bound(planner: "Planner") -> Bound:
    return Bound(
        **planner.who(),
        host=planner.host(),
        what=planner.one(("change_rule", "working_dirs", "expiry")),
        pick=planner.one(range(3)),
    )


async def _more(run: "Run", op: SayMore) -> None:
    host, seat = await run.clients.seat(op)
    token = run.clients.token(op.token, (host.run_name, seat))
    command: Command
    match op.how:
        case "steer":
            command = SteerTurn(text=op.text, token=token)
        case "follow_up":
            command = FollowUpTurn(text=op.text, token=token)
        case "redirect":
            command = RedirectTurn(text=op.text, token=token)
    await host.ask(command, seat)


async def _change(run: "Run", op: ChangeWaiting) -> None:
    host, seat = await run.clients.seat(op)
    token = run.clients.token(op.token, (host.run_name, seat))
    item = QueueItemId("no-such-item")
    view = await host.ask(GetQueue(), seat)
    if isinstance(view, QueueView) and view.items and op.pick >= 0:
        item = view.items[op.pick % len(view.items)].item_id
    command: Command
    match op.how:
        case "edit":
            command = EditPrompt(item_id=item, text=op.text, token=token)
        case "move":
            command = MovePrompt(item_id=item, position=op.position, token=token)
        case "cancel":
            command = CancelPrompt(item_id=item, token=token)
    await host.ask(command, seat)


async def _go_on(run: "Run", op: GoOn) -> None:
    host, seat = await run.clients.seat(op)
    token = run.clients.token(op.token, (host.run_name, seat))
    command = ReleaseQueue(token=token) if op.what == "release" else ResumeTurn(token=token)
    await host.ask(command, seat)


async def _bound(run: "Run", op: Bound) -> None:
    command: Command
    match op.what:
        case "change_rule":
            command = SetChangeRule(rule=("ask", "allow", "deny")[op.pick])
        case "working_dirs":
            command = SetWorkingDirs(folders=((), ("sub",), ("..",))[op.pick])
        case "expiry":
            command = SetExpiry(expires_s=(0, 1, 30)[op.pick])
    await run.host(op.host).ask(command, "")


def _settings(planner: "Planner") -> dict[str, Any]:
    """Budgets that some turns spend."""
    limits = planner.one(({}, {}, {"requests_max": 2}, {"tool_calls_max": 1}))
    return {"budget": {"turn": limits}} if limits else {}


_USUAL = {"say_more": 25, "change_waiting": 12, "go_on": 6, "bound": 3, "prompt": 30}

WORKLOAD = Workload(
    name="queue",
    draws={
        "say_more": _draw_more,
        "change_waiting": _draw_change,
        "go_on": _draw_go_on,
        "bound": _draw_bound,
    },
    does={SayMore: _more, ChangeWaiting: _change, GoOn: _go_on, Bound: _bound},
    themes={
        "usual": _USUAL,
        "stops": {**_USUAL, "stop": 20, "cancel": 8},
        "swaps": {**_USUAL, "swap": 20, "park": 5},
        "crashes": {**_USUAL, "process": 15, "crash": 12, "go_on": 20},
        "disk": {**_USUAL, "disk": 22, "edit": 5},
    },
    settings=_settings,
    share=2.0,
)
