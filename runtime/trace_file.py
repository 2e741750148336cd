"""Writes a trace to a file without holding up the owners."""

import asyncio
import logging

from tenure.runtime.doors.files import File
from tenure.runtime.doors.leaves import Leaves

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""What may wait for a slow disk; with more the trace ends."""

_log = logging.getLogger("tenure.trace")


class TraceFile:
    """Collects lines and has a worker append them.

    The first failure ends the trace and is kept as the reason: what comes after
    a line that was cut off could not be told from it.
    """

    def __init__(self, leaves: Leaves, path: str) -> None:
        self._leaves = leaves
        self._path = path
        self._lines: list[bytes] = []
        self._bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._file: File | None = None
        self.failed = ""
        """Why the trace is incomplete; empty while it is whole."""

    def write(self, line: bytes) -> None:
        """Take a line; it is written soon."""
        if self.failed:
            return
        if self._bytes + len(line) > WAITING_BYTES_MAX:
            self._fail(f"the disk is slower than the trace, {self._bytes} bytes wait for it")
            return
        self._lines.append(line)
        self._bytes += len(line)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_all())

    async def close(self) -> None:
        """Write what waits and close the file."""
        if self._writer is not None:
            await self._writer
        file, self._file = self._file, None
        if file is not None:
            await self._leaves.workers.run(file.close)

    async def _write_all(self) -> None:
        try:
            while self._lines:
                lines, self._lines, self._bytes = self._lines, [], 0
                await self._leaves.workers.run(self._append, b"".join(lines))
        except (OSError, RuntimeError) as error:  # the disk; workers that are closed
            self._fail(str(getattr(error, "strerror", None) or error))
        finally:
            self._writer = None

    def _fail(self, reason: str) -> None:
        self.failed = f"{self._path}: {reason}"
        self._lines, self._bytes = [], 0
        _log.error("the trace ends here: %s", self.failed)

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = self._open()
        while data:
            data = data[self._file.append(data) :]

    def _open(self) -> File:
        files = self._leaves.files
        try:
            return files.open(self._path, "create", permissions=0o600)
        except FileExistsError:
            return files.open(self._path, "write")
