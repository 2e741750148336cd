"""A whole host in a simulated world, watched by every checker, and a seat to play with."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from tenure.messages.base import Command, Event, Reply
from tenure.messages.models import Model, ModelToolCall, ToolSpec
from tenure.messages.tokens import Role, TurnId, turn_id
from tenure.messages.turn import GetTurn, TurnEnded, TurnView
from tenure.runtime.doors.approver import Approve
from tenure.runtime.doors.models.scripted import ScriptAnswer, Scripted
from tenure.runtime.doors.tools.door import AnyTool
from tenure.runtime.doors.tools.functions import function_tool
from tenure.runtime.seat import Seat
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.expect import events_of
from tenure.runtime.testing.watch import Watcher
from tenure.runtime.testing.world import ROOT, SimHost, World, simulate

T = TypeVar("T")
E = TypeVar("E", bound=Event)

Task = Any
"""An `asyncio.Task` of the world's loop."""


class Seated:
    """A host with the seat `main`, and everything that it said."""

    def __init__(self, world: World, host: SimHost) -> None:
        self.world = world
        self.host = host
        self.log = events_of(world)
        self.seat: Seat = world.run(host.seat())

    # --- what clients do -----------------------------------------------------------------------

    def prompt(self, text: str = "go", **wishes: Any) -> Task:
        """Start a turn; the task gives its events when it has ended."""
        return self.world.loop.create_task(self.host.prompt(text, **wishes))

    def run(self, text: str = "go", **wishes: Any) -> list[Event]:
        """A whole turn."""
        events: list[Event] = self.world.run(self.host.prompt(text, **wishes))
        return events

    def do(self, work: Awaitable[T]) -> T:
        """Run what the seat's own methods give."""

        async def inside() -> T:
            return await work

        return self.world.run(self.world.inside(self.host.process, inside()))

    def ask(self, command: Command, seat: str = "main") -> Reply:
        return self.world.ask(self.host, command, seat)

    def until(self, condition: Callable[[], bool]) -> None:
        """Run until something holds."""

        async def look() -> None:
            while not condition():
                await self.world.clock.sleep(0.001)

        self.world.run(look())

    def until_queued(self, *texts: str) -> None:
        """Run until exactly these prompts wait."""

        async def look() -> None:
            while True:
                view = await self.host.ask(GetTurn())
                if isinstance(view, TurnView) and view.queued == texts:
                    return
                await self.world.clock.sleep(0.001)

        self.world.run(look())

    def settle(self) -> None:
        """Run until nothing more happens by itself within a minute."""
        self.world.settle()

    # --- what came of it -------------------------------------------------------------------------

    def said(self, kind: type[E]) -> list[E]:
        return self.log.of(kind)

    def turn(self, number: int = 1) -> TurnId:
        return turn_id(self.seat.token.session_id, number)

    def ends(self) -> list[tuple[str, str | None]]:
        """How each turn ended: the reason, and the cause of a stop."""
        return [(event.stop_reason, event.cause) for event in self.said(TurnEnded)]

    def lines(self, session_id: str = "") -> list[Mapping[str, Any]]:
        """The entries in a session's file; by default in that of the seat."""
        session_id = session_id or self.seat.token.session_id
        for path in self.world.disk.paths():
            if path.startswith(f"{ROOT}/.tenure/sessions/") and path.endswith(".jsonl"):
                entries = [
                    msgspec.json.decode(line)
                    for line in self.world.disk.content(path).split(b"\n")
                    if line
                ]
                if entries and entries[0]["id"] == session_id:
                    return entries[1:]
        return []

    def told(self, session_id: str = "") -> list[str]:
        """The conversation on disk in short: `user`, `assistant c1 c2`, `result c1`."""
        return [_word(line["message"]) for line in self.lines(session_id) if "message" in line]


def _word(message: Mapping[str, Any]) -> str:
    match message["role"]:
        case "assistant":
            calls = [block["id"] for block in message["content"] if block["type"] == "toolCall"]
            return " ".join(["assistant", *calls])
        case "toolResult":
            return f"result {message['toolCallId']}"
        case role:
            return str(role)


@contextmanager
def seated(
    *answers: ScriptAnswer,
    seed: int | None = None,
    model: Model | None = None,
    approve: Approve | None = None,
    tools: Sequence[AnyTool] = (),
    settings: Mapping[str, object] | None = None,
    watchers: Sequence[Watcher] | None = None,
) -> Iterator[Seated]:
    """A seat whose model gives these answers.

    Args:
        seed: chooses the order of work; without one everything runs in the usual order.
        watchers: every checker, unless told otherwise.
    """
    script = model if model is not None else Scripted(answers)
    choices = () if seed is None else None
    watching = all_checkers() if watchers is None else watchers
    with simulate(seed or 0, choices=choices, watchers=watching) as world:
        host = world.host(model=script, approve=approve, tools=tools, settings=settings)
        yield Seated(world, host)


class Gate:
    """A tool or a model waits here until it is opened."""

    def __init__(self) -> None:
        self.reached = 0
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self) -> None:
        self.reached += 1
        await self._open.wait()


class Counted:
    """A tool that counts its runs, and waits at a gate where it has one."""

    def __init__(self, name: str = "count", gate: Gate | None = None, **fields: Any) -> None:
        self.runs: list[str] = []
        self._gate = gate
        schema = {"type": "object", "properties": {"tag": {"type": "string"}}}
        spec = ToolSpec(name=name, description=name, parameters=schema, **fields)
        self.tool = function_tool(spec, self._run)

    async def _run(self, tag: str = "") -> str:
        self.runs.append(tag)
        if self._gate is not None:
            await self._gate()
        return f"counted {tag}"


def use(call_id: str, name: str = "count", **arguments: Any) -> ModelToolCall:
    return ModelToolCall(id=call_id, name=name, arguments=arguments or {"tag": call_id})


def crash(seated: Seated, role: Role) -> None:
    """The next step of this owner raises; what is under way comes to rest first."""
    seated.world.settle(0.0)
    seated.world.crashes.plan(seated.host.process.name, role)
