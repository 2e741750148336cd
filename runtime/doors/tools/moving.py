"""The tools that move names: `rename` and `delete`.

Neither follows a link: they move the link itself.  Neither destroys anything:
`rename` refuses a name that is taken, and `delete` moves to the trash.
"""

from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.messages.approval import Preview
from tenure.messages.models import ToolSpec
from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.entropy import Entropy
from tenure.runtime.doors.files import Files, FileStat
from tenure.runtime.doors.staged import folder_of
from tenure.runtime.doors.tools.change import check_preview, make_folders, remove_folders
from tenure.runtime.doors.tools.diff import unified_diff
from tenure.runtime.doors.tools.reading import missing
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
    ToolCall,
    ToolRefused,
    ToolResult,
    parameters_of,
    read_arguments,
    text_result,
)
from tenure.runtime.doors.tools.workspace import CLOSED_NAME, Place, Workspace

SHOWN_BYTES_MAX = 1_048_576
"""A larger file is not shown before it is deleted, only described."""


class RenameArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    path: Annotated[str, Meta(description="What to rename, relative to the workspace root.")]
    new_path: Annotated[str, Meta(description="Its whole new path, relative to the root.")]


class Rename:
    """Another name or folder for a file, folder or link."""

    def __init__(self, files: Files, root: str) -> None:
        self._files = files
        self._root = root
        self.spec = ToolSpec(
            name="rename",
            label="Rename",
            description=(
                "Rename or move a file or folder. Makes missing folders; refuses a new path "
                "that exists."
            ),
            parameters=parameters_of(RenameArguments),
            sequential=True,
            previews=True,
            path_arguments=("path", "newPath"),
            follows_links=False,
        )

    def run(self, call: ToolCall) -> ToolResult:
        workspace, source, target, found = self._asked(call)
        if call.expects:
            check_preview(call.expects, digest_of_name(self._files, source, found), source)
        made = make_folders(workspace, target)
        try:
            self._move(workspace, source, target, found)
        except BaseException:
            remove_folders(self._files, made)
            raise
        warning = sync_names(self._files, target.real, source.real)
        return text_result(
            f"renamed {shown(source.path)} to {shown(target.path)}{warning}",
            {"path": source.path, "new_path": target.path},
        )

    def preview(self, call: ToolCall) -> Preview:
        _, source, target, found = self._asked(call)
        return Preview(
            path=source.path,
            diff="",
            digest=digest_of_name(self._files, source, found),
            summary=f"renames {shown(source.path)} to {shown(target.path)}",
        )

    def _asked(self, call: ToolCall) -> tuple[Workspace, Place, Place, FileStat]:
        asked = read_arguments(RenameArguments, call)
        workspace = Workspace(self._files, self._root)
        source, target = workspace.entry(asked.path), workspace.entry(asked.new_path)
        found = _existing(workspace, source)
        workspace.refuse_fence(target)
        if workspace.stat(target) is not None:
            raise _taken(target)
        if target.real.startswith(source.real + "/"):
            raise ToolRefused(f"{shown(source.path)} cannot be moved into itself")
        if found.kind == "folder" and workspace.holds_hidden(source):
            raise ToolRefused(
                f"{shown(source.path)} holds names that are hidden from tools; "
                "rename its files one by one"
            )
        return workspace, source, target, found

    def _move(self, workspace: Workspace, source: Place, target: Place, found: FileStat) -> None:
        confirm_unchanged(workspace, source, found)
        workspace.confirm(target)
        if found.kind == "folder":
            # A folder never takes the place of a file, or of a folder with something in it.
            self._files.rename(source.real, target.real)
            return
        # A file takes the place of whatever is there, so the name is taken first,
        # by a call that fails where somebody was faster.
        try:
            self._files.open(target.real, "create").close()
        except FileExistsError:
            raise _taken(target) from None
        try:
            self._files.rename(source.real, target.real)
        except BaseException:
            with suppress(OSError):
                self._files.remove(target.real)
            raise


class DeleteArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[
        str, Meta(description="The file, or empty folder, relative to the workspace root.")
    ]


