"""Reading the bytes of a transcript: every line is judged, nothing is changed, nothing raises.

Lines are split on byte 0x0A and on nothing else.  Of each entry only what the
tree, the sums and the roles need is decoded.
"""

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal
from zlib import crc32

import msgspec

from tenure.messages.session import Damage
from tenure.runtime.doors.transcripts.codec import (
    SEAL_BYTES,
    Header,
    has_seal_form,
    is_sealed,
    portable,
)
from tenure.runtime.doors.transcripts.dialects import converted, read_header
from tenure.runtime.doors.transcripts.tree import ROOT, Head, MessageHead, Stamp, Tree

Mark = Literal["unverified", "out_of_epoch", "altered", "unreadable"]
"""What is wrong with one line.  The first two are served, the others only shown."""

Keys = dict[str, tuple[tuple[str, ...], int]]
"""Idempotency key to its entry ids and highest sequence number, oldest first."""

KEYS_KEPT_MAX = 256


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind the last newline."""

    state: Literal["clean", "unterminated", "torn"]
    """clean: nothing.  unterminated: a whole record.  torn: the beginning of one."""
    data: bytes = b""


class Scan:
    """What the bytes of one transcript hold."""

    __slots__ = (
        "damage",
        "epoch_max",
        "header",
        "keys",
        "last_turn",
        "line_numbers",
        "marks",
        "new_lines",
        "old_lines",
        "seq_max",
        "tail",
        "tree",
    )

    def __init__(self, header: Header, lines: list[bytes], tail: Tail) -> None:
        self.header = header
        self.old_lines = lines
        """All lines as they stand in the file, without newlines, the header first."""
        self.new_lines = lines
        """The same lines in the present dialect: the same list where it is the present one."""
        self.tail = tail
        self.tree = Tree()
        self.line_numbers: list[int] = []
        """By place: the line of the entry, from 1."""
        self.marks: dict[int, Mark] = {}
        """What is wrong, by line."""
        self.damage = Damage()
        self.epoch_max = 0
        self.seq_max = 0
        self.last_turn = 0
        self.keys: Keys = {}


def scan(data: bytes, *, claim_epoch: int | None = None) -> Scan:
    """Read a whole transcript.

    Args:
        claim_epoch: the epoch of the claim record; None where there is none.

    Raises:
        Unreadable: it is no transcript that we can read; never because of damage
            behind the header.
    """
    lines = data.split(b"\n")
    rest = lines.pop()
    if lines:
        header = read_header(lines[0], terminated=True)
        tail = _judge_tail(rest)
    else:
        header = read_header(rest, terminated=False)
        tail = Tail(state="unterminated", data=rest)
    if tail.state == "unterminated":
        lines.append(rest)
    found = Scan(header, lines, tail)
    found.new_lines = converted(header, lines)
    heads, entries = _judge_lines(found)
    moved = _tell_apart(found, heads, entries)
    found.tree.load(heads, entries, moved)
    _follow_leaf_moves(found.tree)
    _read_stamps(found, claim_epoch)
    _count_damage(found)
    return found


def _judge_tail(rest: bytes) -> Tail:
    if not rest:
        return Tail(state="clean")
    if head_of(rest) is None or (has_seal_form(rest) and not is_sealed(rest)):
        return Tail(state="torn", data=rest)
    return Tail(state="unterminated", data=rest)


def _judge_lines(found: Scan) -> tuple[list[Head], list[bytes]]:
    """The entries that are served, and a mark for every line that is not whole."""
    heads: list[Head] = []
    entries: list[bytes] = []
    add_head, add_line, add_number = heads.append, entries.append, found.line_numbers.append
    marks = found.marks
    for number, (line, head) in enumerate(_heads(found.new_lines), start=2):
        # The seal is spelled out here, not called: this runs once for every line
        # of every load.
        if head is None:
            if line.strip():
                marks[number] = "unreadable"
            continue
        if head.tenure is None or not line.endswith(b',"sum":"%08x"}}' % crc32(line[:-SEAL_BYTES])):
            mark = _mark_of_unsealed(line)
            marks[number] = mark
            if mark != "unverified":
                continue
        add_head(head)
        add_line(line)
        add_number(number)
    return heads, entries


def _mark_of_unsealed(line: bytes) -> Mark:
    if has_seal_form(line) and not is_sealed(line):  # guard: SESSION-7
        return "altered"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return "unreadable"
    return "unverified"


def _tell_apart(found: Scan, heads: list[Head], entries: list[bytes]) -> dict[int, int]:
    """Make the ids unique, in place; gives the entries that hang elsewhere than they say.

    pi writes all lines again when it appends to a session without an answer:
    such copies are no entries.  Of two different entries with one id none is
    lost: the later is known by its line as well.
    """
    ids = {head.id for head in heads}
    if len(ids) == len(heads) and "" not in ids and all(head.type != "session" for head in heads):
        return {}
    moved: dict[int, int] = {}
    first: dict[str, bytes] = {}
    kept: list[tuple[Head, bytes, int]] = []
    previous_said, previous_id = "", ""
    for head, line, number in zip(heads, entries, found.line_numbers, strict=True):
        if head.type == "session" or (head.id and first.get(head.id) == line):
            continue
        said = head.id
        if head.parent_id == previous_said != previous_id:
            moved[len(kept)] = len(kept) - 1
        if said in first or not said:
            head = msgspec.structs.replace(head, id=f"{said}#{number}")
        first[head.id] = line
        kept.append((head, line, number))
        previous_said, previous_id = said, head.id
    heads[:] = [head for head, _, _ in kept]
    entries[:] = [line for _, line, _ in kept]
    found.line_numbers[:] = [number for _, _, number in kept]
    return moved


def _follow_leaf_moves(tree: Tree) -> None:
    """A `leaf` entry at the end, as later releases of pi write it, moves the leaf."""
    if not tree.heads or tree.heads[-1].type != "leaf":
        return
    fields = loose_fields(tree.lines[-1]) or {}
    target = fields.get("targetId")
    if target is None and "targetId" in fields:
        tree.leaf_place = ROOT
    elif isinstance(target, str):
        place = tree.place_of(target)
        tree.leaf_place = tree.leaf_place if place is None else place


def _read_stamps(found: Scan, claim_epoch: int | None) -> None:
    """Restore the counters, and mark what was written out of its epoch."""
    epoch_now = epoch_max = seq_max = last_turn = 0
    for place, head in enumerate(found.tree.heads):
        stamp = head.tenure
        if stamp is None:
            continue
        epoch = stamp.epoch
        if epoch != epoch_now:
            if epoch < epoch_now or (claim_epoch is not None and epoch > claim_epoch):
                found.marks[found.line_numbers[place]] = "out_of_epoch"
            else:
                epoch_now = epoch
            epoch_max = max(epoch_max, epoch)
        if stamp.seq > seq_max:
            seq_max = stamp.seq
        if stamp.turn > last_turn:
            last_turn = stamp.turn
        if stamp.key:
            note_key(found.keys, stamp.key, (head.id,), stamp.seq)
    found.epoch_max = epoch_max
    found.seq_max = max(seq_max, len(found.tree.heads))
    found.last_turn = last_turn


def note_key(keys: Keys, key: str, entry_ids: tuple[str, ...], seq: int) -> None:
    """Remember what a key appended; only the newest keys are kept."""
    ids_before, seq_before = keys.pop(key, ((), 0))
    keys[key] = (ids_before + entry_ids, max(seq, seq_before))
    if len(keys) > KEYS_KEPT_MAX:
        del keys[next(iter(keys))]


def _count_damage(found: Scan) -> None:
    marks = list(found.marks.values())
    found.damage = Damage(
        unreadable_lines=marks.count("unreadable"),
        altered_records=marks.count("altered"),
        unverified_records=marks.count("unverified"),
        out_of_epoch_records=marks.count("out_of_epoch"),
        torn_bytes=len(found.tail.data) if found.tail.state == "torn" else 0,
    )


_decode_head = msgspec.json.Decoder(Head).decode


def _heads(lines: list[bytes]) -> Iterator[tuple[bytes, Head | None]]:
    """Each line behind the header with its head; None where it is no entry."""
    entries = lines[1:]
    heads: list[Head | None] = []
    decoding = map(_decode_head, entries)
    while True:
        try:
            # One call into C for as long as all goes well; the iterator goes on
            # behind the line that failed.
            heads.extend(decoding)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            heads.append(head_of(entries[len(heads)]))
        else:
            return zip(entries, heads, strict=True)


def head_of(line: bytes) -> Head | None:
    """The head of one line, however odd it is; None where it is no JSON object with a type.

    Slower than the typed decoder and more forgiving: half surrogates and fields
    of unexpected types are no damage.
    """
    fields = loose_fields(line)
    if fields is None or not isinstance(fields.get("type"), str):
        return None
    parent, message = fields.get("parentId"), fields.get("message")
    return Head(
        type=fields["type"],
        id=_text(fields, "id"),
        parent_id=parent if isinstance(parent, str) else None,
        timestamp=_text(fields, "timestamp"),
        message=_loose_message(message) if isinstance(message, dict) else None,
        tenure=_loose_stamp(fields.get("tenure")),
    )


def loose_fields(line: bytes) -> dict[str, Any] | None:
    """The JSON object of one line with clean texts; None where it is none."""
    try:
        fields = portable(json.loads(line.decode("utf-8")))
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _loose_message(message: dict[str, Any]) -> MessageHead:
    timestamp = message.get("timestamp")
    return MessageHead(
        role=_text(message, "role"),
        timestamp=timestamp if isinstance(timestamp, int | float) and isfinite(timestamp) else 0,
        tool_call_id=_text(message, "toolCallId"),
    )


def _loose_stamp(stamp: object) -> Stamp | None:
    try:
        return msgspec.convert(stamp, Stamp | None)
    except msgspec.ValidationError:
        return None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
