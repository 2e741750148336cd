"""What clients of a workload do: each operation, as an embedder would do it."""

import asyncio
from typing import TYPE_CHECKING, Literal

from tenure.messages.approval import AnswerApproval, Deny, GetApprovals, RevokeApprovals
from tenure.messages.base import Command
from tenure.messages.entries import CustomEntry
from tenure.messages.session import (
    AppendEntries,
    CancelTurn,
    ContinueSession,
    GetSession,
    OpenNewSession,
    OpenSession,
    ParkSeat,
    StartTurn,
)
from tenure.messages.settings import GetPolicy, GetSettings, SetMode, SetModel, SetToolPolicy
from tenure.messages.tokens import RequestId, SessionId, SessionToken, TurnId, turn_id
from tenure.messages.turn import GetTurn, StopTurn, TurnAccepted, TurnQueued
from tenure.runtime.doors.transcripts import list_sessions, read_session
from tenure.runtime.doors.transcripts.dialects import Unreadable
from tenure.runtime.testing.workload import (
    Answer,
    AnyOp,
    Append,
    ChangeMode,
    ChangeModel,
    ChangeRule,
    CloseSeat,
    Flood,
    Look,
    Misroute,
    Park,
    Prompt,
    ReadSessions,
    StopNamed,
    StopUnnamed,
    Swap,
)
from tenure.runtime.testing.workload_board import Place
from tenure.runtime.testing.workloads.base import SEATS, AtSeat
from tenure.runtime.testing.world import ROOT, ProcessEnded, SimHost

if TYPE_CHECKING:
    from tenure.runtime.testing.workload_run import Run

LOOK_S = 5.0
PATIENCE_LOOKS = 12
HUGE_BYTES = 4 * 1024 * 1024
NOBODY = SessionToken(session_id=SessionId("no-such-session"), epoch=1)


