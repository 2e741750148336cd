"""Conformance of the files port: `tenure.runtime.doors.files.Files`."""

import errno
from collections.abc import Callable
from dataclasses import dataclass

from tenure.runtime.doors.files import Files
from tenure.runtime.testing.conformance.checks import Kit, refuses, same


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesUnderTest:
    """A file system, and an empty folder on it."""

    files: Files
    root: str
    """An absolute path with no link in it."""
    link: Callable[[str, str], None]
    """Makes a symbolic link: its path, and where it leads to."""

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, data: bytes) -> str:
        file = self.files.open(self.path(name), "create")
        file.append(data)
        file.close()
        return self.path(name)

    def read(self, path: str) -> bytes:
        file = self.files.open(path, "read")
        data = file.read_at(0, 1_000_000)
        file.close()
        return data


FILES: Kit[FilesUnderTest] = Kit("files")
_check = FILES.check


# --- open files -----------------------------------------------------------------------------


@_check
def append_goes_to_the_end_and_read_at_reads_from_an_offset(at: FilesUnderTest) -> None:
    """There is no shared position: every read says where it begins."""
    file = at.files.open(at.path("a"), "create")
    same("bytes that append says it wrote", file.append(b"one,"), 4)
    same("bytes that append says it wrote", file.append(b"two"), 3)
    same("the whole file", file.read_at(0, 100), b"one,two")
    same("2 bytes from offset 4", file.read_at(4, 2), b"tw")
    same("bytes at the end of the file", file.read_at(7, 10), b"")
    file.close()


@_check
def two_openings_of_a_file_see_each_other(at: FilesUnderTest) -> None:
    """What one process wrote, every process sees at once."""
    path = at.write("a", b"one")
    writer, reader = at.files.open(path, "write"), at.files.open(path, "read")
    writer.append(b",two")
    same("what the other opening reads", reader.read_at(0, 100), b"one,two")
    same("the size that the other opening sees", reader.stat().size, 7)
    writer.close()
    reader.close()


@_check
def truncate_cuts_and_the_next_append_starts_there(at: FilesUnderTest) -> None:
    """A torn write is cut back, and the file goes on from the cut."""
    file = at.files.open(at.path("a"), "create")
    file.append(b"whole,torn")
    file.truncate(6)
    file.append(b"next")
    file.datasync()
    file.sync()
    same("the file after truncate(6) and an append", file.read_at(0, 100), b"whole,next")
    file.close()


@_check
def a_file_open_for_reading_refuses_to_be_written(at: FilesUnderTest) -> None:
    """Reads never write."""
    file = at.files.open(at.write("a", b"x"), "read")
    refuses("append to a file opened for reading", lambda: file.append(b"y"), errno.EBADF)
    refuses("truncate of a file opened for reading", lambda: file.truncate(0), errno.EINVAL)
    file.close()


@_check
def a_closed_file_refuses_every_call_but_another_close(at: FilesUnderTest) -> None:
    """A descriptor that was closed must not reach another file."""
    file = at.files.open(at.write("a", b"x"), "write")
    file.close()
    file.close()
    refuses("read_at of a closed file", lambda: file.read_at(0, 1), errno.EBADF)
    refuses("append to a closed file", lambda: file.append(b"y"), errno.EBADF)
    refuses("datasync of a closed file", file.datasync, errno.EBADF)
    refuses("sync of a closed file", file.sync, errno.EBADF)
    refuses("stat of a closed file", file.stat, errno.EBADF)


@_check
def a_removed_file_stays_readable_where_it_is_open(at: FilesUnderTest) -> None:
    """Who has it open goes on reading, and can see that its name is gone."""
    path = at.write("a", b"still here")
    file = at.files.open(path, "read")
    at.files.remove(path)
    same("what the open file holds", file.read_at(0, 100), b"still here")
    same("links of a removed file", file.stat().links, 0)
    file.close()


# --- opening --------------------------------------------------------------------------------


@_check
def create_refuses_what_exists_and_a_link_that_leads_nowhere(at: FilesUnderTest) -> None:
    """A new file is nobody's old one, and never made through a link."""
    path = at.write("a", b"mine")
    at.link(at.path("dangling"), "nowhere")
    create = at.files.open
    refuses("create over a file", lambda: create(path, "create"), errno.EEXIST)
    refuses(
        "create over a dangling link", lambda: create(at.path("dangling"), "create"), errno.EEXIST
    )
    same("the file that was there", at.read(path), b"mine")


