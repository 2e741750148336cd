"""Exact replacements in a text, whatever its line ends are.

A model writes line feeds; the file may have CR LF.  The pieces are looked up
with all line ends taken as line feeds, and put back with those of the file, and
every byte outside of them stays as it was.
"""

import bisect
import itertools
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.runtime.doors.tools.text import shown
from tenure.runtime.doors.tools.tool import ToolRefused

LINES_NAMED_MAX = 10


class Replacement(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    old_text: Annotated[str, Meta(description="The exact text to replace, white space included.")]
    new_text: Annotated[str, Meta(description="What to put in its place.")]


class _Piece(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Where one replacement goes, in the text with line feeds."""

    start: int
    end: int
    number: int
    new: str


def replaced(text: str, edits: tuple[Replacement, ...], path: str) -> str:
    """The text with all replacements made; a newline at its end is kept.

    Raises:
        ToolRefused: one is not there, not unique, changes nothing, or overlaps
            another; it says which, counted from 1.
    """
    plain = text.replace("\r\n", "\n")
    pieces = sorted(_piece(plain, edit, number, path) for number, edit in enumerate(edits, start=1))
    for earlier, later in itertools.pairwise(pieces):
        if later.start < earlier.end:
            first, second = sorted((earlier.number, later.number))
            raise ToolRefused(
                f"edits {first} and {second} overlap in {shown(path)}; make them one edit"
            )
    changed = _put(text, plain, pieces)
    if text.endswith("\n") and changed and not changed.endswith("\n"):
        changed += "\r\n" if text.endswith("\r\n") else "\n"
    if changed == text:
        raise ToolRefused(f"the edits change nothing in {shown(path)}")
    return changed


def _piece(plain: str, edit: Replacement, number: int, path: str) -> _Piece:
    old = edit.old_text.replace("\r\n", "\n")
    new = edit.new_text.replace("\r\n", "\n")
    which = f"oldText of edit {number}"
    if not old:
        raise ToolRefused(f"{which} is empty; give the text to replace, or use write")
    start = plain.find(old)
    if start < 0:
        raise ToolRefused(
            f"{which} is not in {shown(path)}{_near(plain, old)}; nothing was changed. "
            "Read the file and copy the text exactly, white space included"
        )
    if plain.find(old, start + 1) >= 0:
        raise ToolRefused(
            f"{which} is in {shown(path)} more than once, at lines {_lines_of(plain, old)}; "
            "nothing was changed. Give more of the lines around it"
        )
    return _Piece(start=start, end=start + len(old), number=number, new=new)


def _put(text: str, plain: str, pieces: list[_Piece]) -> str:
    """The original text, byte for byte, with the pieces exchanged."""
    shifts = _shifts(text) if len(text) != len(plain) else []
    newline = "\r\n" if 2 * len(shifts) > plain.count("\n") else "\n"
    parts: list[str] = []
    at = 0
    for piece in pieces:
        start = piece.start + bisect.bisect_left(shifts, piece.start)
        end = piece.end + bisect.bisect_left(shifts, piece.end)
        parts += (text[at:start], piece.new.replace("\n", newline))
        at = end
    return "".join((*parts, text[at:]))


def _shifts(text: str) -> list[int]:
    """Where, in the text with line feeds, a CR LF became one character; ascending."""
    found: list[int] = []
    at = text.find("\r\n")
    while at >= 0:
        found.append(at - len(found))
        at = text.find("\r\n", at + 2)
    return found


def _lines_of(plain: str, old: str) -> str:
    lines: list[str] = []
    at = plain.find(old)
    while at >= 0 and len(lines) < LINES_NAMED_MAX:
        lines.append(str(plain.count("\n", 0, at) + 1))
        at = plain.find(old, at + 1)
    return ", ".join(lines) + (" and more" if at >= 0 else "")


def _near(plain: str, old: str) -> str:
    """Where the text is, white space aside: the most common slip."""
    wanted = [" ".join(line.split()) for line in old.strip().split("\n")]
    lines = [" ".join(line.split()) for line in plain.split("\n")]
    for index in range(len(lines) - len(wanted) + 1):
        if wanted != [""] and lines[index : index + len(wanted)] == wanted:
            return f" (line {index + 1} differs from it only in white space)"
    return ""
