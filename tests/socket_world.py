"""Simulated hosts with a local socket, and processes that speak to them."""

from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from tenure.messages.models import Model
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.models.scripted import ScriptAnswer, Scripted
from tenure.runtime.doors.sockets import Connection
from tenure.runtime.doors.tools.door import AnyTool
from tenure.runtime.remote import RemoteHost
from tenure.runtime.testing.checkers import all_checkers
from tenure.runtime.testing.process import SimProcess
from tenure.runtime.testing.world import SimHost, World, simulate

T = TypeVar("T")
Line = dict[str, Any]


class Client:
    """A process that writes to a host's socket what it likes."""

    def __init__(self, world: World, name: str = "client") -> None:
        self.world = world
        self.process: SimProcess = world.start_process()
        self.leaves: Leaves = world.leaves_of(self.process, name)
        self._connection: Connection | None = None
        self._rest = b""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in this process."""
        return self.world.run(self.world.inside(self.process, work))

    def connect(self, host: SimHost) -> "Client":
        self._connection = self.run(self.leaves.sockets.connect(host.host.host_id))
        return self

    @property
    def connection(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def write(self, data: bytes) -> None:
        self.run(self.connection.write(data))

    def send(self, **line: Any) -> None:
        self.write(msgspec.json.encode(line) + b"\n")

    def receive(self) -> Line | None:
        """The next line; None at the end."""
        while b"\n" not in self._rest:
            data = self.run(self.connection.read())
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        decoded: Line = msgspec.json.decode(line)
        return decoded

    def answer_to(self, number: int | None) -> Line:
        """The next line that bears this number."""
        while (line := self.receive()) is not None:
            if line.get("id") == number and "type" not in line:
                return line
        raise AssertionError(f"no answer to {number}")

    def end(self) -> None:
        self.run(self.connection.close())

    def remote(self, host: SimHost) -> RemoteHost:
        """A well-behaved client of ours."""
        host_id = host.host.host_id
        return self.run(RemoteHost.connect(host_id=host_id, leaves=self.leaves))


@contextmanager
def listening(
    *answers: ScriptAnswer,
    seed: int | None = None,
    model: Model | None = None,
    tools: Sequence[AnyTool] = (),
) -> Iterator[tuple[World, SimHost]]:
    """A host with the seat `main`, reachable from other processes, watched by every checker."""
    script = model if model is not None else Scripted(answers)
    choices = () if seed is None else None
    with simulate(seed or 0, choices=choices, watchers=all_checkers()) as world:
        host = world.host(model=script, tools=tools, socket=True)
        world.run(host.seat())
        yield world, host
