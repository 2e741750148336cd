"""All leaf doors of one process, as one value: the whole outside world of a host."""

from dataclasses import dataclass

from tenure.runtime.doors.clock import Clock, SystemClock
from tenure.runtime.doors.entropy import Entropy, SystemEntropy
from tenure.runtime.doors.files import Files, RealFiles
from tenure.runtime.doors.locks import KernelLocks, Locks
from tenure.runtime.doors.processes import Processes, SystemProcesses
from tenure.runtime.doors.sockets import LocalSockets, Sockets
from tenure.runtime.doors.web import SystemWeb, Web
from tenure.runtime.doors.workers import ThreadWorkers, Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """What is built on them (claims, transcripts, tools, models) gets its world from here."""

    clock: Clock
    entropy: Entropy
    files: Files
    locks: Locks
    processes: Processes
    sockets: Sockets
    web: Web
    workers: Workers


def system_leaves() -> Leaves:
    """The real world of this process.  Who made it ends it: `await leaves.workers.close()`."""
    return Leaves(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        files=RealFiles(),
        locks=KernelLocks(),
        processes=SystemProcesses(),
        sockets=LocalSockets(),
        web=SystemWeb(),
        workers=ThreadWorkers(),
    )
