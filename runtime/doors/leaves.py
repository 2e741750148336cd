"""All leaf doors of one process, as one value: the whole outside world of a host."""

from dataclasses import dataclass

from tenure.runtime.doors.clock import Clock
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.locks import Locks
from tenure.runtime.doors.processes import Processes
from tenure.runtime.doors.workers import Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """What is built on them (claims, transcripts, tools, models) gets its world from here."""

    clock: Clock
    entropy: Entropy
    files: Files
    locks: Locks
    processes: Processes
    workers: Workers
