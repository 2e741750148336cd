"""The outside world of one simulated process: everything that hangs on the disk of all."""

from tenure.messages.tokens import ProcessName
from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.workers import Workers
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.files import MemoryFiles
from tenure.runtime.testing.locks import MemoryLocks
from tenure.runtime.testing.loopback import MemoryLoopback
from tenure.runtime.testing.processes import MemoryProcesses
from tenure.runtime.testing.sockets import MemorySockets
from tenure.runtime.testing.web import MemoryWeb


def disk_leaves(
    disk: MemoryDisk, process: ProcessName, clock: Clock, entropy: Entropy, workers: Workers
) -> Leaves:
    """The leaves of a process: time, randomness and workers are given, the rest is the disk's."""
    return Leaves(
        clock=clock,
        entropy=entropy,
        files=MemoryFiles(disk, process),
        locks=MemoryLocks(disk, process),
        processes=MemoryProcesses(disk.processes, process),
        sockets=MemorySockets(disk.net, process),
        web=MemoryWeb(disk.web, process),
        loopback=MemoryLoopback(disk.web, disk.processes, process),
        workers=workers,
    )
