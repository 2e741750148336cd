"""Reading .zip, .tar.gz and .tgz into a tree: every entry checked, nothing written.

An archive says much about itself that need not be true.  Sizes are counted as the
bytes come, links and devices are refused by their kind, and an archive that ends
early is refused, not shortened.
"""

import io
import stat
import tarfile
import zipfile
import zlib
from typing import IO

from tenure.runtime.doors.packages.names import shown
from tenure.runtime.doors.packages.tree import Limits, Rejected, Tree, TreeBuilder

CHUNK_BYTES = 65_536
TAR_BLOCK_BYTES = 512
TAR_OVERHEAD_BYTES_MAX = 32 * 1_048_576
"""Headers and padding beside the files of a tar archive."""
_ENCRYPTED = 0x1


def read_archive(data: bytes, limits: Limits) -> Tree:
    """The files of an archive, which kind it is told by its first bytes.

    Raises:
        Rejected: it is no archive, damaged, over a limit, or holds what may not be.
    """
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _read_zip(data, limits)
    if data[:2] == b"\x1f\x8b":
        return _read_tar(_inflated(data, limits), limits)
    raise Rejected("it is no .zip, .tar.gz or .tgz archive")


# --- zip ---------------------------------------------------------------------------------


def _read_zip(data: bytes, limits: Limits) -> Tree:
    builder = TreeBuilder(limits)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > limits.entries:
                raise Rejected(f"more than {limits.entries:,} entries")
            announced = [(info, _announce(builder, info)) for info in infos]
            builder.check()
            _check_declared(infos, len(data), limits)
            for info, path in announced:
                if path is not None:
                    with archive.open(info) as member:
                        content = _bounded(member, builder.left_bytes, path)
                    if len(content) != info.file_size:
                        raise Rejected(f"{shown(path)}: it has another size than it says")
                    builder.fill(path, content)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as damaged:
        raise Rejected(f"the archive is damaged: {damaged}") from None
    except (RuntimeError, OSError, ValueError) as damaged:
        raise Rejected(f"the archive cannot be read: {damaged}") from None
    return builder.done()


def _announce(builder: TreeBuilder, info: zipfile.ZipInfo) -> str | None:
    # `filename` is cut at a NUL and has its separators changed; the original says more.
    name = info.orig_filename
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & _ENCRYPTED:
        builder.refuse(f"{shown(name)}: encrypted")
        return None
    if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # guard: INSTALL-7
        builder.refuse(f"{shown(name)}: {_kind_of(kind)}; packages hold files and folders only")
        return None
    if name.endswith(("/", "\\")) or stat.S_ISDIR(kind):
        if info.file_size:
            builder.refuse(f"{shown(name)}: a folder with content")
        builder.folder(name)
        return None
    return builder.file(name)


def _check_declared(infos: list[zipfile.ZipInfo], archive_bytes: int, limits: Limits) -> None:
    """What the archive says of itself is enough to refuse it; it is never enough to trust it."""
    total = sum(info.file_size for info in infos)
    if total > limits.total_bytes:
        raise Rejected(f"the files have more than {limits.total_bytes:,} bytes")
    if sum(info.compress_size for info in infos) > archive_bytes:
        raise Rejected("its entries overlap: they say that they have more bytes than the archive")
    _check_ratio(total, archive_bytes, limits)


def _check_ratio(total: int, archive_bytes: int, limits: Limits) -> None:
    if total > limits.ratio_free_bytes and total > limits.ratio * archive_bytes:
        raise Rejected(f"it would grow to more than {limits.ratio} times its size")


def _bounded(member: IO[bytes], left_bytes: int, path: str) -> bytes:
    parts: list[bytes] = []
    read = 0
    while part := member.read(CHUNK_BYTES):
        read += len(part)
        if read > left_bytes:
            raise Rejected(f"{shown(path)}: larger than a package may be")
        parts.append(part)
    return b"".join(parts)


# --- tar ---------------------------------------------------------------------------------


def _inflated(data: bytes, limits: Limits) -> bytes:
    """The tar archive inside, one gzip member after another; never more than may be."""
    bytes_max = limits.total_bytes + TAR_OVERHEAD_BYTES_MAX
    parts: list[bytes] = []
    size, left = 0, data
    while left:
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            try:
                part = stream.decompress(left, CHUNK_BYTES)
            except zlib.error as damaged:
                raise Rejected(f"the archive is damaged: {damaged}") from None
            size += len(part)
            if size > bytes_max:
                raise Rejected(f"the files have more than {limits.total_bytes:,} bytes")
            _check_ratio(size, len(data), limits)
            parts.append(part)
            left = stream.unconsumed_tail
            if not part and not left and not stream.eof:
                raise Rejected("the archive is cut off")
        left = stream.unused_data
        if not left.strip(b"\0"):
            break  # padding behind the archive
    return b"".join(parts)


def _read_tar(raw: bytes, limits: Limits) -> Tree:
    builder = TreeBuilder(limits)
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            while (member := archive.next()) is not None:
                path = _announce_member(builder, member)
                if path is not None:
                    _fill_member(builder, archive, member, path)
            end = archive.offset
    except (tarfile.TarError, EOFError, ValueError, OSError, RecursionError) as damaged:
        raise Rejected(f"the archive is damaged: {damaged}") from None
    # A header that cannot be read ends the listing as an end mark does.
    mark = raw[end : end + TAR_BLOCK_BYTES]
    if len(mark) < TAR_BLOCK_BYTES or mark.strip(b"\0"):  # guard: INSTALL-7
        raise Rejected("the archive is damaged or cut off: it has no end mark")
    return builder.done()


def _announce_member(builder: TreeBuilder, member: tarfile.TarInfo) -> str | None:
    if member.isdir():
        builder.folder(member.name)
        return None
    if not member.isreg() or member.issparse():  # guard: INSTALL-7
        kind = _member_kind(member)
        builder.refuse(f"{shown(member.name)}: {kind}; packages hold files and folders only")
        return None
    return builder.file(member.name)


def _fill_member(
    builder: TreeBuilder, archive: tarfile.TarFile, member: tarfile.TarInfo, path: str
) -> None:
    content = archive.extractfile(member)
    if content is None:
        raise Rejected(f"{shown(path)}: it has no content")
    data = _bounded(content, builder.left_bytes, path)
    if len(data) != member.size:
        raise Rejected(f"{shown(path)}: the archive is cut off")
    builder.fill(path, data)


def _member_kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return "a link"
    if member.isfifo():
        return "a pipe"
    return "a sparse file" if member.issparse() else "a device or an unknown kind"


def _kind_of(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device or an unknown kind"