@_check
def open_says_what_is_wrong_with_a_path(at: FilesUnderTest) -> None:
    """The error numbers are those of the operating system."""
    at.files.make_folder(at.path("folder"))
    file = at.write("file", b"")
    opens = at.files.open
    none, folder, long = at.path("none"), at.path("folder"), at.path("n" * 256)
    refuses("read of a missing file", lambda: opens(none, "read"), errno.ENOENT)
    refuses("write of a missing file", lambda: opens(none, "write"), errno.ENOENT)
    refuses("create in a missing folder", lambda: opens(f"{none}/a", "create"), errno.ENOENT)
    refuses("create below a file", lambda: opens(f"{file}/a", "create"), errno.ENOTDIR)
    refuses("read of a folder", lambda: opens(folder, "read"), errno.EISDIR)
    refuses("write of a folder", lambda: opens(folder, "write"), errno.EISDIR)
    refuses("create with a name too long", lambda: opens(long, "create"), errno.ENAMETOOLONG)


@_check
def open_follows_links_of_files_and_of_folders(at: FilesUnderTest) -> None:
    """A link is as good as what it leads to."""
    at.files.make_folder(at.path("folder"))
    at.write("folder/a", b"there")
    at.link(at.path("short"), "folder")
    at.link(at.path("shorter"), at.path("short/a"))
    same("a file through a linked folder", at.read(at.path("short/a")), b"there")
    same("a file through two links", at.read(at.path("shorter")), b"there")
    same("a file through `..`", at.read(at.path("folder/../shorter")), b"there")


@_check
def links_in_a_circle_are_refused(at: FilesUnderTest) -> None:
    """No path is followed for ever."""
    at.link(at.path("a"), "b")
    at.link(at.path("b"), "a")
    refuses("stat of a circle", lambda: at.files.stat(at.path("a")), errno.ELOOP)
    refuses("open in a circle", lambda: at.files.open(at.path("a/x"), "read"), errno.ELOOP)


@_check
def permissions_of_a_new_file_are_as_asked(at: FilesUnderTest) -> None:
    """Traces and credentials are for their user alone."""
    at.files.open(at.path("secret"), "create", permissions=0o600).close()
    same("permission bits", oct(at.files.stat(at.path("secret")).mode), oct(0o600))


# --- names ----------------------------------------------------------------------------------


@_check
def stat_follows_a_link_and_lstat_does_not(at: FilesUnderTest) -> None:
    """The two tell a link from what it leads to."""
    path = at.write("a", b"12345")
    at.link(at.path("link"), "a")
    at.link(at.path("dangling"), "nowhere")
    files = at.files
    same("stat of the link", files.stat(at.path("link")), files.stat(path))
    same("kind of the file", files.stat(path).kind, "file")
    same("size of the file", files.stat(path).size, 5)
    same("kind of the link itself", files.lstat(at.path("link")).kind, "link")
    same("kind of the root", files.stat(at.root).kind, "folder")
    refuses("stat of a dangling link", lambda: files.stat(at.path("dangling")), errno.ENOENT)
    refuses("lstat of nothing", lambda: files.lstat(at.path("none")), errno.ENOENT)


@_check
def list_gives_names_in_order_with_their_kinds(at: FilesUnderTest) -> None:
    """Sorted by name; links are not followed."""
    file = at.write("b", b"")
    at.files.make_folder(at.path("c"))
    at.link(at.path("a"), "c")
    expected = (("a", "link"), ("b", "file"), ("c", "folder"))
    same("the names of the root", at.files.list(at.root), expected)
    refuses("list of a file", lambda: at.files.list(file), errno.ENOTDIR)
    refuses("list of nothing", lambda: at.files.list(at.path("none")), errno.ENOENT)


@_check
def make_folder_needs_a_parent_and_a_free_name(at: FilesUnderTest) -> None:
    """One folder at a time, and never over what is there."""
    path = at.write("a", b"")
    make = at.files.make_folder
    refuses("a folder over a file", lambda: make(path), errno.EEXIST)
    refuses("a folder in no folder", lambda: make(at.path("x/y")), errno.ENOENT)
    refuses("a folder over a folder", lambda: make(at.root), errno.EEXIST)


