"""The lines of the handoff journal, and how a line shows that it is whole.

    {"type":"handoff","seq":12,"id":"..", ... ,"sum":"1a2b3c4d"}

`sum` is the last member: the CRC-32 of every byte of the line before `,"sum":`.
"""

import re
from typing import Any
from zlib import crc32

import msgspec

from tenure.messages.handoff import HandoffText, SessionLink, StageName, StageResult


class MarkName(msgspec.Struct, frozen=True, kw_only=True):
    """A mark as it was: one that was written anew since has another digest."""

    id: str
    digest: str


class HandoffRecord(msgspec.Struct, frozen=True, kw_only=True, tag="handoff", tag_field="type"):
    """A handoff, or a revision of one: the fact itself.  Its file can be made anew from it."""

    seq: int
    id: str
    at_ms: int
    text: HandoffText
    path: str
    """Its file, from the vault."""
    file_digest: str
    """SHA-256 of the file's bytes as they are written, or were found."""
    digest: str
    """SHA-256 of what the caller said: another text under the same key has another."""
    author: str = ""
    """`draft:MODEL`, or `file` for what somebody wrote into the file; empty for the caller."""
    session: str = ""
    link: SessionLink | None = None
    key: str = ""
    closes: tuple[MarkName, ...] = ()
    """The marks of its session: they end in the same write."""
    revises: int = 0
    """The number of the handoff whose file was changed; 0 for a new one."""
    source: str = ""
    """The file's own words, where somebody else wrote it."""
    problem: str = ""


class StagesRecord(msgspec.Struct, frozen=True, kw_only=True, tag="stages", tag_field="type"):
    """What became of the stages of a handoff."""

    of: int
    at_ms: int
    stages: dict[StageName, StageResult]


class BriefRecord(msgspec.Struct, frozen=True, kw_only=True, tag="brief", tag_field="type"):
    """A brief was delivered, for the first time or again."""

    id: str
    at_ms: int
    digest: str
    """SHA-256 of its notices and items."""
    notices: tuple[MarkName, ...] = ()


class AckRecord(msgspec.Struct, frozen=True, kw_only=True, tag="ack", tag_field="type"):
    """A brief was acknowledged: the marks that it named, as they were then, are over."""

    brief: str
    at_ms: int
    cleared: tuple[MarkName, ...]


JournalRecord = HandoffRecord | StagesRecord | BriefRecord | AckRecord

SEAL_BYTES = 18
"""The length of `,"sum":"1a2b3c4d"}`."""

_SEAL = b',"sum":"%08x"}'
_SEAL_FORM = re.compile(rb',"sum":"([0-9a-f]{8})"\}\Z')
_decode = msgspec.json.Decoder(JournalRecord).decode


class Damaged(msgspec.Struct, frozen=True):
    """A line that is not what was written."""

    reason: str


class Foreign(msgspec.Struct, frozen=True):
    """A whole line of a kind that this version does not know."""


def encode_line(record: JournalRecord) -> bytes:
    """One line, with its newline.  Raises `UnicodeEncodeError` for a lone surrogate."""
    body = msgspec.json.encode(record)[:-1]
    return body + _SEAL % crc32(body) + b"\n"


def decode_line(line: bytes) -> JournalRecord | Damaged | Foreign:
    """What a line without its newline says."""
    seal = _SEAL_FORM.search(line, max(0, len(line) - SEAL_BYTES))
    if seal is None:
        return Damaged("it has no sum at its end")
    if int(seal[1], 16) != crc32(line[: seal.start()]):
        return Damaged("its sum does not fit its bytes")
    try:
        return _decode(line)
    except msgspec.ValidationError:
        return Foreign() if _is_of_another_kind(line) else Damaged("its fields are not as expected")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Damaged("it is no JSON")


def _is_of_another_kind(line: bytes) -> bool:
    found: Any = msgspec.json.decode(line)
    known = {"handoff", "stages", "brief", "ack"}
    return isinstance(found, dict) and found.get("type") not in known
