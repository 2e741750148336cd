"""Local sockets: one leaf door.  Only this user's processes on this machine can open them.

A socket has a name, the id of the host that listens, and lies in a folder that
nobody else may enter: `$XDG_RUNTIME_DIR/tenure`, else `tenure-<uid>` among the
temporary files.  What is connected is bytes in both directions.
"""

import asyncio
import errno
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

READ_BYTES = 65_536
PATH_BYTES_MAX = 103 if sys.platform == "darwin" else 107
"""What the kernel takes as the path of a socket."""
SUFFIX = ".sock"
WAITING_MAX = 64
"""Clients that have connected and were not served yet; the kernel holds further ones off."""


class Connection(Protocol):
    """One end.  It has one reader and one writer at a time."""

    async def read(self) -> bytes:
        """The next bytes, 64 KiB at most; empty once the other end sends no more."""
        ...

    async def write(self, data: bytes) -> None:
        """Send; returns once the system has taken all of it, so who does not read holds it up.

        Raises `OSError` where nobody will ever read it.
        """
        ...

    async def close(self) -> None:
        """End both directions at once; harmless when closed."""
        ...


OnClient = Callable[[Connection], Awaitable[None]]
"""Serves one client.  The connection is closed when it returns or raises."""


class Listener(Protocol):
    path: str
    """Where it lies, for people."""

    async def close(self) -> None:
        """Take no new clients, and remove the name.  Those that are served go on."""
        ...


class Sockets(Protocol):
    async def listen(self, name: str, on_client: OnClient) -> Listener:
        """Serve clients of this name, one task each.

        Raises `OSError` where there is no folder that is private to this user.
        """
        ...

    async def connect(self, name: str) -> Connection:
        """Raises `ConnectionRefusedError` where nobody listens, another `OSError` else."""
        ...

    def names(self) -> tuple[str, ...]:
        """Every name that somebody listens to, or listened to and was killed.  Blocks."""
        ...

    def remove_dead(self) -> None:
        """Remove the names that nobody listens to any more.  Blocks."""
        ...


class LocalSockets:
    """Unix sockets of this machine.

    Args:
        environ: where `XDG_RUNTIME_DIR` and `TMPDIR` are looked up.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def listen(self, name: str, on_client: OnClient) -> Listener:
        listening, path = self._bind(name)
        listener = _LocalListener(path, on_client)
        try:
            await listener.start(listening)
        except BaseException:
            listening.close()
            _remove(path)
            raise
        return listener

    async def connect(self, name: str) -> Connection:
        for folder in self._present():
            path = _path(folder, name)
            try:
                reader, writer = await asyncio.open_unix_connection(path, limit=READ_BYTES)
            except (FileNotFoundError, ConnectionRefusedError):
                continue
            return _LocalConnection(reader, writer)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens", name)

    def names(self) -> tuple[str, ...]:
        found = {name for folder in self._present() for name in _names_in(folder)}
        return tuple(sorted(found))

    def remove_dead(self) -> None:
        for folder in self._present():
            for name in _names_in(folder):
                path = _path(folder, name)
                if _is_dead(path):
                    _remove(path)

    def _bind(self, name: str) -> tuple[socket.socket, str]:
        """A listening socket under its name: it is there only once it listens."""
        reasons = []
        for folder in self._folders():
            path, before = _path(folder, name), _path(folder, f".{name}")
            if len(os.fsencode(before)) > PATH_BYTES_MAX:
                reasons.append(f"{folder}: its path is too long for a socket")
                continue
            try:
                _make_private(folder)
                return _bound(before, path), path
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
        raise OSError(errno.EACCES, "; ".join(reasons) or "there are no local sockets here")

    def _folders(self) -> list[str]:
        """Where to listen, the best place first, and so where to look."""
        if not hasattr(socket, "AF_UNIX"):
            return []
        user = os.geteuid()
        runtime = self._environ.get("XDG_RUNTIME_DIR", "")
        temporary = self._environ.get("TMPDIR", "") or tempfile.gettempdir()
        folders = [f"{runtime.rstrip('/')}/tenure"] if runtime.startswith("/") else []
        folders += [f"{temporary.rstrip('/')}/tenure-{user}", f"/tmp/tenure-{user}"]
        return list(dict.fromkeys(folders))

    def _present(self) -> list[str]:
        """Where to look: another process of this user may have had another environment."""
        elsewhere = [f"/run/user/{os.geteuid()}/tenure"] if hasattr(os, "geteuid") else []
        folders = dict.fromkeys([*self._folders(), *elsewhere])
        return [folder for folder in folders if not _why_not_private(folder)]


class _LocalListener:
    def __init__(self, path: str, on_client: OnClient) -> None:
        self.path = path
        self._on_client = on_client
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        self._server = await asyncio.start_unix_server(
            self._connected, sock=listening, limit=READ_BYTES, backlog=WAITING_MAX
        )
        self._socket = listening
        self._inode = os.stat(self.path).st_ino

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            _listening.discard(self._socket)
            with suppress(OSError):
                # Another host cannot have our name, but a person may have moved things.
                if os.stat(self.path).st_ino == self._inode:
                    os.unlink(self.path)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _LocalConnection(reader, writer)
        try:
            if _is_this_user(writer.get_extra_info("socket")):
                await self._on_client(connection)
        finally:
            await connection.close()


class _LocalConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # What the system has not taken waits in `write`, not in memory.
        writer.transport.set_write_buffer_limits(high=0)

    async def read(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except ConnectionError:
            return b""

    async def write(self, data: bytes) -> None:
        if self._writer.transport.is_closing():
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.transport.abort()
        with suppress(OSError):
            await self._writer.wait_closed()


def _path(folder: str, name: str) -> str:
    return f"{folder}/{name}{SUFFIX}"


def _names_in(folder: str) -> Iterator[str]:
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):
            # A name that begins with a dot is of a host that does not listen yet.
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield name.removesuffix(SUFFIX)


def _bound(before: str, path: str) -> socket.socket:
    # Under its name a socket always listens: one that refuses belongs to the dead.
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(before)
        listening.bind(before)
        os.chmod(before, 0o600)
        listening.listen(WAITING_MAX)
        listening.setblocking(False)
        os.rename(before, path)
    except BaseException:
        listening.close()
        raise
    _listening.add(listening)
    return listening


def _make_private(folder: str) -> None:
    """Raises `OSError` where the folder is not ours alone."""
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    problem = _why_not_private(folder)
    if problem:
        raise PermissionError(errno.EACCES, problem, folder)


def _why_not_private(folder: str) -> str:
    """Empty where the folder is ours, no link, and closed to everybody else."""
    try:
        found = os.lstat(folder)
    except OSError as error:
        return os.strerror(error.errno or 0)
    if not stat.S_ISDIR(found.st_mode):
        return "it is a link" if stat.S_ISLNK(found.st_mode) else "it is no folder"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return "others may enter it: its mode must be 700"
    return ""


def _is_this_user(peer: socket.socket) -> bool:
    """Where the system does not tell, the folder alone keeps others out."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", told)
    return bool(user == os.geteuid())


def _is_dead(path: str) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        probe.connect(path)
    except ConnectionRefusedError:
        return True
    except OSError:  # too many wait there, or it has gone meanwhile
        return False
    finally:
        probe.close()
    return False


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


_listening: set[socket.socket] = set()
"""Every socket on which this process listens."""


def _close_in_child() -> None:
    """A forked child does not listen: else its parent would seem to live on."""
    for each in _listening:
        each.close()
    _listening.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
