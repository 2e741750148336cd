"""Checkers: every invariant watched by something that is not its guard."""

from tenure.runtime.testing.checkers.approval import Remembered, Requests
from tenure.runtime.testing.checkers.base import Checker
from tenure.runtime.testing.checkers.bus import Answers, Effects, Lanes, Streams
from tenure.runtime.testing.checkers.claims import Epochs, Locks
from tenure.runtime.testing.checkers.compaction import Passes, Summaries
from tenure.runtime.testing.checkers.durable import Durable
from tenure.runtime.testing.checkers.gate import Gates
from tenure.runtime.testing.checkers.limits import Budgets, Loops
from tenure.runtime.testing.checkers.queue import Queues
from tenure.runtime.testing.checkers.session import LiveSeats, Swaps, Tokens
from tenure.runtime.testing.checkers.stops import Stops
from tenure.runtime.testing.checkers.supervision import Restarts
from tenure.runtime.testing.checkers.tools import Fences, Outside
from tenure.runtime.testing.checkers.transcript import Chains, Openings, Readers, Receipts
from tenure.runtime.testing.checkers.turn import Starts, Turns

__all__ = ["Checker", "all_checkers", "message_checkers"]


def message_checkers() -> list[Checker]:
    """Those that look at messages alone: production can have them, too."""
    return [
        Answers(), Lanes(), Effects(), Streams(), Restarts(), Tokens(), Swaps(), Turns(), Starts(),
        Stops(), Requests(), Remembered(), Gates(), Fences(), Loops(), Budgets(),
        Passes(), Queues(),
    ]  # fmt: skip


def all_checkers(root: str = "/work") -> list[Checker]:
    """All of them, for one simulated world.

    Args:
        root: the workspace of its hosts.
    """
    return [
        *message_checkers(),
        Locks(), Epochs(), LiveSeats(), Receipts(), Chains(), Openings(), Readers(), Durable(),
        Summaries(), Outside(root),
    ]  # fmt: skip
