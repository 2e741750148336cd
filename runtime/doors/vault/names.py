"""File names, times and digests of the vault: one place for each."""

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from hashlib import sha256

SLUG_BYTES_MAX = 60
"""Leaves room for time and id in a name of 255 bytes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999
_APART = re.compile(r"[^\w]+|_+")
_LONE = re.compile("[\ud800-\udfff]")


def slug_of(title: str) -> str:
    """A title as a part of a file name: words of any script, hyphens between; maybe empty."""
    words = unicodedata.normalize("NFC", whole(title)).lower()
    slug = _APART.sub("-", words).strip("-")
    while len(slug.encode()) > SLUG_BYTES_MAX:
        slug = slug[: max(1, len(slug) - 4)] if len(slug) > 8 else slug[:-1]
    return slug.strip("-")


def handoff_name(at_ms: int, title: str, handoff_id: str) -> str:
    """`handoffs/handoff-2026-12-01-0950-fix-the-parser-1a2b3c4d.md`: no two are the same."""
    moment = moment_of(at_ms)
    parts = [f"handoff-{moment:%Y-%m-%d-%H%M}", slug_of(title), handoff_id[:12]]
    return f"handoffs/{'-'.join(part for part in parts if part)}.md"


def moment_of(at_ms: int) -> datetime:
    """A moment of the vault's calendar: UTC, for whoever writes and whoever reads."""
    return _EPOCH + timedelta(milliseconds=min(max(at_ms, 0), _LAST_MS))


def iso(at_ms: int) -> str:
    """UTC with milliseconds: `2026-12-01T09:50:00.000Z`."""
    moment = moment_of(at_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def whole(text: str) -> str:
    """The text without halves of surrogate pairs: they cannot be written."""
    return _LONE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The text in one line, without characters that a terminal obeys."""
    return " ".join("".join(each if each.isprintable() else " " for each in whole(text)).split())
