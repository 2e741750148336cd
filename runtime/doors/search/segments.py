"""A segment: chunks with their vectors and their keyword index, in one file that never changes.

    magic, length of the header, header (JSON), then the sections that the header names

    digests    16 bytes a chunk
    vectors    half-precision floats, `dimensions` a chunk
    ends       where each text ends in `texts`, 8 bytes a chunk
    words      an SQLite database with an FTS5 table, serialised
    texts      heading, newline, text of every chunk, UTF-8

Everything but the texts is read when a segment is opened; a text when it is shown.
"""

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from tenure.messages.index_work import IndexModel
from tenure.runtime.doors.files import File, Files
from tenure.runtime.doors.search.chunks import CHUNKING, DIGEST_BYTES
from tenure.runtime.doors.search.layout import (
    READ_BYTES,
    IndexLayout,
    NamedFile,
    digest_name,
)
from tenure.runtime.doors.search.words import words_of

MAGIC = b"tenure-segment-1\n"
HEADER_BYTES_MAX = 1_048_576
VALUE_BYTES = 2
END_BYTES = 8

SectionName = Literal["digests", "vectors", "ends", "words", "texts"]


class SegmentDamaged(ValueError):
    """A segment is not what its header, or its name, says."""


class Row(msgspec.Struct, frozen=True):
    """One chunk on its way into a segment."""

    digest: bytes
    text: str
    """Its headings, a newline, its text."""
    vector: bytes
    """Half-precision; empty for a keyword index."""


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Where a section lies, and the CRC-32 of its bytes."""

    offset: int
    bytes: int
    crc: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment holds."""

    rows: int
    model: IndexModel
    chunking: int
    sections: dict[SectionName, Section]


def segment_bytes(rows: Sequence[Row], model: IndexModel) -> bytes:
    """The whole content of a segment."""
    texts = [row.text.encode("utf-8", "replace") for row in rows]
    ends, at = [], 0
    for text in texts:
        at += len(text)
        ends.append(at)
    parts: dict[SectionName, bytes] = {
        "digests": b"".join(row.digest for row in rows),
        "vectors": b"".join(row.vector for row in rows),
        "ends": struct.pack(f"<{len(ends)}Q", *ends),
        "words": _word_index(row.text for row in rows),
        "texts": b"".join(texts),
    }
    sections: dict[SectionName, Section] = {}
    offset = 0
    for name, data in parts.items():
        sections[name] = Section(offset=offset, bytes=len(data), crc=zlib.crc32(data))
        offset += len(data)
    header = msgspec.json.encode(
        Header(rows=len(rows), model=model, chunking=CHUNKING, sections=sections)
    )
    return b"".join((MAGIC, struct.pack("<I", len(header)), header, *parts.values()))


def _word_index(texts: Iterable[str]) -> bytes:
    database = sqlite3.connect(":memory:")
    try:
        # Words come folded and cut already; this tokenizer only splits at the blanks.
        database.execute("CREATE VIRTUAL TABLE f USING fts5(t, content='', tokenize='ascii')")
        database.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'row')")
        database.executemany(
            "INSERT INTO f(rowid, t) VALUES (?, ?)",
            ((row, " ".join(words_of(text))) for row, text in enumerate(texts)),
        )
        database.execute("INSERT INTO f(f) VALUES ('optimize')")
        database.commit()
        return database.serialize()
    finally:
        database.close()


class OpenSegment:
    """A segment that is open for reading: what is removed from the folder stays readable here.

    Raises:
        FileNotFoundError: it is not there (any more).
        SegmentDamaged: it is none, or not the one that is named.
    """

    def __init__(self, files: Files, layout: IndexLayout, named: NamedFile) -> None:
        self.name = named.file
        self._file: File = files.open(layout.file(named.file), "read")
        try:
            self._open(named)
        except BaseException:
            self._file.close()
            raise

    def _open(self, named: NamedFile) -> None:
        start = self._file.read_at(0, len(MAGIC) + 4)
        if len(start) < len(MAGIC) + 4 or not start.startswith(MAGIC):
            raise SegmentDamaged(f"{named.file} is no segment")
        (size,) = struct.unpack("<I", start[len(MAGIC) :])
        if size > HEADER_BYTES_MAX:
            raise SegmentDamaged(f"{named.file} has a damaged header")
        try:
            self.header = msgspec.json.decode(self._file.read_at(len(start), size), type=Header)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SegmentDamaged(f"{named.file} has a damaged header") from None
        self._base = len(start) + size
        ends = max((each.offset + each.bytes for each in self.header.sections.values()), default=0)
        if self._file.stat().size != named.bytes or self._base + ends != named.bytes:
            raise SegmentDamaged(f"{named.file} has not its whole length")
        self.rows = self.header.rows
        self.model = self.header.model
        self._ends = self.section("ends")
        if len(self._ends) != self.rows * END_BYTES:
            raise SegmentDamaged(f"{named.file} has not an end for each text")

    def section(self, name: SectionName) -> bytes:
        """A whole section.  Raises `SegmentDamaged` where its sum does not fit."""
        where = self.header.sections.get(name)
        if where is None:
            raise SegmentDamaged(f"{self.name} has no {name}")
        parts, at = [], 0
        while at < where.bytes:
            size = min(READ_BYTES, where.bytes - at)
            part = self._file.read_at(self._base + where.offset + at, size)
            if not part:
                break
            parts.append(part)
            at += len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        if zlib.crc32(data) != where.crc:
            raise SegmentDamaged(f"the {name} of {self.name} are damaged")
        return data

    def digests(self) -> Iterator[bytes]:
        """Of each row."""
        data = self.section("digests")
        for at in range(0, len(data), DIGEST_BYTES):
            yield data[at : at + DIGEST_BYTES]

    def text(self, row: int) -> str:
        """The headings of a chunk, a newline, its text."""
        where = self.header.sections["texts"]
        end = self._end(row)
        start = self._end(row - 1) if row else 0
        data = self._file.read_at(self._base + where.offset + start, end - start)
        return data.decode("utf-8", "replace")

    def word_index(self) -> sqlite3.Connection:
        """The keyword index, in memory.  The caller closes it."""
        data = self.section("words")
        database = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            database.deserialize(data)
            database.execute("SELECT count(*) FROM v LIMIT 1").fetchone()
        except sqlite3.Error as wrong:
            database.close()
            raise SegmentDamaged(f"the words of {self.name} are damaged: {wrong}") from None
        return database

    def read_rows(self, wanted: Sequence[int]) -> Iterator[Row]:
        """Some rows as they were written."""
        digests = self.section("digests")
        vectors = self.section("vectors")
        size = self.model.dimensions * VALUE_BYTES
        for row in wanted:
            yield Row(
                digests[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES],
                self.text(row),
                vectors[row * size : (row + 1) * size],
            )

    def close(self) -> None:
        self._file.close()

    def _end(self, row: int) -> int:
        (end,) = struct.unpack_from("<Q", self._ends, row * END_BYTES)
        return int(end)


def named_segment(data: bytes) -> NamedFile:
    """How a segment with this content is called."""
    return NamedFile(file=digest_name("seg", data), bytes=len(data))
