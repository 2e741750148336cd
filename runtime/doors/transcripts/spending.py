"""What a session has used, read from its entries: nothing that was spent is ever taken back.

Every answer counts, on whatever branch it stands and whatever was compacted since;
so do the summaries that models wrote, and the turns of subagents.  Looked at again,
only what came since is read.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.messages.content import Usage
from tenure.messages.limits import ModelSpent, Spending, Spent
from tenure.messages.tokens import SessionId
from tenure.runtime.doors.transcripts.codec import parse_time
from tenure.runtime.doors.transcripts.tree import Tree

SUBAGENT_USAGE = "usage"
"""In the details of a tool result: what the call itself had used, as a `Spent`."""


class _Block(msgspec.Struct, gc=False):
    type: str = ""


class _Message(msgspec.Struct, rename="camel"):
    role: str = ""
    model: str = ""
    content: list[_Block] | str = ""
    usage: Any = None
    details: Any = None


class _Line(msgspec.Struct):
    message: _Message | None = None
    details: Any = None


_decode = msgspec.json.Decoder(_Line).decode


class Counted:
    """The sums of one tree, which grows."""

    __slots__ = ("_at", "_places", "_tree", "_turns")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._at = 0
        self._places: list[tuple[int, str, Spent]] = []
        """Place, model and what was used, of every entry that used something."""
        self._turns: dict[int, tuple[int, int]] = {}
        """First and last moment of each turn, in milliseconds."""

    def spending(self, session_id: SessionId) -> Spending:
        """All of it, up to now."""
        self._read()
        path = set(self._tree.path())
        total = _sum(spent for _, _, spent in self._places)
        abandoned = _sum(spent for place, _, spent in self._places if place not in path)
        models: dict[str, list[Spent]] = {}
        for _, model, spent in self._places:
            if model:
                models.setdefault(model, []).append(spent)
        wall_ms = sum(last - first for first, last in self._turns.values())
        return Spending(
            session_id=session_id,
            total=msgspec.structs.replace(total, wall_ms=total.wall_ms + wall_ms),
            abandoned=abandoned,
            models=tuple(ModelSpent(model=name, spent=_sum(of)) for name, of in models.items()),
        )

    def _read(self) -> None:
        heads, lines = self._tree.heads, self._tree.lines
        for place in range(self._at, len(heads)):
            head = heads[place]
            if head.tenure is not None and head.tenure.turn:
                moment = parse_time(head.timestamp)
                first, last = self._turns.get(head.tenure.turn, (moment, moment))
                self._turns[head.tenure.turn] = (min(first, moment), max(last, moment))
            if head.type in ("message", "compaction") and b'"usage"' in lines[place]:
                self._places += [(place, model, spent) for model, spent in _of_line(lines[place])]
        self._at = len(heads)


def _of_line(line: bytes) -> Iterable[tuple[str, Spent]]:
    try:
        entry = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    message = entry.message
    if message is None:
        # The price of a summary; what was summarised stands in its own entries.
        details = entry.details if isinstance(entry.details, dict) else {}
        usage, calls = _usage(details.get("usage")), details.get("calls")
        return [_called("", usage, calls if isinstance(calls, int) else 1)] if usage else []
    if message.role == "assistant":
        usage = _usage(message.usage) or Usage()
        model, spent = _called(message.model, usage, 1)
        blocks = message.content if isinstance(message.content, list) else []
        calls = sum(block.type == "toolCall" for block in blocks)
        return [(model, msgspec.structs.replace(spent, tool_calls=calls))]
    details = message.details if isinstance(message.details, dict) else {}
    try:
        return [("", msgspec.convert(details.get(SUBAGENT_USAGE), Spent))]
    except msgspec.ValidationError:
        return []


def _called(model: str, usage: Usage, calls: int) -> tuple[str, Spent]:
    measured = usage.total_tokens or usage.input or usage.output or usage.priced
    if not measured:
        # The call was cut off before anybody said what it used: that is told, and not
        # taken for a price that is unknown, or one stop would make every sum unknown.
        return model, Spent(requests=calls, unmeasured=calls)
    return model, Spent(usage=usage, requests=calls)


def _usage(value: object) -> Usage | None:
    try:
        usage = msgspec.convert(value, Usage)
    except msgspec.ValidationError:
        return None
    # Other programs write a cost and no word about its price.
    priced = usage.priced or usage.cost.total > 0
    return msgspec.structs.replace(usage, priced=priced)


def _sum(all_spent: Iterable[Spent]) -> Spent:
    total = Spent()
    for spent in all_spent:
        total = total.plus(spent)
    return total
