"""TOOL-1: a tool stays inside the root, and out of the folder of ours."""

import posixpath
from typing import Any

from tenure.messages.base import Effect, Outcome
from tenure.messages.content import TextBlock
from tenure.messages.turn_effects import RunTool, ToolCallDone
from tenure.runtime.testing.checkers.base import Checker, Recent
from tenure.runtime.testing.faults import DiskCall

OPENING = frozenset({"open", "create", "append", "truncate", "remove", "make_folder"})
SECRET = "SECRET"
"""What a workload's file outside of the root holds."""


class Fences(Checker):
    """A call that names what is not the workspace's gets an error."""

    invariants = ("TOOL-1",)

    def __init__(self) -> None:
        super().__init__()
        self._running: Recent[tuple[str, int], RunTool] = Recent()

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        if isinstance(effect, RunTool):
            self._running[host, number] = effect

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        run = self._running.pop((host, number), None)
        if run is None or not isinstance(outcome, ToolCallDone):
            return
        names = (run.arguments.get(name) for name in ("path", "newPath"))
        outside = [name for name in names if isinstance(name, str) and _leads_out(name)]
        if outside and not outcome.is_error:
            self.report("TOOL-1", f"{run.tool} did its work on {outside[0]}")
        text = "".join(block.text for block in outcome.content if isinstance(block, TextBlock))
        if SECRET in text:
            self.report("TOOL-1", f"{run.tool} of {run.call_id} told what lies outside of the root")


class Outside(Checker):
    """No process of ours opens or changes a file outside of the root."""

    invariants = ("TOOL-1",)

    def __init__(self, root: str) -> None:
        super().__init__()
        self._inside = f"{root}/"

    def disk_called(self, call: DiskCall) -> None:
        if call.name not in OPENING:
            return
        path = posixpath.normpath(call.path)
        if "/link" in path:
            path = self._real(path)
        if not path.startswith(self._inside):
            self.report("TOOL-1", f"process {call.process.pid} did {call.name} {call.path}")

    def _real(self, path: str) -> str:
        try:
            return self.disk.target(path).path
        except OSError:
            return path


def _leads_out(name: str) -> bool:
    path = posixpath.normpath(name)
    first: Any = path.split("/")[0]
    return first in ("", "..", ".tenure")
