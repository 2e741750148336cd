"""Processes that hold a session, and a private place for their sockets."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_world import Record, read_until, started

HOLDING = str(Path(__file__).parent / "processes" / "holding.py")


class Holder:
    """A process that is ready, with its session."""

    def __init__(self, process: subprocess.Popen[str], root: Path, file: Path) -> None:
        self.process = process
        self.root = root
        self.file = file
        ready = self.until("Ready")[-1]
        self.session: str = ready["session"]
        self.socket = Path(ready["socket"])

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, kind: str) -> list[Record]:
        """What it says up to the first event of this type."""
        return read_until(self.process, kind)


@contextmanager
def holding(root: Path, mode: str) -> Iterator[Holder]:
    """A process on this root; it is gone at the end."""
    file = root / f"{mode}.end"
    with started(sys.executable, HOLDING, str(root), mode, str(file), cwd=root) as process:
        yield Holder(process, root, file)


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's sockets lie, and those of the processes that it starts."""
    folder = tmp_path_factory.mktemp("run", numbered=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder
