"""A crash at every point of one plan: each call to the disk, and each beginning of an effect."""

from collections.abc import Iterator

from tenure.runtime.testing.choices import ReplayedChooser
from tenure.runtime.testing.crash_points import HOWS, CrashAt, CrashPoint
from tenure.runtime.testing.search import Tally, try_plan
from tenure.runtime.testing.workload import Plan


def points_of(plan: Plan) -> tuple[CrashPoint, ...]:
    """Every crash point of a plan, in the usual order of work."""
    counter = CrashAt()
    try_plan(plan, Tally(), chooser=ReplayedChooser(()), watchers=(counter,))
    return tuple(_points(counter))


def _points(counter: CrashAt) -> Iterator[CrashPoint]:
    for nth in range(1, counter.calls + 1):
        for how in HOWS:
            yield CrashPoint(at="call", how=how, nth=nth)
    for nth in range(1, counter.effects + 1):
        yield CrashPoint(at="effect", how="before", nth=nth)


def sweep(plan: Plan) -> Tally:
    """Run a plan once for each of its crash points, each with a crash there."""
    tally = Tally()
    for point in points_of(plan):
        crash = CrashAt(point)
        try_plan(plan, tally, chooser=ReplayedChooser(()), watchers=(crash,))
        tally.crashes[crash.hit] += 1
    return tally
