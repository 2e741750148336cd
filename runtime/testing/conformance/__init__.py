"""Conformance kits: does an implementation of your own keep the contract of its port?

    from tenure.testing import conformance

    report = conformance.clock(MyClock)            # a new subject for each check
    assert report.ok, str(report)                  # it says which check, and why

    @pytest.mark.parametrize("check", conformance.CLOCK)
    def test_my_clock(check):
        check(MyClock())

A subject is what the checks need: the port itself, or the port with a place to
work in (`FilesUnderTest`).  A factory gives a new one for each check, or a context
manager of one that also clears it away.
"""

from tenure.runtime.testing.conformance.checks import Check, Kit, Make, NotConforming, Report
from tenure.runtime.testing.conformance.of_approver import APPROVER, ApproverUnderTest
from tenure.runtime.testing.conformance.of_claims import CLAIMS, ClaimsUnderTest
from tenure.runtime.testing.conformance.of_files import FILES, FilesUnderTest
from tenure.runtime.testing.conformance.of_leaves import CLOCK, ENTROPY, PROCESSES, WORKERS
from tenure.runtime.testing.conformance.of_locks import LOCKS, LocksUnderTest
from tenure.runtime.testing.conformance.of_model import MODEL, ModelUnderTest
from tenure.runtime.testing.conformance.of_tool import TOOL, ToolUnderTest
from tenure.runtime.testing.conformance.of_transcripts import TRANSCRIPTS, TranscriptsUnderTest
from tenure.runtime.testing.conformance.of_web import WEB, WebUnderTest, web_server
from tenure.runtime.testing.conformance.transcript_seat import TranscriptDoor

approver = APPROVER.run
claims = CLAIMS.run
clock = CLOCK.run
entropy = ENTROPY.run
files = FILES.run
locks = LOCKS.run
model = MODEL.run
processes = PROCESSES.run
tool = TOOL.run
transcripts = TRANSCRIPTS.run
web = WEB.run
workers = WORKERS.run

__all__ = [
    "APPROVER",
    "CLAIMS",
    "CLOCK",
    "ENTROPY",
    "FILES",
    "LOCKS",
    "MODEL",
    "PROCESSES",
    "TOOL",
    "TRANSCRIPTS",
    "WEB",
    "WORKERS",
    "ApproverUnderTest",
    "Check",
    "ClaimsUnderTest",
    "FilesUnderTest",
    "Kit",
    "LocksUnderTest",
    "Make",
    "ModelUnderTest",
    "NotConforming",
    "Report",
    "ToolUnderTest",
    "TranscriptDoor",
    "TranscriptsUnderTest",
    "WebUnderTest",
    "approver",
    "claims",
    "clock",
    "entropy",
    "files",
    "locks",
    "model",
    "processes",
    "tool",
    "transcripts",
    "web",
    "web_server",
    "workers",
]
