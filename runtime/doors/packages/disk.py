"""Folders written, moved and deleted durably, over the `Files` port.

These functions block: they run in a worker.
"""

from contextlib import suppress

from tenure.runtime.doors.claims import make_folders_durably
from tenure.runtime.doors.files import Files
from tenure.runtime.doors.packages.tree import Tree

READ_BYTES_MAX = 64 * 1_048_576
FILE_PERMISSIONS = 0o644


def write_tree(files: Files, top: str, tree: Tree, last: tuple[str, ...]) -> None:
    """Write files into a new folder, those of `last` after all others, everything synced.

    Raises:
        OSError: some of it is written, and nothing of `last` unless all before it is durable.
    """
    files.make_folder(top)
    folders = {""}
    for path in sorted(
        tree, key=lambda each: (each in last, last.index(each) if each in last else 0, each)
    ):
        if path in last:
            for folder in sorted(folders):
                files.sync_folder(f"{top}/{folder}" if folder else top)
        _make_above(files, top, path, folders)
        write_file(files, f"{top}/{path}", tree[path])
    files.sync_folder(top)


def _make_above(files: Files, top: str, path: str, made: set[str]) -> None:
    at = ""
    for part in path.split("/")[:-1]:
        at = f"{at}/{part}" if at else part
        if at not in made:
            files.make_folder(f"{top}/{at}")
            made.add(at)


def write_file(files: Files, path: str, data: bytes) -> None:
    """A new file, its bytes durable."""
    file = files.open(path, "create", permissions=FILE_PERMISSIONS)
    try:
        written = 0
        while written < len(data):
            written += file.append(data[written:])
        file.sync()
    finally:
        file.close()


def read_file(files: Files, path: str, bytes_max: int = READ_BYTES_MAX) -> bytes | None:
    """The bytes of a plain file, links not followed; None where there is none."""
    try:
        if files.lstat(path).kind != "file":
            return None
        file = files.open(path, "read")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = file.read_at(0, bytes_max + 1)
    finally:
        file.close()
    return data if len(data) <= bytes_max else None


def move_folder(files: Files, source: str, target: str) -> None:
    """Rename a folder, durably.  The folder above the target is made where it is missing."""
    make_folders_durably(files, above(target))
    files.rename(source, target)
    files.sync_folder(above(target))
    if above(source) != above(target):
        files.sync_folder(above(source))


def delete_tree(files: Files, top: str, first: tuple[str, ...] = ()) -> None:
    """Delete a folder and all in it, links not followed; `first` goes before the rest.

    Raises:
        OSError: some of it is still there.
    """
    for name in first:
        with suppress(FileNotFoundError):
            files.remove(f"{top}/{name}")
    folders = [top]
    for folder in folders:
        for name, kind in files.list(folder):
            if kind == "folder":
                folders.append(f"{folder}/{name}")
            else:
                files.remove(f"{folder}/{name}")
    for folder in reversed(folders):
        files.remove_folder(folder)


def names_in(files: Files, folder: str) -> tuple[tuple[str, str], ...]:
    """The names in a folder with their kinds; none where there is no such folder."""
    try:
        return files.list(folder)
    except (FileNotFoundError, NotADirectoryError):
        return ()


def is_there(files: Files, path: str) -> bool:
    try:
        files.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def above(path: str) -> str:
    return path.rpartition("/")[0] or "/"
