"""An independent check of one transcript: from its bytes alone, with nothing that serves it.

It shares no code with the reader: JSON is parsed anew, sums are computed anew, and
the chain is walked anew.  Nothing is changed.
"""

import json
import re
from typing import Any, Literal
from zlib import crc32

import msgspec

from tenure.runtime.doors.leaves import Leaves
from tenure.runtime.doors.transcripts.storage import read_all

Kind = Literal["header", "line", "sum", "id", "parent", "epoch", "seq", "calls", "tail"]

_SEAL = re.compile(rb',"sum":"([0-9a-f]{8})"\}\}$')


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    line: int
    """From 1; the header is line 1."""
    kind: Kind
    text: str


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What the check found."""

    path: str
    session_id: str
    """Empty where the header does not say."""
    bytes: int
    lines: int
    sealed: int
    """Records of ours whose sum fits."""
    foreign: int
    """Entries of other programs: without a sum, so nobody can say that they are as they were."""
    epoch: int
    """The highest."""
    calls: int
    """Tool calls on the path of the last entry."""
    problems: tuple[Problem, ...]

    @property
    def sound(self) -> bool:
        return not self.problems


def verify_session(leaves: Leaves, path: str) -> Verification:
    """Check one transcript.  Blocks.

    Raises:
        OSError: the file cannot be read.
    """
    check = _Check(read_all(leaves.files, path))
    return check.result(path)


class _Check:
    def __init__(self, data: bytes) -> None:
        self._size = len(data)
        self._lines = data.split(b"\n")
        self._tail = self._lines.pop()
        self._problems: list[Problem] = []
        self._entries: dict[str, tuple[int, dict[str, Any]]] = {}
        self._last = ""
        self._sealed = self._foreign = self._epoch = self._seq = self._calls = 0
        self._session_id = ""

    def result(self, path: str) -> Verification:
        self._header()
        for number, line in enumerate(self._lines[1:], start=2):
            if line.strip():
                self._line(number, line)
        if self._tail:
            self._say(len(self._lines) + 1, "tail", f"{len(self._tail)} bytes behind the last line")
        self._pairs()
        return Verification(
            path=path,
            session_id=self._session_id,
            bytes=self._size,
            lines=len(self._lines),
            sealed=self._sealed,
            foreign=self._foreign,
            epoch=self._epoch,
            calls=self._calls,
            problems=tuple(sorted(self._problems, key=lambda each: each.line)),
        )

    def _say(self, line: int, kind: Kind, text: str) -> None:
        self._problems.append(Problem(line=line, kind=kind, text=text))

    def _header(self) -> None:
        fields = _object(self._lines[0] if self._lines else self._tail)
        if fields is None or fields.get("type") != "session" or not fields.get("id"):
            self._say(1, "header", "it is no session header")
            return
        self._session_id = str(fields["id"])
        if fields.get("version") != 3:
            self._say(1, "header", f"its version is {fields.get('version')!r}, not 3")

    def _line(self, number: int, line: bytes) -> None:
        fields = _object(line)
        if fields is None or not isinstance(fields.get("type"), str):
            self._say(number, "line", "it is no entry")
            return
        self._seal(number, line, fields)
        entry_id, parent = fields.get("id"), fields.get("parentId")
        if not isinstance(entry_id, str) or not entry_id:
            self._say(number, "id", "it has no id")
            return
        if entry_id in self._entries:
            self._say(number, "id", f"{entry_id} stands on line {self._entries[entry_id][0]}, too")
            return
        if parent is not None and parent not in self._entries:
            self._say(number, "parent", f"it hangs on {parent!r}, which stands nowhere before it")
        self._entries[entry_id] = (number, fields)
        self._last = entry_id

    def _seal(self, number: int, line: bytes, fields: dict[str, Any]) -> None:
        stamp, seal = fields.get("tenure"), _SEAL.search(line)
        if not isinstance(stamp, dict) or seal is None:
            self._foreign += 1
            return
        told, computed = seal.group(1), b"%08x" % crc32(line[: seal.start()])
        if told != computed:
            self._say(
                number, "sum", f"its sum is {told.decode()}, its bytes give {computed.decode()}"
            )
            return
        self._sealed += 1
        epoch, seq = stamp.get("epoch"), stamp.get("seq")
        if not isinstance(epoch, int) or epoch < self._epoch:
            self._say(number, "epoch", f"it is of epoch {epoch}, behind one of {self._epoch}")
        else:
            self._epoch = epoch
        if not isinstance(seq, int) or seq <= self._seq:
            self._say(number, "seq", f"its number is {seq}, behind {self._seq}")
        else:
            self._seq = seq

    def _pairs(self) -> None:
        """Every call on the last entry's path has exactly one result behind it."""
        waiting: dict[str, int] = {}
        for number, message in self._messages():
            if message.get("role") == "toolResult":
                call_id = str(message.get("toolCallId"))
                if waiting.pop(call_id, None) is None:
                    self._say(number, "calls", f"a result of {call_id!r}, which waits for none")
                continue
            for call_id in _calls(message):
                self._calls += 1
                if call_id in waiting:
                    self._say(waiting[call_id], "calls", f"the call {call_id!r} has no result")
                waiting[call_id] = number
        for call_id, number in waiting.items():
            self._say(number, "calls", f"the call {call_id!r} has no result")

    def _messages(self) -> list[tuple[int, dict[str, Any]]]:
        path: list[tuple[int, dict[str, Any]]] = []
        at: object = self._last
        while isinstance(at, str) and at in self._entries:
            number, fields = self._entries[at]
            message = fields.get("message")
            if isinstance(message, dict):
                path.append((number, message))
            parent = fields.get("parentId")
            # A parent behind its child would be a circle; it was told above.
            at = parent if parent in self._entries and self._entries[parent][0] < number else None
        path.reverse()
        return path


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _calls(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return []
    blocks = [block for block in content if isinstance(block, dict)]
    return [str(block.get("id")) for block in blocks if block.get("type") == "toolCall"]
