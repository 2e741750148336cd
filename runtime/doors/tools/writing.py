"""The tools that change the content of a file: `write` and `edit`.

Both work in this order: read what is there, refuse it where it is not what the
preview showed, make the new bytes durable beside it, look again, and put them in
its place in one move.  So a file is always the old one or the new one, and what
somebody else wrote in between is not lost.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.messages.approval import Preview
from tenure.messages.models import ToolSpec
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.tools.change import FileChange, check_preview, put_file
from tenure.runtime.doors.tools.diff import unified_diff
from tenure.runtime.doors.tools.reading import regular_file
from tenure.runtime.doors.tools.replacements import Replacement, replaced
from tenure.runtime.doors.tools.text import (
    counted,
    decode_text,
    digest_of,
    digest_of_bytes,
    extent,
    read_whole,
    shown,
)
from tenure.runtime.doors.tools.tool import (
    ABSENT,
    ToolCall,
    ToolRefused,
    ToolResult,
    parameters_of,
    read_arguments,
    text_result,
)
from tenure.runtime.doors.tools.workspace import Place, Workspace

CONTENT_BYTES_MAX = 16_777_216
"""The largest file that `write` writes and `edit` edits."""


class WriteArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, relative to the workspace root.")]
    content: Annotated[str, Meta(description="The whole new content.")]


class Write:
    """A file's whole content, new or replaced."""

    def __init__(self, files: Files, entropy: Entropy, root: str) -> None:
        self._files = files
        self._entropy = entropy
        self._root = root
        self.spec = ToolSpec(
            name="write",
            label="Write file",
            description=(
                "Write a whole text file. Makes it and its folders where they are missing, "
                "and replaces what is there. Use edit to change a part of a file."
            ),
            parameters=parameters_of(WriteArguments),
            sequential=True,
            previews=True,
            path_arguments=("path",),
        )

    def run(self, call: ToolCall) -> ToolResult:
        asked, workspace, place = self._asked(call)
        data = _encoded(asked.content)
        found = workspace.stat(place)
        before = digest_of(self._files, place.real) if call.expects else ""
        check_preview(call.expects, before, place)
        change = FileChange(place=place, found=found, data=data)
        warning = put_file(workspace, self._entropy.fresh(), change)
        what = f"wrote {shown(place.path)}: {extent(asked.content, data)}"
        details = {
            "path": place.path,
            "created": found is None,
            "digest": digest_of_bytes(data),
        }
        new = " (a new file)" if found is None else ""
        return text_result(what + new + warning, details)

    def preview(self, call: ToolCall) -> Preview:
        asked, workspace, place = self._asked(call)
        data = _encoded(asked.content)
        name = shown(place.path)
        if workspace.stat(place) is None:
            return Preview(
                path=place.path,
                diff=unified_diff(None, asked.content, place.path),
                digest=ABSENT,
                summary=f"new file {name}: {extent(asked.content, data)}",
            )
        summary = f"replaces {name}: {extent(asked.content, data)}"
        try:
            old = read_whole(self._files, place.real, CONTENT_BYTES_MAX, place.path)
            before = decode_text(old, place.path)
        except ToolRefused as not_shown:
            digest = digest_of(self._files, place.real)
            return Preview(
                path=place.path, diff="", digest=digest, summary=f"{summary}. Before: {not_shown}"
            )
        diff = unified_diff(before, asked.content, place.path)
        return Preview(
            path=place.path,
            diff=diff,
            digest=digest_of_bytes(old),
            summary=summary if diff else f"{name} has this content already",
        )

    def _asked(self, call: ToolCall) -> tuple[WriteArguments, Workspace, Place]:
        asked = read_arguments(WriteArguments, call)
        workspace = Workspace(self._files, self._root)
        place = workspace.target(asked.path)
        workspace.refuse_fence(place)
        if asked.path.endswith("/"):
            raise ToolRefused(f"{shown(asked.path)} names a folder; give the path of a file")
        if workspace.stat(place) is not None:
            regular_file(workspace, place)
        return asked, workspace, place


class EditArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, Meta(description="The file, relative to the workspace root.")]
    edits: Annotated[
        tuple[Replacement, ...],
        Meta(
            min_length=1,
            max_length=200,
            description=(
                "The replacements. Each oldText is looked up in the file as it is now, must "
                "occur exactly once, and must not overlap another."
            ),
        ),
    ]


class Edit:
    """Exact replacements in a file."""

    def __init__(self, files: Files, entropy: Entropy, root: str) -> None:
        self._files = files
        self._entropy = entropy
        self._root = root
        self.spec = ToolSpec(
            name="edit",
            label="Edit file",
            description=(
                "Replace exact pieces of a text file. Each oldText must be in the file "
                "exactly once, white space included; give enough lines around it."
            ),
            parameters=parameters_of(EditArguments),
            sequential=True,
            previews=True,
            path_arguments=("path",),
        )

    def run(self, call: ToolCall) -> ToolResult:
        asked, workspace, place = self._asked(call)
        found = regular_file(workspace, place)
        data = read_whole(self._files, place.real, CONTENT_BYTES_MAX, place.path)
        check_preview(call.expects, digest_of_bytes(data), place)
        before = decode_text(data, place.path)
        after = _encoded(replaced(before, asked.edits, place.path))
        change = FileChange(place=place, found=found, data=after)
        warning = put_file(workspace, self._entropy.fresh(), change)
        count = len(asked.edits)
        what = f"edited {shown(place.path)}: {counted(count, 'replacement')}"
        details = {"path": place.path, "created": False, "digest": digest_of_bytes(after)}
        return text_result(what + warning, details)

    def preview(self, call: ToolCall) -> Preview:
        asked, workspace, place = self._asked(call)
        regular_file(workspace, place)
        data = read_whole(self._files, place.real, CONTENT_BYTES_MAX, place.path)
        before = decode_text(data, place.path)
        after = replaced(before, asked.edits, place.path)
        count = len(asked.edits)
        return Preview(
            path=place.path,
            diff=unified_diff(before, after, place.path),
            digest=digest_of_bytes(data),
            summary=f"edits {shown(place.path)}: {counted(count, 'replacement')}",
        )

    def _asked(self, call: ToolCall) -> tuple[EditArguments, Workspace, Place]:
        asked = read_arguments(EditArguments, call)
        workspace = Workspace(self._files, self._root)
        place = workspace.target(asked.path)
        workspace.refuse_fence(place)
        return asked, workspace, place


def _encoded(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise ToolRefused(
            "the content has half of a surrogate pair, which is no character; send it whole"
        ) from None
    if len(data) > CONTENT_BYTES_MAX:
        raise ToolRefused(
            f"the content has {len(data):,} bytes, more than {CONTENT_BYTES_MAX:,}; "
            "write it in several files"
        )
    return data