class Delete:
    """Moves a file, a link or an empty folder to the trash."""

    def __init__(self, files: Files, entropy: Entropy, root: str) -> None:
        self._files = files
        self._entropy = entropy
        self._root = root
        self.spec = ToolSpec(
            name="delete",
            label="Delete",
            description=(
                "Delete a file or an empty folder. It is kept in the workspace's trash, from "
                "where the user can take it back."
            ),
            parameters=parameters_of(DeleteArguments),
            sequential=True,
            previews=True,
            path_arguments=("path",),
            follows_links=False,
        )

    def run(self, call: ToolCall) -> ToolResult:
        workspace, place, found = self._asked(call)
        if call.expects:
            check_preview(call.expects, digest_of_name(self._files, place, found), place)
        # A folder of its own makes the name unique and keeps the path readable.
        kept = f"{CLOSED_NAME}/trash/{self._entropy.fresh()}/{place.path}"
        trash = f"{workspace.root}/{kept}"
        make_folders_durably(self._files, folder_of(trash))
        confirm_unchanged(workspace, place, found)
        self._files.rename(place.real, trash)
        warning = sync_names(self._files, trash, place.real)
        return text_result(
            f"deleted {shown(place.path)}; it is kept as {shown(kept)}{warning}",
            {"path": place.path, "kept": kept},
        )

    def preview(self, call: ToolCall) -> Preview:
        _, place, found = self._asked(call)
        name = shown(place.path)
        kept = f"It is kept in {CLOSED_NAME}/trash/"
        if found.kind != "file":
            return Preview(
                path=place.path,
                diff="",
                digest=digest_of_name(self._files, place, found),
                summary=f"deletes {name} ({_KINDS[found.kind]}). {kept}",
            )
        try:
            data = read_whole(self._files, place.real, SHOWN_BYTES_MAX, place.path)
            text = decode_text(data, place.path)
        except ToolRefused:
            return Preview(
                path=place.path,
                diff="",
                digest=digest_of(self._files, place.real),
                summary=f"deletes {name}: {counted(found.size, 'byte')}. {kept}",
            )
        return Preview(
            path=place.path,
            diff=unified_diff(text, None, place.path),
            digest=digest_of_bytes(data),
            summary=f"deletes {name}: {extent(text, data)}. {kept}",
        )

    def _asked(self, call: ToolCall) -> tuple[Workspace, Place, FileStat]:
        asked = read_arguments(DeleteArguments, call)
        workspace = Workspace(self._files, self._root)
        place = workspace.entry(asked.path)
        found = _existing(workspace, place)
        if found.kind == "folder" and self._files.list(place.real):
            raise ToolRefused(
                f"{shown(place.path)} is a folder with something in it; delete its files first"
            )
        return workspace, place, found


_KINDS = {"folder": "an empty folder", "link": "a link; what it leads to stays", "other": "no file"}


def _existing(workspace: Workspace, place: Place) -> FileStat:
    """What is to be moved."""
    if place.path == ".":
        raise ToolRefused("the workspace root itself cannot be renamed or deleted")
    workspace.refuse_fence(place)
    found = workspace.stat(place)
    if found is None:
        raise missing(workspace, place)
    return found


def _taken(target: Place) -> ToolRefused:
    return ToolRefused(f"{shown(target.path)} exists; nothing was renamed. Choose another path")


def digest_of_name(files: Files, place: Place, found: FileStat) -> str:
    """The digest of a file; of what has no content, what it is."""
    return digest_of(files, place.real) if found.kind == "file" else found.kind


def confirm_unchanged(workspace: Workspace, place: Place, found: FileStat) -> None:
    """The last look before a move.

    Raises:
        ToolRefused: the place moved, or something else is there by now.
    """
    workspace.confirm(place)
    now = workspace.stat(place)
    # Of a folder only its identity counts: what is in it may go on changing.
    same = now is not None and (now.device, now.inode) == (found.device, found.inode)
    if not same or (found.kind != "folder" and now != found):
        raise ToolRefused(
            f"{shown(place.path)} changed while the tool ran, nothing was moved. Look at it again"
        )


def sync_names(files: Files, new: str, old: str) -> str:
    """Make a move durable, the new name first, so that one of the two always is.

    Returns a warning for the result, mostly empty.
    """
    try:
        files.sync_folder(folder_of(new))
        files.sync_folder(folder_of(old))
    except OSError as refused:
        return (
            f". The disk did not confirm it ({refused.strerror}): "
            "a power loss could bring the old name back"
        )
    return ""
