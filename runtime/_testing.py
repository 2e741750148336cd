"""The test harness for hosts that embed tenure: `from tenure.testing import simulate`.

Importing this is cheap: every name is loaded when it is first used.  `simulate`
needs the extra `tenure[testing]`, and `fixtures` needs pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.runtime.doors.models.scripted import Scripted as Scripted
    from tenure.runtime.testing import conformance as conformance
    from tenure.runtime.testing.checkers import Checker as Checker
    from tenure.runtime.testing.checkers import all_checkers as all_checkers
    from tenure.runtime.testing.checkers import message_checkers as message_checkers
    from tenure.runtime.testing.checkers.content import durable_of as durable_of
    from tenure.runtime.testing.disk import MemoryDisk as MemoryDisk
    from tenure.runtime.testing.expect import EventLog as EventLog
    from tenure.runtime.testing.expect import events_of as events_of
    from tenure.runtime.testing.expect import expect_event as expect_event
    from tenure.runtime.testing.expect import expect_reply as expect_reply
    from tenure.runtime.testing.expect import transcript_of as transcript_of
    from tenure.runtime.testing.explore import Client as Client
    from tenure.runtime.testing.explore import Done as Done
    from tenure.runtime.testing.explore import Explored as Explored
    from tenure.runtime.testing.explore import Explorer as Explorer
    from tenure.runtime.testing.explore import Finding as Finding
    from tenure.runtime.testing.explore import Moment as Moment
    from tenure.runtime.testing.faulty_model import Faulty as Faulty
    from tenure.runtime.testing.leaves import memory_leaves as memory_leaves
    from tenure.runtime.testing.orders import OrderFailed as OrderFailed
    from tenure.runtime.testing.orders import each_order as each_order
    from tenure.runtime.testing.orders import orders as orders
    from tenure.runtime.testing.owners import stepping as stepping
    from tenure.runtime.testing.recorded_model import Cassette as Cassette
    from tenure.runtime.testing.recorded_model import recorded as recorded
    from tenure.runtime.testing.recorded_model import recording as recording
    from tenure.runtime.testing.replay import Replayed as Replayed
    from tenure.runtime.testing.replay import replay as replay
    from tenure.runtime.testing.watch import Violated as Violated
    from tenure.runtime.testing.watch import Watcher as Watcher
    from tenure.runtime.testing.web_faults import WebRequest as WebRequest
    from tenure.runtime.testing.web_faults import WebResponse as WebResponse
    from tenure.runtime.testing.web_faults import WebRule as WebRule
    from tenure.runtime.testing.web_faults import WebRules as WebRules
    from tenure.runtime.testing.world import SimHost as SimHost
    from tenure.runtime.testing.world import World as World
    from tenure.runtime.testing.world import simulate as simulate

_HOMES = {
    "Scripted": "tenure.runtime.doors.models.scripted",
    "Checker": "tenure.runtime.testing.checkers",
    "all_checkers": "tenure.runtime.testing.checkers",
    "message_checkers": "tenure.runtime.testing.checkers",
    "durable_of": "tenure.runtime.testing.checkers.content",
    "Done": "tenure.runtime.testing.explore",
    "Moment": "tenure.runtime.testing.explore",
    "Finding": "tenure.runtime.testing.explore",
    "MemoryDisk": "tenure.runtime.testing.disk",
    "EventLog": "tenure.runtime.testing.expect",
    "events_of": "tenure.runtime.testing.expect",
    "expect_event": "tenure.runtime.testing.expect",
    "expect_reply": "tenure.runtime.testing.expect",
    "transcript_of": "tenure.runtime.testing.expect",
    "Client": "tenure.runtime.testing.explore",
    "Explored": "tenure.runtime.testing.explore",
    "Explorer": "tenure.runtime.testing.explore",
    "Faulty": "tenure.runtime.testing.faulty_model",
    "memory_leaves": "tenure.runtime.testing.leaves",
    "OrderFailed": "tenure.runtime.testing.orders",
    "each_order": "tenure.runtime.testing.orders",
    "orders": "tenure.runtime.testing.orders",
    "stepping": "tenure.runtime.testing.owners",
    "Cassette": "tenure.runtime.testing.recorded_model",
    "recorded": "tenure.runtime.testing.recorded_model",
    "recording": "tenure.runtime.testing.recorded_model",
    "Replayed": "tenure.runtime.testing.replay",
    "replay": "tenure.runtime.testing.replay",
    "Violated": "tenure.runtime.testing.watch",
    "Watcher": "tenure.runtime.testing.watch",
    "WebRequest": "tenure.runtime.testing.web_faults",
    "WebResponse": "tenure.runtime.testing.web_faults",
    "WebRule": "tenure.runtime.testing.web_faults",
    "WebRules": "tenure.runtime.testing.web_faults",
    "SimHost": "tenure.runtime.testing.world",
    "World": "tenure.runtime.testing.world",
    "simulate": "tenure.runtime.testing.world",
}

__all__ = ["conformance", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "conformance":
        return import_module("tenure.runtime.testing.conformance")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tenure.testing' has no attribute {name!r}")
    return getattr(import_module(home), name)
