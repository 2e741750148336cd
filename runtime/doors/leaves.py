"""All leaf doors of one process, as one value: the whole outside world of a host."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenure.runtime.doors.browser import Browser, NoBrowser
from tenure.runtime.doors.keyring import Keyring, NoKeyring
from tenure.runtime.doors.loopback import Loopback, NoLoopback
from tenure.runtime.doors.programs import NO_PROGRAMS, Programs, SystemPrograms

if TYPE_CHECKING:
    # Each is loaded by who makes it: a command that runs no loop needs no sockets.
    from tenure.runtime.doors.clock import Clock
    from tenure.runtime.doors.entropy import Entropy
    from tenure.runtime.doors.files import Files
    from tenure.runtime.doors.locks import Locks
    from tenure.runtime.doors.processes import Processes
    from tenure.runtime.doors.sockets import Sockets
    from tenure.runtime.doors.web import Web
    from tenure.runtime.doors.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """What is built on them (claims, transcripts, tools, models) gets its world from here."""

    clock: "Clock"
    entropy: "Entropy"
    files: "Files"
    locks: "Locks"
    processes: "Processes"
    sockets: "Sockets"
    web: "Web"
    workers: "Workers"
    programs: Programs = NO_PROGRAMS
    loopback: Loopback = field(default_factory=NoLoopback)
    keyring: Keyring = field(default_factory=NoKeyring)
    browser: Browser = field(default_factory=NoBrowser)
    user_data: str = "/var/lib/tenure"
    """The folder of what belongs to the user and to no workspace; made on the first write."""


def system_leaves() -> Leaves:
    """The real world of this process.  Who made it ends it: `await leaves.workers.close()`."""
    from tenure.runtime.doors.browser import SystemBrowser
    from tenure.runtime.doors.clock import SystemClock
    from tenure.runtime.doors.entropy import SystemEntropy
    from tenure.runtime.doors.files import RealFiles
    from tenure.runtime.doors.keyring import SystemKeyring
    from tenure.runtime.doors.locks import KernelLocks
    from tenure.runtime.doors.loopback import SystemLoopback
    from tenure.runtime.doors.processes import SystemProcesses
    from tenure.runtime.doors.sockets import LocalSockets
    from tenure.runtime.doors.user_data import user_data_folder
    from tenure.runtime.doors.web import SystemWeb
    from tenure.runtime.doors.workers import ThreadWorkers

    return Leaves(
        clock=SystemClock(),
        entropy=SystemEntropy(),
        files=RealFiles(),
        locks=KernelLocks(),
        processes=SystemProcesses(),
        sockets=LocalSockets(),
        web=SystemWeb(),
        workers=ThreadWorkers(),
        programs=SystemPrograms(),
        loopback=SystemLoopback(),
        keyring=SystemKeyring(),
        browser=SystemBrowser(),
        user_data=user_data_folder(),
    )