class Clients:
    """The clients of one run."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._board = run.board
        self._answering: list[asyncio.Task[None]] = []

    async def do(self, op: AnyOp) -> bool:
        """Do it; False where it is no client's operation."""
        match op:
            case Prompt():
                await self._prompt(op)
            case CloseSeat():
                host, seat = await self.seat(op)
                if seat in host.host.seats:
                    await self._run.world.inside(host.process, host.host.close_seat(seat))
            case Misroute(owner=owner):
                host, seat = await self.seat(op)
                address = owner if owner == "settings" else f"{seat}/{owner}"
                await host.ask_owner(address, WRONG[owner])
            case Flood(asks=asks):
                host, seat = await self.seat(op)
                await asyncio.gather(*(host.ask(GetTurn(), seat) for _ in range(asks)))
            case AtSeat():
                host, seat = await self.seat(op)
                await host.ask(self._command(op, host, seat), seat)
            case ChangeMode(host=number, mode=mode):
                await self._run.host(number).ask(SetMode(mode=mode), "")
            case ChangeRule(host=number, tool=tool, rule=rule):
                await self._run.host(number).ask(SetToolPolicy(tool=tool, rule=rule), "")
            case ChangeModel(host=number):
                await self._run.host(number).ask(SetModel(model="librarian"), "")
            case ReadSessions():
                await self._read()
            case _:
                return False
        return True

    async def seat(self, op: AtSeat) -> tuple[SimHost, str]:
        """The seat of an operation, made where it is not there."""
        host = self._run.host(op.host)
        await host.start()
        seat = SEATS[op.seat]
        if seat not in host.host.seats:
            await host.seat(seat)
        return host, seat

    def _command(self, op: AtSeat, host: SimHost, seat: str) -> Command:
        place = (host.run_name, seat)
        match op:
            case StopNamed(which=which):
                return StopTurn(turn_id=self._turn(which, place))
            case StopUnnamed(token=token):
                return CancelTurn(token=self.token(token, place))
            case Swap():
                return self._swap(op, place)
            case Append():
                return self._append(op, place)
            case Park():
                return ParkSeat()
            case Look(at=at):
                return LOOKS[at]
            case Answer(which=which, choice=choice):
                return AnswerApproval(request_id=self._request(which, place), choice=choice)
            case _:
                raise TypeError(f"nobody knows how to do a {type(op).__name__}")

    # --- turns -----------------------------------------------------------------------------------

    async def _prompt(self, op: Prompt) -> None:
        host, seat = await self.seat(op)
        command = StartTurn(
            text=op.text + ("x" * HUGE_BYTES if op.size == "huge" else ""),
            token=self.token(op.token, (host.run_name, seat)),
            when_busy=op.when_busy,
            model=op.model,
            idempotency_key=op.key,
        )
        reply = await host.ask(command, seat)
        if not isinstance(reply, TurnAccepted | TurnQueued) or op.wait == "reply":
            return
        if not await self.ends(host, reply.turn_id):
            # Nobody answers its approval, or its model says nothing any more.
            await host.ask(CancelTurn(), seat)
            await self.ends(host, reply.turn_id)

    async def ends(self, host: SimHost, turn: TurnId) -> bool:
        """Whether a turn ends within a patience; `ProcessEnded` where its process does."""
        ended = self._board.end_of(turn)
        for _ in range(PATIENCE_LOOKS):
            try:
                await asyncio.wait_for(ended.wait(), LOOK_S)
            except TimeoutError:
                if not host.alive:
                    raise ProcessEnded(f"turn {turn} ended with its process") from None
            else:
                return True
        return False

    def _turn(self, which: str, place: Place) -> TurnId:
        board = self._board
        session = self._tokens(place)[-1].session_id
        turns = board.turns.get(place, [])
        last = turns[-1] if turns else turn_id(session, 1)
        match which:
            case "running":
                return board.running.get(place, last)
            case "late":
                return turns[0] if turns else turn_id(session, 0)
            case "queued":
                queued = board.queued.get(place, [])
                return queued[-1] if queued else last
            case "foreign":
                others = [turn for other, turn in board.running.items() if other != place]
                return others[0] if others else turn_id(NOBODY.session_id, 1)
            case _:
                return turn_id(session, len(turns) + 1)

    def token(
        self, which: Literal["none", "current", "stale"], place: Place
    ) -> SessionToken | None:
        """The token that a command carries, as its operation wants it."""
        tokens = self._tokens(place)
        match which:
            case "none":
                return None
            case "current":
                return tokens[-1]
            case "stale":
                older = [token for token in tokens if token != tokens[-1]]
                return older[-1] if older else NOBODY

    def _tokens(self, place: Place) -> list[SessionToken]:
        return self._board.tokens.get(place) or [NOBODY]

    # --- sessions --------------------------------------------------------------------------------

    def _swap(self, op: Swap, place: Place) -> Command:
        board = self._board
        match op.to:
            case "new":
                return OpenNewSession(name=op.name)
            case "newest":
                return ContinueSession()
            case "known" if board.sessions:
                return OpenSession(session_id=board.sessions[-1 - op.pick % len(board.sessions)])
            case "same":
                return OpenSession(session_id=self._tokens(place)[-1].session_id)
            case "of_other_seat":
                others = [tokens[-1] for other, tokens in board.tokens.items() if other != place]
                return OpenSession(session_id=(others or [NOBODY])[-1].session_id)
            case _:
                return OpenSession(session_id=NOBODY.session_id)

    def _append(self, op: Append, place: Place) -> Command:
        tokens = self._tokens(place)
        token = self.token(op.token, place) or tokens[-1]
        text = op.key or op.text
        entries = tuple(
            CustomEntry(
                custom_type="tenure/test",
                data={"text": f"{text}.{number}", "session": token.session_id},
            )
            for number in range(op.entries)
        )
        return AppendEntries(token=token, entries=entries, idempotency_key=op.key)

    async def _read(self) -> None:
        """A process that only reads: whatever it meets, it changes nothing."""
        world = self._run.world
        process = world.start_process()
        world.watchers.of("reader", process.name)
        leaves = world.leaves_of(process, "reader")

        async def read() -> None:
            for summary in await leaves.workers.run(list_sessions, leaves, ROOT):
                try:
                    await leaves.workers.run(read_session, leaves, summary.path)
                except (OSError, Unreadable):
                    continue

        try:
            await world.inside(process, read())
        except OSError:
            return
        finally:
            world.end(process)

    # --- approvals -------------------------------------------------------------------------------

    def _request(self, which: str, place: Place) -> RequestId:
        board = self._board
        here = [request_id for request_id, (at, _) in board.open.items() if at == place]
        there = [request_id for request_id, (at, _) in board.open.items() if at != place]
        closed = board.closed.get(place, [])
        found = {"open": here, "of_other_seat": there, "closed": closed}.get(which, [])
        return found[0] if found else RequestId("no such request")

    async def answer_requests(self) -> None:
        """Answer every request as the plan says, beside everything else."""
        board = self._board
        done = 0
        while True:
            await board.request_seen.wait()
            board.request_seen.clear()
            while done < len(board.requested):
                (_, seat), request = board.requested[done]
                host = self._host_of(board.requested[done][0][0])
                done += 1
                if host is not None and self._run.plan.approver == "clients":
                    answer = self._answer(host, seat, request.request_id)
                    self._answering.append(asyncio.ensure_future(answer))

    def _host_of(self, run_name: str) -> SimHost | None:
        hosts = [host for host in self._run.hosts if host is not None]
        return next((host for host in hosts if host.run_name == run_name), None)

    async def _answer(self, host: SimHost, seat: str, request_id: RequestId) -> None:
        plan = self._run.next_answer()
        await self._run.world.clock.sleep(plan.after_ms / 1000)
        answer = AnswerApproval(request_id=request_id, choice=plan.choice)
        try:
            match plan.how:
                case "once":
                    await host.ask(answer, seat)
                case "twice":
                    other = AnswerApproval(request_id=request_id, choice=Deny(reason="second"))
                    await asyncio.gather(host.ask(answer, seat), host.ask(other, seat))
                case "wrong_seat_first":
                    wrong = next(name for name in SEATS if name != seat)
                    await host.ask(answer, wrong)
                    await host.ask(answer, seat)
                case _:
                    return
        except ProcessEnded:
            return


WRONG: dict[str, Command] = {
    "session": GetPolicy(),
    "turn": GetSession(),
    "approval": GetTurn(),
    "settings": GetApprovals(),
}
"""Queries that these owners do not take."""
LOOKS: dict[str, Command] = {
    "session": GetSession(),
    "turn": GetTurn(),
    "approvals": GetApprovals(),
    "settings": GetSettings(),
    "policy": GetPolicy(),
    "unhandled": RevokeApprovals(turn_id=TurnId("no-such-session/1")),
}
