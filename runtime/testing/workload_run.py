"""Runs a plan: clients, accidents, and at the end a last look at everything."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from tenure.messages.approval import ApprovalRequest, Choice
from tenure.messages.base import Command, Reply
from tenure.messages.bus import DeadlinePassed
from tenure.messages.session import OpenSession, SessionOpened
from tenure.messages.tokens import ProcessName, SessionId
from tenure.runtime.errors import HostClosed, Refused
from tenure.runtime.seat import Seat
from tenure.runtime.strict import Violation
from tenure.runtime.testing.choices import Chooser
from tenure.runtime.testing.crash_points import CrashAt
from tenure.runtime.testing.faults import DiskCall, Fault
from tenure.runtime.testing.loop import Stuck, TooLong
from tenure.runtime.testing.troubles import Troubles
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.workload import AnswerPlan, AnyOp, Plan, Prompt
from tenure.runtime.testing.workload_accidents import Accidents
from tenure.runtime.testing.workload_board import Board, Place
from tenure.runtime.testing.workload_clients import Clients
from tenure.runtime.testing.workload_model import PlannedModel, own_tools
from tenure.runtime.testing.workloads import PERFORMERS, WORKLOADS
from tenure.runtime.testing.workloads.base import HOSTS, SEATS, AtSeat
from tenure.runtime.testing.world import ROOT, ProcessEnded, SimHost, World, simulate

CLIENTS_END_S = 3_000.0
"""Virtual time after which a client that still waits waits for ever."""
CLOSE_S = 300.0
TRIES = 5


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one run went."""

    seed: int
    steps: int
    virtual_s: float
    choices: tuple[int, ...]
    violations: tuple[Violation, ...]
    refusals: dict[str, int]
    replies: dict[str, int]
    crashes: dict[str, int]


class Run:
    """One plan in one world."""

    def __init__(self, plan: Plan, world: World, crash: CrashAt | None = None) -> None:
        self._crash = crash
        if crash is not None:
            crash.kill = self._kill
        self.plan = plan
        self.world = world
        self.board = Board()
        self.crashes: dict[str, int] = {}
        self.troubles = Troubles(self.crashed)
        self.hosts: list[SimHost | None] = [None] * len(HOSTS)
        self.edited: set[SessionId] = set()
        self.answers_given = 0
        self.clients = Clients(self)
        self.accidents = Accidents(self)
        self._moves = {op.text: op.moves for op in plan.ops if isinstance(op, Prompt)}
        world.watchers.add(self.board)
        world.disk.before = self._before
        _put_files(world, plan)

    def _before(self, call: DiskCall) -> Fault | None:
        fault = self.troubles(call)
        return fault if fault is not None or self._crash is None else self._crash.fault(call)

    def _kill(self, process: ProcessName) -> None:
        for host in self.world.hosts:
            if host.process.name == process:
                host.kill()

    def crashed(self, what: str) -> None:
        self.crashes[what] = self.crashes.get(what, 0) + 1

    # --- hosts -----------------------------------------------------------------------------------

    def host(self, number: int) -> SimHost:
        """The host with this number, started again where it is dead."""
        host = self.hosts[number]
        if host is None or not host.alive:
            host = self._new_host(HOSTS[number])
            self.hosts[number] = host
        return host

    def place(self, number: int, seat: int) -> Place:
        return (self.host(number).run_name, SEATS[seat])

    async def ask(self, op: AtSeat, command: Command) -> Reply:
        """As a client at the seat of this operation; both are started where they are not there."""
        host, seat = await self.clients.seat(op)
        return await host.ask(command, seat)

    def _new_host(self, name: str) -> SimHost:
        world, plan = self.world, self.plan
        approve = self._approver(name) if plan.approver == "callable" else None
        return world.host(
            name,
            model=PlannedModel(self._moves, world.clock, plan.summaries),
            approve=approve,
            tools=own_tools(world.clock),
            settings=plan.settings or None,
            socket=plan.sockets == "listen",
        )

    def _approver(self, name: str) -> Callable[[ApprovalRequest], Coroutine[Any, Any, Choice]]:
        async def approve(request: ApprovalRequest) -> Choice:
            answer = self.next_answer()
            await self.world.clock.sleep(answer.after_ms / 1000)
            if answer.how == "never":
                await self.world.clock.sleep(1_000_000)
            return answer.choice

        return approve

    def next_answer(self) -> AnswerPlan:
        answers = self.plan.answers
        self.answers_given += 1
        return answers[(self.answers_given - 1) % len(answers)]

    # --- the run ---------------------------------------------------------------------------------

    async def run(self) -> None:
        tasks = [asyncio.ensure_future(self._client(ops)) for ops in self._by_client()]
        answering = asyncio.ensure_future(self.clients.answer_requests())
        late: set[asyncio.Future[None]] = set()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLIENTS_END_S)
        answering.cancel()
        for task in late:
            self.board.report("BUS-1", f"a client still waits after {CLIENTS_END_S:.0f} s")
            task.cancel()
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
        self.troubles.end_all()
        await self._close_hosts()
        await self._look_at_all()

    def _by_client(self) -> list[list[AnyOp]]:
        by_client: dict[int, list[AnyOp]] = {}
        for op in self.plan.ops:
            by_client.setdefault(op.client, []).append(op)
        return list(by_client.values())

    async def _client(self, ops: Sequence[AnyOp]) -> None:
        beside: list[asyncio.Task[None]] = []
        for op in ops:
            await self.world.clock.sleep(op.after_ms / 1000)
            if op.beside:
                beside.append(asyncio.ensure_future(self._do(op)))
            else:
                await self._do(op)
        for task in beside:
            await task

    async def _do(self, op: AnyOp) -> None:
        try:
            performer = PERFORMERS.get(type(op))
            if performer is not None:
                await performer(self, op)
            elif not await self.clients.do(op):
                await self.accidents.do(op)
        except (ProcessEnded, HostClosed):
            return
        except Refused as refused:
            name = type(refused.reply).__name__
            self.board.replies[name] += 1

    async def _close_hosts(self) -> None:
        for host in self.hosts:
            if host is None or not host.alive:
                continue
            host.resume()
            try:
                await asyncio.wait_for(host.close(), CLOSE_S)
            except TimeoutError:
                self.board.report("BUS-1", f"host {host.run_name} did not close")
                host.kill()
            except ProcessEnded:
                continue

    async def _look_at_all(self) -> None:
        """Open every session once more: that settles what is open."""
        last = self._new_host("last")
        self.troubles.spared.add(last.process.name)
        await last.start()
        seat = await self._last_seat(last)
        for session_id in self.board.sessions:
            path = self.board.paths[session_id]
            if path not in self.world.disk.paths():
                continue
            for _ in range(TRIES):
                reply = await seat.ask(OpenSession(session_id=session_id))
                # Everything may hang for so long that a deadline passes.
                if not isinstance(reply, DeadlinePassed):
                    break
            kept = session_id in self.board.receipts and session_id not in self.edited
            if kept and not isinstance(reply, SessionOpened):
                what = f"{session_id} does not open any more: {reply}"
                self.board.report("SESSION-7", what)
        await last.close()

    async def _last_seat(self, last: SimHost) -> Seat:
        for _ in range(TRIES):
            try:
                return await last.seat("s0")
            except Refused as refused:
                if not isinstance(refused.reply, DeadlinePassed):
                    raise
        raise Stuck("every deadline passes")


