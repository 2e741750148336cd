"""Reading a folder into a tree: what is in it, and nothing that a link leads to.

These functions block: they run in a worker.
"""

from tenure.runtime.doors.files import Files, FileStat, Kind
from tenure.runtime.doors.packages.names import shown
from tenure.runtime.doors.packages.tree import Limits, Rejected, Tree, TreeBuilder

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
"""Folders of this name at the top are no part of a package."""


def read_folder(files: Files, top: str, limits: Limits) -> Tree:
    """The files of a folder.

    Raises:
        Rejected: it holds links, pipes or devices, is over a limit, or changed meanwhile.
        OSError: it cannot be read.
    """
    builder = TreeBuilder(limits)
    top = top.rstrip("/") or "/"
    wanted: list[tuple[str, str, FileStat]] = []
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        for name, kind in files.list(f"{top}/{inside}" if inside else top):
            path = f"{inside}/{name}" if inside else name
            if not inside and name in VERSION_CONTROL and kind == "folder":
                continue
            if kind == "folder":
                builder.folder(path)
                waiting.append(path)
            elif kind == "file":
                checked = builder.file(path)
                if checked is not None:
                    wanted.append((checked, path, files.lstat(f"{top}/{path}")))
            else:
                _refuse(builder, path, kind)
    builder.check()
    for checked, path, before in wanted:
        builder.fill(checked, _read(files, f"{top}/{path}", path, before, builder.left_bytes))
    return builder.done()


def _refuse(builder: TreeBuilder, path: str, kind: Kind) -> None:
    what = "a link" if kind == "link" else "a pipe, a socket or a device"
    builder.refuse(f"{shown(path)}: {what}; packages hold files and folders only")


def _read(files: Files, path: str, name: str, before: FileStat, left_bytes: int) -> bytes:
    """The bytes of the file that was listed, and of no other that took its place."""
    if before.size > left_bytes:
        raise Rejected(f"{shown(name)}: larger than a package may be")
    file = files.open(path, "read")
    try:
        opened = file.stat()
        if (opened.device, opened.inode, opened.kind) != (before.device, before.inode, "file"):
            raise Rejected(f"{shown(name)}: it changed while it was read; try again")
        data = file.read_at(0, before.size + 1)
        if len(data) != before.size or file.stat() != before:
            raise Rejected(f"{shown(name)}: it changed while it was read; try again")
        return data
    finally:
        file.close()
