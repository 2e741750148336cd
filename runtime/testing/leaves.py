"""A simulated world for one host."""

from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.workers import Workers
from tenure.runtime.testing.disk import MemoryDisk
from tenure.runtime.testing.entropy import SeededEntropy
from tenure.runtime.testing.files import MemoryFiles
from tenure.runtime.testing.locks import MemoryLocks
from tenure.runtime.testing.loopback import MemoryLoopback
from tenure.runtime.testing.processes import MemoryProcesses
from tenure.runtime.testing.sockets import MemorySockets
from tenure.runtime.testing.web import MemoryWeb
from tenure.runtime.testing.workers import InlineWorkers


def memory_leaves(
    disk: MemoryDisk | None = None, *, seed: int = 0, workers: Workers | None = None
) -> Leaves:
    """The leaves of a new simulated process on a disk.

    Args:
        disk: shared by the processes of one machine, with its clock and its
            table of processes; a new one where none is given.
        seed: repeats the process's randomness; two processes of one disk differ.
        workers: how blocking work is run; inline where none is given.
    """
    disk = disk if disk is not None else MemoryDisk()
    process = disk.processes.start()
    return Leaves(
        clock=disk.clock,
        entropy=SeededEntropy(f"{seed}/{process.pid}"),
        files=MemoryFiles(disk, process),
        locks=MemoryLocks(disk, process),
        processes=MemoryProcesses(disk.processes, process),
        sockets=MemorySockets(disk.net, process),
        web=MemoryWeb(disk.web, process),
        loopback=MemoryLoopback(disk.web, disk.processes, process),
        workers=workers if workers is not None else InlineWorkers(),
    )
