"""Writes a trace to a file without holding up the owners."""

import asyncio

from tenure.runtime.doors.files import File
from tenure.runtime.doors.leaves import Leaves


class TraceFile:
    """Collects lines and has a worker append them; what fails is kept as the reason."""

    def __init__(self, leaves: Leaves, path: str) -> None:
        self._leaves = leaves
        self._path = path
        self._lines: list[bytes] = []
        self._writer: asyncio.Task[None] | None = None
        self._file: File | None = None
        self.failed = ""
        """Why the trace is incomplete; empty while it is whole."""

    def write(self, line: bytes) -> None:
        self._lines.append(line)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_all())

    async def close(self) -> None:
        if self._writer is not None:
            await self._writer
        if self._file is not None:
            await self._leaves.workers.run(self._file.close)
            self._file = None

    async def _write_all(self) -> None:
        try:
            while self._lines:
                lines, self._lines = self._lines, []
                await self._leaves.workers.run(self._append, b"".join(lines))
        except OSError as error:
            self.failed = f"{self._path}: {error.strerror}"
            self._lines.clear()
        finally:
            self._writer = None

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
