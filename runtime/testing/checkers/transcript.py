"""SESSION-3, -6, -7, -8: what a receipt promises stands on the disk, in one chain, and stays."""

import re
from typing import Any

from tenure.messages.base import Effect, Message, Outcome
from tenure.messages.entries import CustomEntry
from tenure.messages.session import (
    Appended,
    AppendEntries,
    AppendFailed,
    StorageFailed,
)
from tenure.messages.tokens import ProcessName, SessionId
from tenure.messages.transcripts import (
    AppendRecords,
    OpenTranscript,
    RecordsUncertain,
    SettleTranscript,
    TranscriptNotOpened,
    TranscriptOpened,
)
from tenure.runtime.step import AskId, Step, Taken
from tenure.runtime.testing.checkers.base import Checker
from tenure.runtime.testing.checkers.content import (
    branches_of,
    calls_and_results,
    content_of,
    durable_of,
    entries_of,
    holds,
)
from tenure.runtime.testing.checkers.paths import Paths
from tenure.runtime.testing.faults import WRITING_CALLS, DiskCall

CLAIMS = "/.tenure/claims/sessions/"
NOT_RAISED = ("cancelled", "its owner ended before it began")


class Receipts(Paths):
    """A receipt says that the entries are durable; they are there at the end, too."""

    invariants = ("SESSION-3",)

    def __init__(self) -> None:
        super().__init__()
        self._receipts: dict[SessionId, set[str]] = {}
        self._asks: dict[tuple[str, AskId], AppendEntries] = {}
        self._closed: dict[tuple[str, str], SessionId] = {}

    def stepped(
        self, host: str, owner: str, message: Message, taken: Taken, step: Step[Any]
    ) -> None:
        super().stepped(host, owner, message, taken, step)
        if isinstance(message, AppendEntries) and taken.asker is not None:
            self._asks[host, taken.asker] = message
        for asker, reply in step.replies:
            asked = self._asks.pop((host, asker), None)
            match reply:
                case Appended():
                    self._receipt(reply)
                case AppendFailed() if asked is not None:
                    self._left_nothing(asked)
                case _:
                    pass

    def _receipt(self, receipt: Appended) -> None:
        session = receipt.token.session_id
        path = self.paths.get(session, "")
        if not path or path in self.foreign:
            return
        durable = durable_of(self.disk, path) or b""
        for entry_id in receipt.entry_ids:
            if not holds(durable, entry_id):
                self.report("SESSION-3", f"{entry_id} has its receipt and is not durable in {path}")
        self._receipts.setdefault(session, set()).update(receipt.entry_ids)

    def _left_nothing(self, asked: AppendEntries) -> None:
        path = self.paths.get(asked.token.session_id, "")
        data = content_of(self.disk, path)
        if data is None or path in self.foreign or asked.idempotency_key:
            return
        for body in asked.entries:
            # Clients of a workload say something unique in each entry.
            text = body.data.get("text") if isinstance(body, CustomEntry) else None
            if isinstance(text, str) and b'"%b"' % text.encode() in data:
                self.report("SESSION-3", f"a failed append left {text} in {path}")

    def effect_started(self, host: str, owner: str, number: int, effect: Effect) -> None:
        super().effect_started(host, owner, number, effect)
        match effect:
            case AppendRecords(token=token) | SettleTranscript(token=token):
                if self._closed.get((host, owner)) == token.session_id:
                    what = f"{owner} writes to {token.session_id}, whose disk is in doubt"
                    self.report("SESSION-3", what)
            case _:
                pass

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        match outcome:
            case RecordsUncertain(session_id=session_id):
                self._closed[host, owner] = session_id
            case TranscriptOpened(opened=opened):
                if self._closed.get((host, owner)) == opened.token.session_id:
                    del self._closed[host, owner]
            case _:
                pass

    def finished(self) -> None:
        for session, path in self.ours().items():
            data = self.kept(session, path)
            lost = [each for each in self._receipts.get(session, ()) if not holds(data, each)]
            if lost:
                self.report("SESSION-3", f"{path} lost entries with receipts: {sorted(lost)}")


REWIND = "tenure/rewind"
ADDRESSED = re.compile(r"\[([0-9a-f]{8}-[0-9a-f-]{27})\]")
"""How a model of a workload begins: with the session that it speaks to."""


