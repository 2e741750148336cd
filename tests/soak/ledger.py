"""What one client was told, in a file of its own: synced before the next thing is done.

A line is an intent (what is about to be asked) or a receipt (what was answered, or
seen as an event).  The ledger knows nothing of the transcripts: the two are compared
afterwards by `judge.py`.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Lines of JSON, each on the disk when `note` returns."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC
        self._descriptor = os.open(path, flags, 0o600)

    def note(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n"
        os.write(self._descriptor, line.encode())

    def close(self) -> None:
        os.close(self._descriptor)


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a ledger; the last one may be torn by the kill, and then was never relied on."""
    for line in path.read_bytes().split(b"\n"):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        yield found
