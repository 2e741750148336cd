"""Conformance kits: does an implementation of your own keep the contract of its port?

    from tenure.testing import conformance

    report = conformance.clock(MyClock)            # a new subject for each check
    assert report.ok, report                       # the report says which check, and why

    @pytest.mark.parametrize("check", conformance.CLOCK)
    def test_my_clock(check):
        check(MyClock())

A subject is what the checks need: the port itself, or the port with a place to
work in (`FilesUnderTest`).  A factory gives a new one for each check, or a context
manager of one that also clears it away.
"""

from tenure.runtime.testing.conformance.checks import Check, Kit, Make, NotConforming, Report
from tenure.runtime.testing.conformance.of_claims import CLAIMS, ClaimsUnderTest
from tenure.runtime.testing.conformance.of_files import FILES, FilesUnderTest
from tenure.runtime.testing.conformance.of_leaves import CLOCK, ENTROPY, PROCESSES, WORKERS
from tenure.runtime.testing.conformance.of_locks import LOCKS, LocksUnderTest

claims = CLAIMS.run
clock = CLOCK.run
entropy = ENTROPY.run
files = FILES.run
locks = LOCKS.run
processes = PROCESSES.run
workers = WORKERS.run

__all__ = [
    "CLAIMS",
    "CLOCK",
    "ENTROPY",
    "FILES",
    "LOCKS",
    "PROCESSES",
    "WORKERS",
    "Check",
    "ClaimsUnderTest",
    "FilesUnderTest",
    "Kit",
    "LocksUnderTest",
    "Make",
    "NotConforming",
    "Report",
    "claims",
    "clock",
    "entropy",
    "files",
    "locks",
    "processes",
    "workers",
]