class Chains(Paths):
    """In every file of ours one entry hangs on the one before it."""

    invariants = ("SESSION-6", "TURN-7", "SESSION-5")

    def finished(self) -> None:
        for session, path in self.ours().items():
            data = content_of(self.disk, path)
            if data is None:
                continue
            entries = entries_of(data)
            self._chain(path, entries)
            self._results(path, entries)
            self._strangers(session, path, entries)

    def _chain(self, path: str, entries: list[dict[str, Any]]) -> None:
        before: str | None = None
        earlier: set[str] = set()
        seq = 0
        for entry in entries:
            # A record that moves the leaf hangs on its target, which comes before it.
            moves = entry.get("customType") == REWIND and entry["parentId"] in {*earlier, None}
            earlier.add(entry["id"])
            if entry["parentId"] != before and not moves:
                what = f"{path}: {entry['id']} hangs on {entry['parentId']}, not on {before}"
                self.report("SESSION-6", what)
            if entry["tenure"]["seq"] != seq + 1:
                what = f"{path}: {entry['id']} has seq {entry['tenure']['seq']} after {seq}"
                self.report("SESSION-6", what)
            before, seq = entry["id"], entry["tenure"]["seq"]
        if len({entry["id"] for entry in entries}) != len(entries):
            self.report("SESSION-6", f"{path} has two entries of one id")

    def _results(self, path: str, entries: list[dict[str, Any]]) -> None:
        """On each branch, since a rewind may part a call from the result that it had."""
        for branch in branches_of(entries):
            calls, results = calls_and_results(branch)
            for call in sorted({*calls, *results}):
                if calls.count(call) != results.count(call):
                    counts = f"{calls.count(call)} calls and {results.count(call)} results"
                    self.report("TURN-7", f"{path}: {call} has {counts}")

    def _strangers(self, session: SessionId, path: str, entries: list[dict[str, Any]]) -> None:
        """Models and clients of a workload say whom they speak to: nothing strays."""
        known = self.may_speak_of(session)
        for entry in entries:
            data = entry.get("data")
            if isinstance(data, dict) and data.get("session", session) not in known:
                self.report("SESSION-5", f"{path} has an entry for {data['session']}")
            message = entry.get("message")
            if isinstance(message, dict) and message.get("role") == "assistant":
                for block in message["content"]:
                    text = block.get("text", "")
                    told = ADDRESSED.match(text)
                    if told is not None and told[1] not in known:
                        self.report("SESSION-5", f"{path} has an answer to {text[:40]}")


class Openings(Paths):
    """Opening loses nothing that could be read, and damage is never a crash."""

    invariants = ("SESSION-7",)

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[tuple[ProcessName, str], set[str]] = {}
        self._process: dict[str, ProcessName] = {}
        self._opening: dict[tuple[str, int], OpenTranscript] = {}

    def host_started(self, host: str, process: ProcessName) -> None:
        self._process[host] = process

    def disk_called(self, call: DiskCall) -> None:
        if call.name != "lock" or CLAIMS not in call.path:
            return
        name = call.path.partition(CLAIMS)[2].removesuffix(".lock")
        folder = f"{call.path.partition('/claims/')[0]}/sessions"
        for path in self._named(folder, name):
            data = content_of(self.disk, path) or b""
            self._before[call.process, path] = {entry["id"] for entry in entries_of(data)}

    def _named(self, folder: str, session: str) -> list[str]:
        try:
            names = self.disk.folder(folder).names
        except OSError:
            return []
        return [f"{folder}/{name}" for name in names if name.endswith(f"_{session}.jsonl")]

    def effect_ended(self, host: str, owner: str, number: int, outcome: Outcome) -> None:
        match outcome:
            case TranscriptOpened(opened=opened):
                process = self._process.get(host)
                before = self._before.pop((process, opened.path), set()) if process else set()
                data = content_of(self.disk, opened.path) or b""
                if before and opened.path not in self.foreign:
                    lost = before - {entry["id"] for entry in entries_of(data)}
                    if lost:
                        self.report("SESSION-7", f"opening lost {sorted(lost)} of {opened.path}")
            case TranscriptNotOpened(refusal=StorageFailed(path="", reason=reason)):
                if reason not in NOT_RAISED:
                    self.report("SESSION-7", f"opening raised: {reason}")
            case _:
                pass


class Readers(Checker):
    """A process that only reads writes nothing."""

    invariants = ("SESSION-8",)

    def __init__(self) -> None:
        super().__init__()
        self._readers: set[ProcessName] = set()

    def host_started(self, host: str, process: ProcessName) -> None:
        if host.startswith("reader"):
            self._readers.add(process)

    def disk_called(self, call: DiskCall) -> None:
        if call.process in self._readers and call.name in WRITING_CALLS:
            self.report("SESSION-8", f"a reader did {call.name} {call.path}")
