"""The real world of a process that runs no event loop: every call blocks, and is over when
it returns.

For commands that do one thing and end: they need no threads, no sockets, and none of the
modules that those load.
"""

from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

from tenure.runtime.doors.clock import BlockingClock
from tenure.runtime.doors.entropy import SystemEntropy
from tenure.runtime.doors.files import RealFiles
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.locks import KernelLocks, exclude_without_portalocker
from tenure.runtime.doors.processes import SystemProcesses
from tenure.runtime.doors.programs import SystemPrograms
from tenure.runtime.doors.web import SystemWeb

P = ParamSpec("P")
T = TypeVar("T")


class BlockingWorkers:
    """Work is done where it is asked for."""

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)

    async def close(self) -> None:
        return


class NoSockets:
    """Nobody is spoken to."""

    def __getattr__(self, name: str) -> NoReturn:
        raise OSError("a command without an event loop speaks to no socket")


def blocking_leaves() -> Leaves:
    """The real world, call by call."""
    return Leaves(
        clock=BlockingClock(),
        entropy=SystemEntropy(),
        files=RealFiles(),
        locks=KernelLocks(exclude_without_portalocker),
        processes=SystemProcesses(),
        sockets=NoSockets(),
        web=SystemWeb(),
        workers=BlockingWorkers(),
        programs=SystemPrograms(),
    )
