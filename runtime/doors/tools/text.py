"""Text in files of any size: what is text, which lines, and the digest of the bytes.

Nothing here holds more of a file than one chunk and what it gives back.
"""

import codecs
import hashlib
import unicodedata
from collections.abc import Iterator

import msgspec

from tenure.runtime.doors.files import File, Files
from tenure.runtime.doors.tools.tool import ABSENT, ToolRefused

CHUNK_BYTES = 262_144
BLOCK_BYTES = 1_048_576
COUNTED_BYTES_MAX = 268_435_456
"""Lines beyond this many bytes are not counted."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"\x1f\x8b", "gzip archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x7fELF", "program"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


class NotText(Exception):
    """The bytes are not UTF-8 text."""


class LineRange(msgspec.Struct, frozen=True, kw_only=True):
    """The lines asked for, and how many there are."""

    lines: tuple[str, ...]
    """Without their line ends; a long one is cut."""
    total: int
    counted: bool
    """False where the file goes on beyond the bytes that are counted."""
    cut: bool
    """Whether a line was longer than was asked for."""
    crlf: bool
    """Whether the first line asked for ends in CR LF."""


def shown(text: str) -> str:
    """A name as it can be shown on one line and stored as JSON."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _UNSHOWN else c
        for c in text
    )


_UNSHOWN = ("Cc", "Cs", "Zl", "Zp")


def describe_bytes(path: str, head: bytes, size: int) -> str:
    """A sentence for a file that is not shown."""
    kind = next((name for magic, name in _MAGIC if head.startswith(magic)), "")
    what = f"not UTF-8 text ({kind})" if kind else "not UTF-8 text (binary)"
    return f"{shown(path)} is {what}, {counted(size, 'byte')}; its content is not shown"


def digest_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(files: Files, real: str) -> str:
    """SHA-256 of a file's bytes, hexadecimal; `ABSENT` where there is nothing."""
    try:
        file = files.open(real, "read")
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    try:
        digest = hashlib.sha256()
        for chunk in chunks_of(file):
            digest.update(chunk)
        return digest.hexdigest()
    finally:
        file.close()


def chunks_of(file: File, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    offset = 0
    while chunk := file.read_at(offset, size):
        yield chunk
        offset += len(chunk)


def read_whole(files: Files, real: str, bytes_max: int, path: str) -> bytes:
    """All bytes of a file.

    Raises:
        ToolRefused: it has more than `bytes_max`.
    """
    file = files.open(real, "read")
    try:
        data = file.read_at(0, bytes_max + 1)
    finally:
        file.close()
    if len(data) > bytes_max:
        raise ToolRefused(
            f"{shown(path)} has more than {bytes_max:,} bytes, too many to change by a tool"
        )
    return data


def decode_text(data: bytes, path: str) -> str:
    """The text of a file; a byte order mark stays in it.

    Raises:
        ToolRefused: it is not UTF-8 text.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolRefused(describe_bytes(path, data[:64], len(data)))
    return text


def lines_in(text: str) -> int:
    """How many lines a text has; a last one without its newline counts."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def counted(count: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def extent(text: str, data: bytes) -> str:
    """`2 lines, 34 bytes`."""
    return f"{counted(lines_in(text), 'line')}, {counted(len(data), 'byte')}"


def take_lines(file: File, first: int, count: int, column: int, columns: int) -> LineRange:
    """`count` lines from line `first`, of each `columns` characters from `column`, both from 1.

    Raises:
        NotText: there are NUL bytes or bad UTF-8 where it looked.
    """
    taking = _Taking(first, count, column, columns)
    scanned = 0
    for chunk in chunks_of(file):
        if scanned >= COUNTED_BYTES_MAX and taking.full:
            return taking.result(counted=False)
        taking.feed(chunk)
        scanned += len(chunk)
    return taking.result(counted=True)


class _Taking:
    """Goes through a file once: skips, takes, then only counts."""

    def __init__(self, first: int, count: int, column: int, columns: int) -> None:
        self._first = first
        self._after = first + count
        self._column = column
        self._columns = columns
        self._number = 1
        self._open = False  # bytes were seen after the last newline
        self._line = bytearray()
        self._line_bytes_max = 4 * (column + columns)
        self._line_cut = False
        self._lines: list[str] = []
        self._cut = False
        self._crlf = False
        self._start = True

    @property
    def full(self) -> bool:
        return self._number >= self._after

    def feed(self, chunk: bytes) -> None:
        taking = self._number < self._after
        if (self._start or taking) and b"\0" in chunk:
            raise NotText
        self._start = False
        at = self._skip(chunk)
        while at < len(chunk) and self._first <= self._number < self._after:
            end = chunk.find(b"\n", at)
            self._take(chunk[at : end if end >= 0 else len(chunk)])
            at = end + 1 if end >= 0 else len(chunk)
            if end >= 0:
                self._finish_line()
        self._number += chunk.count(b"\n", at)
        self._open = not chunk.endswith(b"\n")

    def result(self, *, counted: bool) -> LineRange:
        if self._open and self._first <= self._number < self._after:
            self._finish_line()
            self._number -= 1
        return LineRange(
            lines=tuple(self._lines),
            total=self._number - 1 + (1 if self._open else 0),
            counted=counted,
            cut=self._cut,
            crlf=self._crlf,
        )

    def _skip(self, chunk: bytes) -> int:
        """Go on to the first line wanted; where it begins in the chunk."""
        missing = self._first - self._number
        if missing <= 0:
            return 0
        there = chunk.count(b"\n")
        if there < missing:
            self._number += there
            return len(chunk)
        at = 0
        for _ in range(missing):
            at = chunk.index(b"\n", at) + 1
        self._number = self._first
        return at

    def _take(self, piece: bytes) -> None:
        room = self._line_bytes_max - len(self._line)
        self._line_cut = self._line_cut or len(piece) > room
        self._line += piece[:room]

    def _finish_line(self) -> None:
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(
                bytes(self._line), not self._line_cut
            )
        except UnicodeDecodeError:
            raise NotText from None
        if self._number == 1:
            text = text.removeprefix("\ufeff")
        if text.endswith("\r") and not self._line_cut:
            self._crlf = self._crlf or not self._lines
            text = text[:-1]
        wanted = text[self._column - 1 : self._column - 1 + self._columns]
        self._cut = self._cut or self._line_cut or len(text) > self._column - 1 + self._columns
        self._lines.append(wanted)
        self._line.clear()
        self._line_cut = False
        self._number += 1


def text_blocks(file: File) -> Iterator[tuple[int, str]]:
    """The text in blocks of whole lines, each with the number of its first line.

    A line longer than a block comes in pieces.

    Raises:
        NotText: the first block has NUL bytes or bad UTF-8.
    """
    number, offset, errors = 1, 0, "strict"
    while data := file.read_at(offset, BLOCK_BYTES):
        last = len(data) < BLOCK_BYTES
        size = len(data) if last else data.rfind(b"\n") + 1 or _whole_characters(data)
        data = data[:size]
        if errors == "strict" and b"\0" in data:
            raise NotText
        try:
            yield number, data.decode("utf-8-sig" if offset == 0 else "utf-8", errors)
        except UnicodeDecodeError:
            raise NotText from None
        number += data.count(b"\n")
        offset += size
        errors = "replace"


def _whole_characters(data: bytes) -> int:
    """How many bytes to take so that no character is cut."""
    size = len(data)
    while size > len(data) - 4 and data[size - 1] & 0xC0 == 0x80:
        size -= 1
    return size - 1 if data[size - 1] & 0xC0 == 0xC0 else size