@_check
def rename_replaces_a_file_and_leaves_its_old_readers_alone(at: FilesUnderTest) -> None:
    """Whoever opened the old file has the old file, whole."""
    old, new = at.write("old", b"old"), at.write("new", b"new")
    reader = at.files.open(old, "read")
    before, renamed = at.files.stat(old), at.files.stat(new)
    at.files.rename(new, old)
    same("the file under its new name", at.read(old), b"new")
    same("what the old reader reads", reader.read_at(0, 10), b"old")
    same("inode under the new name", at.files.stat(old).inode, renamed.inode)
    same("old and new inode are the same", renamed.inode == before.inode, False)
    refuses("stat of the old name", lambda: at.files.stat(new), errno.ENOENT)
    reader.close()


@_check
def rename_moves_a_folder_with_what_is_in_it(at: FilesUnderTest) -> None:
    """Also over an empty folder."""
    at.files.make_folder(at.path("a"))
    at.files.make_folder(at.path("b"))
    at.write("a/file", b"inside")
    at.files.rename(at.path("a"), at.path("b"))
    same("the file in the moved folder", at.read(at.path("b/file")), b"inside")
    same("the names of the root", at.files.list(at.root), (("b", "folder"),))


@_check
def rename_refuses_what_it_cannot_replace(at: FilesUnderTest) -> None:
    """A file is no folder, and a full folder is not replaced."""
    rename = at.files.rename
    file = at.write("file", b"")
    empty, full = at.path("empty"), at.path("full")
    for folder in (empty, full):
        at.files.make_folder(folder)
    at.write("full/file", b"")
    refuses("a file over a folder", lambda: rename(file, empty), errno.EISDIR)
    refuses("a folder over a file", lambda: rename(empty, file), errno.ENOTDIR)
    refuses("a folder over a full one", lambda: rename(empty, full), errno.ENOTEMPTY)
    refuses("a folder into itself", lambda: rename(full, f"{full}/in"), errno.EINVAL)
    refuses("nothing over a file", lambda: rename(at.path("none"), file), errno.ENOENT)
    rename(file, file)
    same("a file renamed to itself", at.files.stat(file).kind, "file")


@_check
def remove_takes_files_and_links_and_remove_folder_empty_folders(at: FilesUnderTest) -> None:
    """Neither takes what the other is for, and a link goes without what it leads to."""
    files = at.files
    path, folder, link = at.write("a", b"kept"), at.path("folder"), at.path("link")
    files.make_folder(folder)
    at.write("folder/b", b"")
    at.link(link, "a")
    files.remove(link)
    same("what the removed link led to", at.read(path), b"kept")
    refuses("remove of nothing", lambda: files.remove(link), errno.ENOENT)
    refuses("remove of a folder", lambda: files.remove(folder), errno.EISDIR)
    refuses("remove_folder of a full one", lambda: files.remove_folder(folder), errno.ENOTEMPTY)
    refuses("remove_folder of a file", lambda: files.remove_folder(path), errno.ENOTDIR)
    files.remove(f"{folder}/b")
    files.remove_folder(folder)
    same("the names of the root", files.list(at.root), (("a", "file"),))


@_check
def sync_folder_takes_folders_only(at: FilesUnderTest) -> None:
    """A new name is durable only once its folder is synced, so a wrong path must be told."""
    path = at.write("a", b"")
    at.files.sync_folder(at.root)
    refuses("sync_folder of a file", lambda: at.files.sync_folder(path), errno.ENOTDIR)
    refuses("sync_folder of nothing", lambda: at.files.sync_folder(at.path("x")), errno.ENOENT)


@_check
def real_path_follows_every_link_and_keeps_what_does_not_exist(at: FilesUnderTest) -> None:
    """Two paths of one file have one real path."""
    at.files.make_folder(at.path("folder"))
    at.write("folder/a", b"")
    at.link(at.path("short"), "folder")
    at.link(at.path("file"), at.path("short/a"))
    at.link(at.path("dangling"), "short/none")
    real = at.files.real_path
    same("a link to a file", real(at.path("file")), at.path("folder/a"))
    same("a missing name", real(at.path("short/x/../y/z")), at.path("folder/y/z"))
    same("a dangling link", real(at.path("dangling")), at.path("folder/none"))
    same("the root of all", real("/"), "/")