def run_plan(
    plan: Plan,
    watchers: Sequence[Watcher] = (),
    *,
    chooser: Chooser | None = None,
) -> Outcome:
    """Run a plan in the order that its seed, or `chooser`, chooses.

    Args:
        watchers: what they report stands in the outcome.
    """
    with simulate(_world_seed(plan), chooser=chooser, watchers=watchers) as world:
        crash = next((each for each in watchers if isinstance(each, CrashAt)), None)
        run = Run(plan, world, crash)
        found: tuple[Violation, ...] = ()
        try:
            world.run(run.run())
        except (Stuck, TooLong) as stuck:
            found = (Violation(invariant="BUS-1", what=f"the run is stuck: {stuck}"),)
        else:
            for watcher in world.watchers.all:
                watcher.finished()
        outcome = Outcome(
            seed=plan.seed,
            steps=world.loop.steps,
            virtual_s=world.loop.time(),
            choices=tuple(world.chooser.made),
            violations=(*found, *world.watchers.found()),
            refusals=dict(run.board.refusals),
            replies=dict(run.board.replies),
            crashes=run.crashes,
        )
        world.watchers.all.clear()
    return outcome


def _world_seed(plan: Plan) -> int | str:
    return plan.seed if plan.workload == "seats" else plan.name


def _put_files(world: World, plan: Plan) -> None:
    disk = world.disk
    disk.put(f"{ROOT}/notes.md", b"line one\nsecond\n")
    disk.put(f"{ROOT}/sub/deep.md", b"a line deep below\n")
    if plan.mutating != "ask":
        text = f'# ours\n[approval]\nmutating = "{plan.mutating}"\n'
        disk.put(f"{ROOT}/.tenure/settings.toml", text.encode())
    disk.put("/outside/secret.txt", b"SECRET\n")
    disk.put_link(f"{ROOT}/link", "/outside")
    if plan.workload in WORKLOADS:
        WORKLOADS[plan.workload].prepare(world)
